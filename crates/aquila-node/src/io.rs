//! Files: read and written by the engine, never through JavaScript's memory.

use crate::error::Result;
use crate::job::{self, Control};
use crate::matrix::{DenseMatrix, Matrix};
use aquila::data::{self, Dataset, LibsvmOptions};
use napi::Env;
use napi::bindgen_prelude::Object;
use napi_derive::napi;

/// Rows with their labels.
#[napi(object, object_from_js = false)]
pub struct Pair {
    /// Features.
    #[napi(ts_type = "Matrix")]
    pub x: Matrix,
    /// Labels.
    #[napi(ts_type = "Matrix")]
    pub y: Matrix,
}

fn pair(env: Env, data: Dataset) -> Result<Pair> {
    Ok(Pair { x: Matrix::new(&env, data.x.into()), y: Matrix::new(&env, data.y.into()) })
}

/// Reads a file of the Extreme Classification Repository.
#[napi(catch_unwind, ts_return_type = "Promise<Pair>")]
pub fn read_xmc<'env>(env: &'env Env, path: String, control: &mut Control) -> Result<Object<'env>> {
    let work = move |control: &aquila::Control| data::read_xmc(path, control);
    job::run(env, "read", control, work, pair)
}

/// Reads LIBSVM text.
#[napi(catch_unwind, ts_return_type = "Promise<Pair>")]
pub fn read_libsvm<'env>(
    env: &'env Env,
    path: String,
    one_based: bool,
    features: Option<u32>,
    labels: Option<u32>,
    control: &mut Control,
) -> Result<Object<'env>> {
    let options = LibsvmOptions {
        one_based,
        features: features.map(|n| n as usize),
        labels: labels.map(|n| n as usize),
    };
    let work = move |control: &aquila::Control| data::read_libsvm(path, options, control);
    job::run(env, "read", control, work, pair)
}

/// Writes text of the Extreme Classification Repository, gzip where the name ends in `.gz`.
#[napi(catch_unwind, ts_return_type = "Promise<void>")]
pub fn write_xmc<'env>(
    env: &'env Env,
    path: String,
    x: &Matrix,
    y: &Matrix,
    control: &mut Control,
) -> Result<Object<'env>> {
    let (x, y) = (x.features()?, y.features()?);
    let work = move |control: &aquila::Control| data::write_xmc(path, &x, y.sparse(), control);
    job::run(env, "write", control, work, |_, ()| Ok(()))
}

/// Writes LIBSVM text, gzip where the name ends in `.gz`.
#[napi(catch_unwind, ts_return_type = "Promise<void>")]
pub fn write_libsvm<'env>(
    env: &'env Env,
    path: String,
    x: &Matrix,
    y: &Matrix,
    one_based: bool,
    control: &mut Control,
) -> Result<Object<'env>> {
    let (x, y) = (x.features()?, y.features()?);
    let work = move |control: &aquila::Control| data::write_libsvm(path, &x, y.sparse(), one_based, control);
    job::run(env, "write", control, work, |_, ()| Ok(()))
}

/// Reads a sparse matrix that SciPy saved.
#[napi(catch_unwind, ts_return_type = "Promise<Matrix>")]
pub fn read_npz<'env>(env: &'env Env, path: String, control: &mut Control) -> Result<Object<'env>> {
    let work = move |control: &aquila::Control| data::read_npz(path, control);
    job::run(env, "read", control, work, |env, csr| Ok(Matrix::new(&env, csr.into())))
}

/// Writes a sparse matrix so that SciPy reads it.
#[napi(catch_unwind, ts_return_type = "Promise<void>")]
pub fn write_npz<'env>(
    env: &'env Env,
    path: String,
    matrix: &Matrix,
    compressed: bool,
    control: &mut Control,
) -> Result<Object<'env>> {
    let matrix = matrix.features()?;
    let work = move |control: &aquila::Control| data::write_npz(path, matrix.sparse(), compressed, control);
    job::run(env, "write", control, work, |_, ()| Ok(()))
}

/// Reads a dense matrix that NumPy saved.
#[napi(catch_unwind, ts_return_type = "Promise<DenseMatrix>")]
pub fn read_npy<'env>(env: &'env Env, path: String, control: &mut Control) -> Result<Object<'env>> {
    let work = move |control: &aquila::Control| data::read_npy(path, control);
    job::run(env, "read", control, work, |env, dense| Ok(DenseMatrix::new(&env, dense)))
}

/// Writes a dense matrix so that NumPy reads it.
#[napi(catch_unwind, ts_return_type = "Promise<void>")]
pub fn write_npy<'env>(
    env: &'env Env,
    path: String,
    dense: &DenseMatrix,
    control: &mut Control,
) -> Result<Object<'env>> {
    let dense = dense.dense()?;
    let work = move |control: &aquila::Control| data::write_npy(path, &dense, control);
    job::run(env, "write", control, work, |_, ()| Ok(()))
}
