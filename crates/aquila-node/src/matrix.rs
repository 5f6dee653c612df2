//! Matrices: typed arrays copied in and checked, copied out again.

use crate::error::{Error, IntoJs, Result, closed, error};
use crate::job;
use aquila::ErrorCode::{IndexOutOfRange, InvalidArgument, Unsupported};
use aquila::{Csr, Dense, Features, memory};
use napi::bindgen_prelude::{Float32Array, ObjectFinalize, Uint32Array};
use napi::sys::{self, TypedarrayType};
use napi::{Env, JsValue, Unknown};
use napi_derive::napi;
use std::sync::Arc;

/// The elements of a typed array, as they stand in JavaScript's memory. Read them at once and keep nothing:
/// JavaScript may change or detach them as soon as it runs again.
pub enum Numbers<'a> {
    /// `Int32Array`
    I32(&'a [i32]),
    /// `Uint32Array`
    U32(&'a [u32]),
    /// `BigInt64Array`
    I64(&'a [i64]),
    /// `BigUint64Array`
    U64(&'a [u64]),
    /// `Float32Array`
    F32(&'a [f32]),
    /// `Float64Array`
    F64(&'a [f64]),
}

/// What Node-API tells of a typed array: its type, its length and where its elements are.
pub(crate) fn typed_array(env: sys::napi_env, value: sys::napi_value) -> Option<(i32, usize, *const u8)> {
    let (mut kind, mut length, mut data) = (0, 0, std::ptr::null_mut());
    // SAFETY: all pointers are valid for the call; a value that is no typed array gives a status other than ok.
    let status = unsafe {
        sys::napi_get_typedarray_info(
            env,
            value,
            &mut kind,
            &mut length,
            &mut data,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    // A detached array has no elements and may have no address.
    let length = if data.is_null() { 0 } else { length };
    (status == sys::Status::napi_ok).then_some((kind, length, data.cast_const().cast()))
}

/// The elements at `data`, or `None` where they are not aligned.
///
/// # Safety
/// `data` and `length` come from [`typed_array`] for a type of elements `T`, and no JavaScript runs while the
/// slice lives.
pub(crate) unsafe fn elements<'a, T>(data: *const u8, length: usize) -> Option<&'a [T]> {
    if length == 0 {
        return Some(&[]);
    }
    let data = data.cast::<T>();
    // SAFETY: the caller vouches for the address and the length; the alignment is checked.
    data.is_aligned().then(|| unsafe { std::slice::from_raw_parts(data, length) })
}

impl<'a> Numbers<'a> {
    /// The elements of the typed array that is called `name`.
    pub fn read(value: &'a Unknown<'_>, name: &str) -> Result<Self> {
        let value = value.value();
        let refuse =
            || error(InvalidArgument, format!("Expected an aligned typed array of numbers for {name}"));
        let (kind, length, data) = typed_array(value.env, value.value).ok_or_else(refuse)?;
        // SAFETY: address and length are the array's own for the type of its elements, and the slice is copied
        // before JavaScript runs again.
        let numbers = unsafe {
            match kind {
                TypedarrayType::int32_array => elements(data, length).map(Self::I32),
                TypedarrayType::uint32_array => elements(data, length).map(Self::U32),
                TypedarrayType::float32_array => elements(data, length).map(Self::F32),
                TypedarrayType::float64_array => elements(data, length).map(Self::F64),
                TypedarrayType::bigint64_array => elements(data, length).map(Self::I64),
                TypedarrayType::biguint64_array => elements(data, length).map(Self::U64),
                _ => None,
            }
        };
        numbers.ok_or_else(refuse)
    }

    /// Copies into whole numbers from 0 up to `T`'s largest.
    pub fn to_whole<T: TryFrom<i64> + TryFrom<u64> + TryFrom<u32> + Copy>(
        &self,
        name: &str,
    ) -> Result<Vec<T>> {
        fn copy<S: Copy + std::fmt::Display, T>(
            from: &[S],
            name: &str,
            convert: impl Fn(S) -> Option<T>,
        ) -> Result<Vec<T>> {
            let mut to = memory::room(from.len(), name).js()?;
            for (i, &v) in from.iter().enumerate() {
                to.push(convert(v).ok_or_else(|| outside(name, i, &v.to_string()))?);
            }
            Ok(to)
        }
        fn outside(name: &str, i: usize, value: &str) -> Error {
            error(IndexOutOfRange, format!("{name}[{i}] is {value}, which is no valid index"))
        }
        // Above 2^53 an f64 no longer tells whole numbers apart.
        let whole = |v: f64| (v.fract() == 0.0 && v.abs() < 9_007_199_254_740_992.0).then_some(v as i64);
        match self {
            Self::U32(from) => copy(from, name, |v| T::try_from(v).ok()),
            Self::I32(from) => copy(from, name, |v| T::try_from(i64::from(v)).ok()),
            Self::I64(from) => copy(from, name, |v| T::try_from(v).ok()),
            Self::U64(from) => copy(from, name, |v| T::try_from(v).ok()),
            Self::F32(from) => copy(from, name, |v| whole(v.into()).and_then(|v| T::try_from(v).ok())),
            Self::F64(from) => copy(from, name, |v| whole(v).and_then(|v| T::try_from(v).ok())),
        }
    }

    /// Copies into f32.
    pub fn to_f32(&self, name: &str) -> Result<Vec<f32>> {
        match self {
            Self::F32(from) => memory::copied(from, name).js(),
            Self::F64(from) => {
                let mut to = memory::room(from.len(), name).js()?;
                to.extend(from.iter().map(|v| *v as f32));
                Ok(to)
            }
            _ => Err(error(InvalidArgument, format!("Expected a Float32Array or Float64Array for {name}"))),
        }
    }
}

/// Row pointers for JavaScript, whose typed arrays hold no more than 2³² − 1 entries anyway.
pub fn to_u32(from: &[usize]) -> aquila::Result<Vec<u32>> {
    let fits = |v: &usize| {
        u32::try_from(*v)
            .map_err(|_| aquila::Error::new(Unsupported, format!("{v} entries pass the limit of 2^32 - 1")))
    };
    let mut to = memory::room(from.len(), "row pointers")?;
    for v in from {
        to.push(fits(v)?);
    }
    Ok(to)
}

/// The three arrays of a sparse matrix.
#[napi(object, object_from_js = false)]
pub struct Arrays {
    /// Row pointers.
    pub indptr: Uint32Array,
    /// Column ids.
    pub indices: Uint32Array,
    /// Values.
    pub values: Float32Array,
}

/// One sparse row.
#[napi(object, object_from_js = false)]
pub struct RowArrays {
    /// Column ids.
    pub indices: Uint32Array,
    /// Values.
    pub values: Float32Array,
    /// Values of the dense block.
    pub dense: Option<Float32Array>,
}

/// Tells V8 of memory that it cannot see, so that it collects handles in time.
pub fn account(env: &Env, bytes: i64) {
    // A refusal changes nothing but the collector's eps_factor.
    let _ = env.adjust_external_memory(bytes);
}

/// Rows of a sparse part and an optional dense block, or labels of rows.
#[napi(custom_finalize)]
pub struct Matrix {
    inner: Option<Arc<Features>>,
    counted: i64,
}

impl ObjectFinalize for Matrix {
    fn finalize(mut self, env: Env) -> napi::Result<()> {
        self.close(env);
        Ok(())
    }
}

impl Matrix {
    /// Takes features and tells V8 of their memory.
    pub fn new(env: &Env, features: Features) -> Self {
        let dense = features.dense().map_or(0, |d| size_of_val(d.values()));
        let counted = features.sparse().bytes() as i64 + dense as i64;
        account(env, counted);
        Self { inner: Some(Arc::new(features)), counted }
    }

    /// The rows; they stay alive for a running job though the handle is closed.
    pub fn features(&self) -> Result<Arc<Features>> {
        self.inner.clone().ok_or_else(|| closed("the matrix"))
    }

    fn open(&self) -> Result<&Features> {
        self.inner.as_deref().ok_or_else(|| closed("the matrix"))
    }
}

#[napi]
impl Matrix {
    /// Copies three typed arrays in. With `unsorted`, rows are sorted and duplicates summed.
    #[napi(catch_unwind, factory)]
    pub fn from_arrays(
        env: Env,
        rows: u32,
        cols: u32,
        indptr: Unknown<'_>,
        indices: Unknown<'_>,
        values: Unknown<'_>,
        unsorted: bool,
    ) -> Result<Self> {
        memory::headroom().js()?;
        let indptr = Numbers::read(&indptr, "indptr")?.to_whole("indptr")?;
        let indices = Numbers::read(&indices, "indices")?.to_whole("indices")?;
        let values = Numbers::read(&values, "values")?.to_f32("values")?;
        let make = if unsorted { Csr::from_unsorted } else { Csr::new };
        let csr = make(rows as usize, cols as usize, indptr, indices, values).js()?;
        Ok(Self::new(&env, csr.into()))
    }

    /// The same sparse rows with a dense block beside them.
    #[napi(catch_unwind)]
    pub fn with_dense(&self, env: Env, dense: &DenseMatrix) -> Result<Self> {
        let features = self.open()?.beside(dense.dense()?).js()?;
        Ok(Self::new(&env, features))
    }

    /// Rows of this dense block alone.
    #[napi(catch_unwind, factory)]
    pub fn of_dense(env: Env, dense: &DenseMatrix) -> Result<Self> {
        Ok(Self::new(&env, Features::of_dense(dense.dense()?).js()?))
    }

    /// Number of rows.
    #[napi(catch_unwind, getter)]
    pub fn rows(&self) -> Result<u32> {
        Ok(self.open()?.rows() as u32)
    }

    /// Number of columns, dense ones included.
    #[napi(catch_unwind, getter)]
    pub fn cols(&self) -> Result<u32> {
        Ok(self.open()?.cols() as u32)
    }

    /// Number of stored entries of the sparse part.
    #[napi(catch_unwind, getter)]
    pub fn nnz(&self) -> Result<f64> {
        Ok(self.open()?.sparse().nnz() as f64)
    }

    /// Copies the three arrays of the sparse part out.
    #[napi(catch_unwind)]
    pub fn arrays(&self) -> Result<Arrays> {
        let csr = self.open()?.sparse();
        Ok(Arrays {
            indptr: Uint32Array::new(to_u32(csr.indptr()).js()?),
            indices: Uint32Array::new(memory::copied(csr.indices(), "column ids").js()?),
            values: Float32Array::new(memory::copied(csr.values(), "values").js()?),
        })
    }

    /// Copies one row out.
    #[napi(catch_unwind)]
    pub fn row(&self, row: u32) -> Result<RowArrays> {
        let features = self.open()?;
        let csr = features.sparse();
        if row as usize >= csr.rows() {
            let message = format!("row {row} is not below the number of rows, {}", csr.rows());
            return Err(error(IndexOutOfRange, message));
        }
        let row = features.row(row as usize);
        Ok(RowArrays {
            indices: Uint32Array::new(row.sparse.indices.to_vec()),
            values: Float32Array::new(row.sparse.values.to_vec()),
            dense: features.dense().map(|_| Float32Array::new(row.dense.to_vec())),
        })
    }

    /// Lets go of the memory; running jobs keep theirs.
    #[napi(catch_unwind)]
    pub fn close(&mut self, env: Env) {
        let counted = std::mem::take(&mut self.counted);
        account(&env, -counted);
        job::free(self.inner.take(), counted as usize);
    }
}

/// Dense rows.
#[napi(custom_finalize)]
pub struct DenseMatrix {
    inner: Option<Arc<Dense>>,
    counted: i64,
}

impl ObjectFinalize for DenseMatrix {
    fn finalize(mut self, env: Env) -> napi::Result<()> {
        self.close(env);
        Ok(())
    }
}

impl DenseMatrix {
    /// Takes dense rows and tells V8 of their memory.
    pub fn new(env: &Env, dense: Dense) -> Self {
        let counted = size_of_val(dense.values()) as i64;
        account(env, counted);
        Self { inner: Some(Arc::new(dense)), counted }
    }

    /// The rows.
    pub fn dense(&self) -> Result<Arc<Dense>> {
        self.inner.clone().ok_or_else(|| closed("the dense matrix"))
    }
}

#[napi]
impl DenseMatrix {
    /// Copies row-major values in.
    #[napi(catch_unwind, factory)]
    pub fn from_values(env: Env, rows: u32, cols: u32, values: Unknown<'_>) -> Result<Self> {
        memory::headroom().js()?;
        let values = Numbers::read(&values, "values")?.to_f32("values")?;
        Ok(Self::new(&env, Dense::new(rows as usize, cols as usize, values).js()?))
    }

    /// Number of rows.
    #[napi(catch_unwind, getter)]
    pub fn rows(&self) -> Result<u32> {
        Ok(self.dense()?.rows() as u32)
    }

    /// Number of columns.
    #[napi(catch_unwind, getter)]
    pub fn cols(&self) -> Result<u32> {
        Ok(self.dense()?.cols() as u32)
    }

    /// Copies all values out, row after row.
    #[napi(catch_unwind)]
    pub fn values(&self) -> Result<Float32Array> {
        Ok(Float32Array::new(memory::copied(self.dense()?.values(), "values").js()?))
    }

    /// Lets go of the memory.
    #[napi(catch_unwind)]
    pub fn close(&mut self, env: Env) {
        let counted = std::mem::take(&mut self.counted);
        account(&env, -counted);
        job::free(self.inner.take(), counted as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_every_kind_keep_their_values() {
        let same = |numbers: Numbers<'_>| numbers.to_whole::<u32>("n").unwrap();
        assert_eq!(same(Numbers::U32(&[0, u32::MAX])), [0, u32::MAX]);
        assert_eq!(same(Numbers::I32(&[7])), [7]);
        assert_eq!(same(Numbers::I64(&[1 << 31])), [1 << 31]);
        assert_eq!(same(Numbers::U64(&[3])), [3]);
        assert_eq!(same(Numbers::F64(&[4294967295.0])), [u32::MAX]);
        assert_eq!(Numbers::F64(&[1e15]).to_whole::<usize>("n").unwrap(), [1_000_000_000_000_000]);
    }

    #[test]
    fn no_other_number_passes() {
        let refused = |numbers: Numbers<'_>| numbers.to_whole::<u32>("n").unwrap_err().reason.clone();
        assert_eq!(refused(Numbers::I32(&[0, -1])), "n[1] is -1, which is no valid index");
        for v in [0.5, -1.0, f64::NAN, f64::INFINITY, 4294967296.0, 1e300] {
            assert!(refused(Numbers::F64(&[v])).starts_with("n[0] is "), "{v}");
        }
        assert!(refused(Numbers::U64(&[u64::MAX])).contains("18446744073709551615"));
        assert!(Numbers::U64(&[u64::MAX]).to_whole::<usize>("n").is_ok());
        assert!(Numbers::I64(&[1]).to_f32("n").is_err());
    }
}
