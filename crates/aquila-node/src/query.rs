//! One query at a time, on JavaScript's own thread.
//!
//! All single queries of a model share one scratch memory on each thread of JavaScript: what they are asked for comes with
//! each call as a few numbers in front of the answer's place, so that settings cost no memory of their own, however many there are. (Memory of an object
//! for each would be freed by the event loop alone, and grow without bound in a loop that never lets it turn.) The function
//! is made with plain Node-API rather than as a method of a class: its data pointer leads to the model at once, arguments
//! are read in place, and the answer goes into an array of the caller.

use crate::error::{Error, IntoJs, Result, closed, error};
use crate::job::guard;
use crate::matrix::{account, elements, typed_array};
use crate::params;
use crate::xlinear::Slot;
use aquila::ErrorCode::{Internal, InvalidArgument, NotFinite, ShapeMismatch};
use aquila::xlinear::{Model, PredictParams, Scope, ScoreForm, Searcher};
use aquila::{FeatureRow, Row};
use napi::bindgen_prelude::{Float64Array, Object, ObjectFinalize};
use napi::sys::{self, TypedarrayType, ValueType};
use napi::{Env, Unknown};
use napi_derive::napi;
use std::cell::RefCell;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::rc::Rc;

/// Sets of allowed labels that are kept prepared: a service has a few, and whoever varies them endlessly must not fill the
/// memory.
const KEPT: usize = 4;
/// V8 is told of memory in steps of at least so many bytes, and it is looked at once in so many queries.
const STEP: usize = 4 << 10;
const QUERIES: u32 = 64;
/// Words in front of an answer, which hold the settings as four f64.
const SETTINGS: usize = 8;

/// What the queries of one model on one thread share, warm.
#[derive(Default)]
pub struct Scratch {
    searcher: Searcher,
    /// Copies of the arguments: those may be shared with another thread, which could change them between the
    /// check and the search.
    indices: Vec<u32>,
    values: Vec<f32>,
    dense: Vec<f32>,
    labels: Vec<u32>,
    found: Vec<(u32, f32)>,
    /// The last sets of allowed labels, the latest first, each with what was made of it.
    kept: Vec<(Vec<u32>, Scope)>,
    /// Bytes that V8 was told of.
    counted: usize,
    /// Queries, the first of which is 0.
    queries: u32,
}

impl Scratch {
    /// Tells V8 how large this has become, now and then.
    fn count(&mut self, env: sys::napi_env) {
        let query = self.queries;
        self.queries = query.wrapping_add(1);
        if !query.is_multiple_of(QUERIES) {
            return;
        }
        let arguments = size_of::<u32>() * (self.indices.capacity() + self.labels.capacity())
            + size_of::<f32>() * (self.values.capacity() + self.dense.capacity())
            + size_of::<(u32, f32)>() * self.found.capacity();
        let kept = self.kept.iter().map(|(labels, scope)| size_of_val(&labels[..]) + scope.bytes());
        let bytes = self.searcher.bytes() + arguments + kept.sum::<usize>();
        if bytes.abs_diff(self.counted) >= STEP {
            account(&Env::from_raw(env), bytes as i64 - self.counted as i64);
            self.counted = bytes;
        }
    }

    /// Gives all of it back.
    pub fn clear(&mut self, env: &Env) {
        account(env, -(self.counted as i64));
        *self = Self::default();
    }

    /// Prepares the labels that stand in `labels`, and puts them in front of those kept.
    fn allow(&mut self, model: &Model) -> Result<()> {
        if let Some(at) = self.kept.iter().position(|(labels, _)| *labels == self.labels) {
            self.kept[..=at].rotate_right(1);
            return Ok(());
        }
        let scope = Scope::Allowed(model.allow(&self.labels).js()?);
        self.kept.truncate(KEPT - 1);
        self.kept.insert(0, (self.labels.clone(), scope));
        Ok(())
    }
}

/// The labels that a searcher is narrowed to, which its function and its handle have in common.
type Narrowed = Rc<RefCell<Option<Scope>>>;

/// A handle of the labels that a searcher is narrowed to: with it their memory can be given back.
#[napi(custom_finalize)]
pub struct Narrowing {
    scope: Narrowed,
    counted: i64,
}

