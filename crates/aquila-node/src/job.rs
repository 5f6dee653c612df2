//! Heavy calls: each on a thread of its own, settled through a promise.
//!
//! A running job keeps the process alive, as any pending promise of work does; its progress listener does not.
//! When the environment goes away first (a terminated worker, `process.exit`), its jobs are cancelled.

use crate::error::{Error, IntoJs, Result, error, rejection};
use aquila::{ErrorCode, memory};
use napi::bindgen_prelude::{Function, Object, ToNapiValue};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use napi_derive::napi;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How far a job has come.
#[napi(object, object_from_js = false)]
pub struct ProgressEvent {
    /// What is being done.
    pub stage: &'static str,
    /// Units of work done in this stage.
    pub done: f64,
    /// Units of work of this stage in all.
    pub total: f64,
    /// While layers are learned: the first that is not learned to its end.
    pub layer: Option<u32>,
    /// Rows of the input.
    pub rows: f64,
    /// Labels of the input.
    pub labels: f64,
    /// Seconds since the call began.
    pub seconds: f64,
    /// Seconds until this stage ends; `undefined` while unknown.
    pub eta: Option<f64>,
    /// The forecast peak of memory in bytes, in the first report.
    pub forecast_bytes: Option<f64>,
}

/// What steers a job, as numbers from JavaScript; 0 means the default of each.
#[napi(object)]
pub struct ControlOptions {
    /// How many threads.
    pub threads: u32,
    /// Where all randomness starts.
    pub seed: f64,
    /// Refuse when the forecast passes this many bytes.
    pub memory_limit: f64,
}

/// Wakes the listener. Weak: it never keeps the process alive. One place in its queue is enough, for a call
/// that waits there fetches everything that came before it.
type Wake = ThreadsafeFunction<(), (), (), Status, false, true, 1>;

/// Reports that wait for JavaScript: at most the latest of each stage, so that the last is never lost.
type Reports = Arc<Mutex<Vec<aquila::Progress>>>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Steers one job: made before it, given to it, finished after it.
#[napi]
pub struct Control {
    engine: aquila::Control,
    reports: Reports,
    /// The engine's listener holds the only other owner; both are dropped when the job is over, for the
    /// listener's closure refers to this object and would else keep itself alive.
    wake: Option<Arc<Wake>>,
}

#[napi]
impl Control {
    /// A control whose `wake` is called, whenever there is news, to fetch it with `drain`.
    #[napi(catch_unwind, constructor)]
    pub fn new(options: ControlOptions, wake: Option<Function<'_, (), ()>>) -> Result<Self> {
        let mut engine = aquila::Control::with_threads(options.threads as usize);
        engine.seed = options.seed as u64;
        engine.memory_limit = options.memory_limit as u64;
        let reports = Reports::default();
        let wake = match wake {
            None => None,
            Some(listener) => {
                let wake: Wake = listener
                    .build_threadsafe_function()
                    .callee_handled::<false>()
                    .weak::<true>()
                    .max_queue_size::<1>()
                    .build()
                    .js()?;
                Some(Arc::new(wake))
            }
        };
        Ok(Self { engine, reports, wake })
    }

    /// Asks the job to end as soon as it can.
    #[napi(catch_unwind)]
    pub fn cancel(&self) {
        self.engine.cancel_flag().store(true, Ordering::Relaxed);
    }

    /// Takes the reports that came since the last time.
    #[napi(catch_unwind)]
    pub fn drain(&self) -> Vec<ProgressEvent> {
        lock(&self.reports)
            .drain(..)
            .map(|p| ProgressEvent {
                stage: p.stage,
                done: p.done as f64,
                total: p.total as f64,
                layer: p.layer,
                rows: p.rows as f64,
                labels: p.labels as f64,
                seconds: p.seconds,
                eta: (p.eta >= 0.0).then_some(p.eta),
                forecast_bytes: p.forecast_bytes.map(|bytes| bytes as f64),
            })
            .collect()
    }

    /// Lets go of the listener and takes the last reports.
    #[napi(catch_unwind)]
    pub fn finish(&mut self) -> Vec<ProgressEvent> {
        self.wake = None;
        self.drain()
    }

