//! One query at a time, on JavaScript's own thread, without garbage.
//!
//! The function is made with plain Node-API rather than as a method of a class: its data pointer leads to the
//! query at once, arguments are read in place, and the answer goes into two typed arrays made beforehand.

use crate::error::{Error, IntoJs, Result, closed, error};
use crate::job::guard;
use crate::matrix::{elements, typed_array};
use crate::xlinear::Slot;
use aquila::ErrorCode::{Internal, InvalidArgument, NotFinite, ShapeMismatch};
use aquila::xlinear::{PredictParams, Scope, Searcher};
use aquila::{FeatureRow, Row};
use napi::bindgen_prelude::{JsObjectValue, Object};
use napi::sys::{self, TypedarrayType, ValueType};
use napi::{Env, Unknown};
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

/// Everything a query needs, warm.
struct Query {
    model: Rc<Slot>,
    searcher: Searcher,
    params: PredictParams,
    scope: Scope,
    /// Copies of the arguments: those may be shared with another thread, which could change them between the
    /// check and the search.
    indices: Vec<u32>,
    values: Vec<f32>,
    dense: Vec<f32>,
    found: Vec<(u32, f32)>,
    /// The buffer behind `labels` (first half) and `scores` (second half), as a `Uint32Array` over all of it.
    out: sys::napi_ref,
}

impl Query {
    fn search(
        &mut self,
        env: sys::napi_env,
        indices: sys::napi_value,
        values: sys::napi_value,
        dense: Option<sys::napi_value>,
    ) -> Result<u32> {
        let model = self.model.borrow();
        let model = model.as_ref().ok_or_else(|| closed("the model"))?;
        read(env, indices, TypedarrayType::uint32_array, "a Uint32Array for indices", &mut self.indices)?;
        read(env, values, TypedarrayType::float32_array, "a Float32Array for values", &mut self.values)?;
        self.dense.clear();
        if let Some(dense) = dense {
            read(env, dense, TypedarrayType::float32_array, "a Float32Array for dense", &mut self.dense)?;
        }
        check_dense(&self.dense, model.dense())?;
        let sparse = Row::checked(&self.indices, &self.values, model.features() - model.dense()).js()?;
        let row = FeatureRow { sparse, dense: &self.dense };
        model.search(&mut self.searcher, row, &self.params, &self.scope, &mut self.found).js()?;

        let mut array = null_mut();
        // SAFETY: the reference is strong and lives as long as the query.
        unsafe { sys::napi_get_reference_value(env, self.out, &mut array) };
        let (_, length, data) = typed_array(env, array).ok_or_else(|| error(Internal, "no result arrays"))?;
        let k = self.params.k as usize;
        if length != 2 * k {
            return Err(error(
                InvalidArgument,
                "the searcher's labels and scores were transferred away: make another searcher",
            ));
        }
        let data = data.cast_mut().cast::<u32>();
        let count = self.found.len().min(k);
        for (i, (label, score)) in self.found[..count].iter().enumerate() {
            // SAFETY: i < k, and the buffer was made here with room for 2·k values of 4 bytes, which its length
            // above confirms; JavaScript does not run meanwhile.
            unsafe {
                data.add(i).write(*label);
                data.add(k + i).cast::<f32>().write(*score);
            }
        }
        Ok(count as u32)
    }
}

/// Checks a row's dense part.
fn check_dense(dense: &[f32], wanted: usize) -> Result<()> {
    if dense.len() != wanted {
        let message =
            format!("the row has {} dense values but the model {wanted} dense features", dense.len());
        return Err(error(ShapeMismatch, message));
    }
    match dense.iter().position(|v| !v.is_finite()) {
        Some(j) => Err(error(
            NotFinite,
            format!("dense value {} at column {j} is not finite: replace or drop it", dense[j]),
        )),
        None => Ok(()),
    }
}

/// Copies a typed array of this type into `to`.
fn read<T: Copy>(
    env: sys::napi_env,
    value: sys::napi_value,
    kind: i32,
    what: &str,
    to: &mut Vec<T>,
) -> Result<()> {
    let refuse = || error(InvalidArgument, format!("Expected {what}"));
    let (found, length, data) = typed_array(env, value).ok_or_else(refuse)?;
    if found != kind {
        return Err(refuse());
    }
    to.clear();
    // SAFETY: address and length are the array's own for this type of elements, which are copied at once.
    to.extend_from_slice(unsafe { elements(data, length) }.ok_or_else(refuse)?);
    Ok(())
}