impl ObjectFinalize for Narrowing {
    fn finalize(mut self, env: Env) -> napi::Result<()> {
        self.close(env);
        Ok(())
    }
}

impl Narrowing {
    /// Prepares these labels.
    pub fn new(env: &Env, model: &Model, labels: &[u32]) -> Result<Self> {
        let scope = Scope::Allowed(model.allow(labels).js()?);
        let counted = scope.bytes() as i64;
        account(env, counted);
        Ok(Self { scope: Rc::new(RefCell::new(Some(scope))), counted })
    }
}

#[napi]
impl Narrowing {
    /// Lets go of the labels: later queries are refused.
    #[napi(catch_unwind)]
    pub fn close(&mut self, env: Env) {
        account(&env, -std::mem::take(&mut self.counted));
        self.scope.replace(None);
    }

    /// The search function of this set of labels, which takes none by itself.
    #[napi(
        catch_unwind,
        ts_return_type = "(indices: Uint32Array, values: Float32Array, answer: Uint32Array, dense?: Float32Array) => number"
    )]
    pub fn lookup<'env>(&self, env: &'env Env, model: &crate::xlinear::ModelHandle) -> Result<Unknown<'env>> {
        open(env, model.slot(), Some(Rc::clone(&self.scope)))
    }
}

/// The numbers that stand for parameters, in the order of their table; a choice is the number of its text.
#[napi(catch_unwind)]
pub fn search_settings(
    #[napi(ts_arg_type = "Record<string, boolean | number | string>")] options: Object<'_>,
) -> Result<Float64Array> {
    let PredictParams { k, beam, scores, floor } = params::read(&options)?;
    let form = ScoreForm::ALL.iter().position(|form| *form == scores).unwrap_or(0);
    Ok(Float64Array::new(vec![k.into(), beam.into(), form as f64, floor.into()]))
}

/// The parameters of such numbers. The facade has checked them; others become the nearest that make sense.
fn params_of(settings: &[f64]) -> Option<PredictParams> {
    let &[k, beam, form, floor] = settings else { return None };
    let scores = *ScoreForm::ALL.get(form as usize)?;
    Some(PredictParams { k: k as u32, beam: beam as u32, scores, floor: floor as f32 })
}

/// The model that a search function asks, and the labels that it is narrowed to for good.
struct Lookup {
    slot: Rc<Slot>,
    narrowed: Option<Narrowed>,
}

impl Lookup {
    fn search(&self, env: sys::napi_env, arguments: [sys::napi_value; 5], count: usize) -> Result<u32> {
        let [indices, values, answer, dense, allowed] = arguments;
        let model = self.slot.model.borrow();
        let model = model.as_ref().ok_or_else(|| closed("the model"))?;
        let narrowed = self.narrowed.as_ref().map(|scope| scope.borrow());
        let mut scratch = self.slot.scratch.borrow_mut();
        let scratch = &mut *scratch;
        read(env, indices, TypedarrayType::uint32_array, "a Uint32Array for indices", &mut scratch.indices)?;
        read(env, values, TypedarrayType::float32_array, "a Float32Array for values", &mut scratch.values)?;
        scratch.dense.clear();
        // A call for its type is saved where none is handed in.
        if count > 3 && is_given(env, dense) {
            read(env, dense, TypedarrayType::float32_array, "a Float32Array for dense", &mut scratch.dense)?;
        }
        check_dense(&scratch.dense, model.dense())?;
        let (mut params, data, room) = answer_at(env, answer)?;
        // No answer is longer than the number of labels, and the result arrays need be no longer either.
        params.k = params.k.min(model.labels().max(1) as u32);
        let given = count > 4 && is_given(env, allowed);
        if given {
            let what = "a Uint32Array for allowed";
            read(env, allowed, TypedarrayType::uint32_array, what, &mut scratch.labels)?;
            scratch.allow(model)?;
        }
        let scope = match &narrowed {
            Some(scope) => scope.as_ref().ok_or_else(|| closed("the searcher"))?,
            None if given => &scratch.kept[0].1,
            None => &Scope::All,
        };
        let sparse =
            Row::checked(&scratch.indices, &scratch.values, model.features() - model.dense()).js()?;
        let row = FeatureRow { sparse, dense: &scratch.dense };
        model.search(&mut scratch.searcher, row, &params, scope, &mut scratch.found).js()?;
        scratch.count(env);

        let count = scratch.found.len().min(params.k as usize);
        if room < count {
            return Err(error(Internal, format!("no room for {count} labels")));
        }
        for (i, (label, score)) in scratch.found[..count].iter().enumerate() {
            // SAFETY: i < room, and the array has 2·room values of 4 bytes from `data` on by what Node-API told in
            // this call, during which JavaScript does not run. Elements of a Uint32Array are aligned.
            unsafe {
                data.add(i).write(*label);
                data.add(room + i).cast::<f32>().write(*score);
            }
        }
        Ok(count as u32)
    }
}