    /// The engine's control of this job.
    fn start(&mut self) -> aquila::Control {
        let mut engine = self.engine.clone();
        if let Some(wake) = self.wake.take() {
            let reports = Arc::clone(&self.reports);
            engine.on_progress(move |progress| {
                let mut waiting = lock(&reports);
                match waiting.last_mut() {
                    Some(last) if last.stage == progress.stage => *last = *progress,
                    _ => waiting.push(*progress),
                }
                drop(waiting);
                // A full queue means that a wake-up waits already and will fetch this report too.
                wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
            });
        }
        engine
    }
}

thread_local! {
    /// Cancel flags of the jobs that this thread's environment started; `None` until its clean-up is arranged.
    static RUNNING: RefCell<Option<Vec<Weak<AtomicBool>>>> = const { RefCell::new(None) };
}

/// Cancels the jobs of this thread's environment, and removes the files that they had not finished: the process may
/// end before they get to it.
#[napi(catch_unwind)]
pub fn leave() {
    let jobs = RUNNING.with_borrow_mut(|running| running.as_mut().map(std::mem::take)).unwrap_or_default();
    jobs.iter().filter_map(Weak::upgrade).for_each(|flag| flag.store(true, Ordering::Relaxed));
    aquila::data::remove_cancelled();
}

/// Makes the end of the environment cancel the job, so that a terminated worker leaves no work behind.
fn cancel_with_environment(env: &Env, flag: &Arc<AtomicBool>) -> napi::Result<()> {
    RUNNING.with_borrow_mut(|running| {
        if running.is_none() {
            env.add_env_cleanup_hook((), |()| leave())?;
        }
        let jobs = running.get_or_insert_default();
        jobs.retain(|job| job.strong_count() > 0);
        jobs.push(Arc::downgrade(flag));
        Ok(())
    })
}

/// The text of a panic.
fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Runs engine code so that no panic crosses into JavaScript: the one place where panics are caught.
pub fn guard<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let text = panic_text(&*payload);
        // Dropping the payload of a foreign panic may panic again.
        let message = format!("a defect of Aquila, please report it: {text}");
        std::mem::forget(payload);
        Err(error(ErrorCode::Internal, message))
    })
}

/// Starts `work` on a thread called `name` and returns the promise of what `done`, back on JavaScript's thread,
/// makes of its result.
pub fn run<'env, T, R>(
    env: &'env Env,
    name: &str,
    control: &mut Control,
    work: impl FnOnce(&aquila::Control) -> aquila::Result<T> + Send + 'static,
    done: impl FnOnce(Env, T) -> Result<R> + Send + 'static,
) -> Result<Object<'env>>
where
    T: Send + 'static,
    R: ToNapiValue + 'static,
{
    let engine = control.start();
    cancel_with_environment(env, &engine.cancel_flag()).js()?;
    let (deferred, promise) = env.create_deferred().js()?;
    let unstarted = deferred.clone();
    let body = move || {
        let result = guard(|| memory::headroom().and_then(|()| work(&engine)).js());
        // The listener goes before the promise settles, so that nothing is reported after it.
        drop(engine);
        deferred.resolve(move |env| {
            result.and_then(|value| guard(|| done(env, value))).map_err(|e: Error| rejection(&env, e))
        });
    };
    if let Err(e) = std::thread::Builder::new().name(format!("aquila-{name}")).spawn(body) {
        // An unsettled promise would keep the process alive for ever.
        let e = error(ErrorCode::Internal, format!("cannot start a thread: {e}"));
        unstarted.reject(rejection(env, e));
    }
    Ok(promise)
}

/// Bytes that are freed in well under a millisecond.
const SMALL: usize = 8 << 20;

/// Frees what is held. To give many pages back to the system takes milliseconds for each hundred megabytes, so that what is
/// large goes on a thread of its own.
pub fn free(held: impl Send + 'static, bytes: usize) {
    if bytes > SMALL {
        // Where no thread starts, what the closure holds is dropped here.
        let _ = std::thread::Builder::new().name("aquila-free".to_owned()).spawn(move || drop(held));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_says_what_happened() {
        let e = guard::<()>(|| panic!("row {}", 7)).unwrap_err();
        assert_eq!(e.status.as_ref(), "INTERNAL");
        assert_eq!(e.reason, "a defect of Aquila, please report it: row 7");
        let e = guard::<()>(|| std::panic::panic_any(3)).unwrap_err();
        assert!(e.reason.ends_with("no message"));
    }
}