/// `search(indices, values, dense)`: how many labels were found. `dense` may be left out or `undefined`.
unsafe extern "C" fn search(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let (mut count, mut arguments, mut data) = (3, [null_mut(); 3], null_mut());
    // SAFETY: all pointers are valid for the call; missing arguments are filled with `undefined`.
    unsafe { sys::napi_get_cb_info(env, info, &mut count, arguments.as_mut_ptr(), null_mut(), &mut data) };
    // SAFETY: the data is the query of `open`, freed only after the function is collected, and a search never
    // calls JavaScript, so that no second one can begin meanwhile.
    let query = unsafe { &mut *data.cast::<Query>() };
    let mut result = null_mut();
    let [indices, values, dense] = arguments;
    let mut kind = ValueType::napi_undefined;
    // SAFETY: the argument is a value of this call, and `kind` is valid for it.
    unsafe { sys::napi_typeof(env, dense, &mut kind) };
    let dense = (kind != ValueType::napi_undefined).then_some(dense);
    match guard(|| query.search(env, indices, values, dense)) {
        // SAFETY: `result` is valid for the call.
        Ok(count) => unsafe { sys::napi_create_uint32(env, count, &mut result) },
        Err(e) => throw(env, &e),
    };
    result
}

fn throw(env: sys::napi_env, error: &Error) -> sys::napi_status {
    let text = |t: &str| CString::new(t.replace('\0', " ")).unwrap_or_default();
    let (code, message) = (text(error.status.as_ref()), text(&error.reason));
    // SAFETY: both texts end in 0 and outlive the call.
    unsafe { sys::napi_throw_error(env, code.as_ptr(), message.as_ptr()) }
}

/// Frees the query of a collected function.
unsafe extern "C" fn free(env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: the data is the box of `open`, and this runs once.
    let query = unsafe { Box::from_raw(data.cast::<Query>()) };
    // SAFETY: the reference was made in this environment and is deleted once.
    unsafe { sys::napi_delete_reference(env, query.out) };
}

/// Makes the search function and its result arrays: `{ search, labels, scores }`.
pub fn open<'env>(
    env: &'env Env,
    model: Rc<Slot>,
    params: PredictParams,
    scope: Scope,
) -> Result<Object<'env>> {
    let searcher = model.borrow().as_ref().ok_or_else(|| closed("the model"))?.searcher();
    let k = params.k as usize;
    let raw = env.raw();
    let check = |status| match status {
        sys::Status::napi_ok => Ok(()),
        _ => Err(error(Internal, format!("Node-API refuses to make a searcher (status {status})"))),
    };
    let view = |kind, buffer, length, offset| {
        let mut array = null_mut();
        // SAFETY: the buffer has room for offset + 4·length bytes.
        check(unsafe { sys::napi_create_typedarray(raw, kind, length, buffer, offset, &mut array) })?;
        Ok::<_, Error>(array)
    };
    let (mut buffer, mut start) = (null_mut(), null_mut());
    // SAFETY: all pointers are valid for the call.
    check(unsafe { sys::napi_create_arraybuffer(raw, 8 * k, &mut start, &mut buffer) })?;
    let all = view(TypedarrayType::uint32_array, buffer, 2 * k, 0)?;
    let labels = view(TypedarrayType::uint32_array, buffer, k, 0)?;
    let scores = view(TypedarrayType::float32_array, buffer, k, 4 * k)?;
    let (mut out, mut function) = (null_mut(), null_mut());
    // SAFETY: `all` is a live object of this scope.
    check(unsafe { sys::napi_create_reference(raw, all, 1, &mut out) })?;
    let (indices, values) = (Vec::with_capacity(256), Vec::with_capacity(256));
    let found = Vec::with_capacity(k.min(4096));
    let query =
        Box::new(Query { model, searcher, params, scope, indices, values, dense: Vec::new(), found, out });
    let data = Box::into_raw(query).cast::<c_void>();
    // SAFETY: the name is valid for the call, and `data` lives until the finalizer below frees it.
    check(unsafe {
        sys::napi_create_function(raw, c"search".as_ptr(), 6, Some(search), data, &mut function)
    })?;
    // SAFETY: `free` takes the box back exactly once, when the function is gone.
    check(unsafe { sys::napi_add_finalizer(raw, function, data, Some(free), null_mut(), null_mut()) })?;

    let mut made = Object::new(env).js()?;
    for (name, value) in [("search", function), ("labels", labels), ("scores", scores)] {
        // SAFETY: the value was made above in this scope.
        let value = unsafe { Unknown::from_raw_unchecked(raw, value) };
        made.set_named_property(name, value).js()?;
    }
    Ok(made)
}