/// Whether an argument is another value than `undefined`.
fn is_given(env: sys::napi_env, value: sys::napi_value) -> bool {
    let mut kind = ValueType::napi_undefined;
    // SAFETY: the argument is a value of this call, and `kind` is valid for it.
    unsafe { sys::napi_typeof(env, value, &mut kind) };
    kind != ValueType::napi_undefined
}

/// What stands in front of an answer, as parameters, where the answer goes, and for how many labels it has room.
fn answer_at(env: sys::napi_env, value: sys::napi_value) -> Result<(PredictParams, *mut u32, usize)> {
    let refuse = || error(Internal, "no place for an answer");
    let (kind, length, data) = typed_array(env, value).ok_or_else(refuse)?;
    if kind != TypedarrayType::uint32_array {
        return Err(refuse());
    }
    if length < SETTINGS {
        return Err(error(
            InvalidArgument,
            "the searcher's labels and scores were transferred away: make another searcher",
        ));
    }
    // SAFETY: address and length are the array's own, which has so many words, and all bytes make an f64.
    let settings = unsafe { elements::<f64>(data, SETTINGS / 2) }.and_then(params_of).ok_or_else(refuse)?;
    // SAFETY: the array is longer, or ends there.
    let answer = unsafe { data.cast_mut().cast::<u32>().add(SETTINGS) };
    Ok((settings, answer, (length - SETTINGS) / 2))
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

/// `search(indices, values, answer, dense, allowed)`: how many labels were found. `answer` begins with the settings as four
/// f64; then come places of labels, and as many of scores, as f32. `dense` and `allowed` may be left out or `undefined`.
unsafe extern "C" fn search(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let (mut count, mut arguments, mut data) = (5, [null_mut(); 5], null_mut());
    // SAFETY: all pointers are valid for the call; missing arguments are filled with `undefined`.
    unsafe { sys::napi_get_cb_info(env, info, &mut count, arguments.as_mut_ptr(), null_mut(), &mut data) };
    // SAFETY: the data is the lookup of `open`, freed only after the function is collected.
    let lookup = unsafe { &*data.cast::<Lookup>() };
    let mut result = null_mut();
    match guard(|| lookup.search(env, arguments, count)) {
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

/// Frees the lookup of a collected function.
unsafe extern "C" fn free(env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // SAFETY: the data is the box of `open`, and this runs once.
    let lookup = unsafe { Box::from_raw(data.cast::<Lookup>()) };
    if Rc::strong_count(&lookup.slot) == 1 {
        lookup.slot.clear(&Env::from_raw(env));
    }
}

/// Makes a search function of a model.
pub fn open<'env>(env: &'env Env, slot: Rc<Slot>, narrowed: Option<Narrowed>) -> Result<Unknown<'env>> {
    let raw = env.raw();
    let check = |status| match status {
        sys::Status::napi_ok => Ok(()),
        _ => Err(error(Internal, format!("Node-API refuses to make a searcher (status {status})"))),
    };
    let data = Box::into_raw(Box::new(Lookup { slot, narrowed })).cast::<c_void>();
    let mut function = null_mut();
    // SAFETY: the name is valid for the call, and `data` lives until the finalizer below frees it.
    check(unsafe {
        sys::napi_create_function(raw, c"search".as_ptr(), 6, Some(search), data, &mut function)
    })?;
    // SAFETY: `free` takes the box back exactly once, when the function is gone.
    check(unsafe { sys::napi_add_finalizer(raw, function, data, Some(free), null_mut(), null_mut()) })?;
    // SAFETY: the function was made above in this scope.
    Ok(unsafe { Unknown::from_raw_unchecked(raw, function) })
}
