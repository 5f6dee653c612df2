//! What steers a heavy call from outside: threads, cancellation, progress, the memory limit.

use crate::error::{Error, ErrorCode, Result, fail};
use crate::memory;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// What heavy calls report that they are doing, in the order of a call that has several.
pub mod stage {
    /// Memory was forecast: the first report of work that has a forecast.
    pub const FORECAST: &str = "forecast";
    /// Labels of groups become labels of samples, by embeddings.
    pub const ASSIGN: &str = "assign";
    /// Embeddings of labels are learned.
    pub const EMBED: &str = "embed";
    /// Labels of groups become labels of samples, by rankers.
    pub const REFINE: &str = "refine";
    /// Labels become vectors.
    pub const LABEL_VECTORS: &str = "labelVectors";
    /// Vectors become a tree.
    pub const TREE: &str = "tree";
    /// The upper layers are learned that say where rows go.
    pub const MATCHER: &str = "matcher";
    /// Labels are hung under further leaves.
    pub const OVERLAP: &str = "overlap";
    /// The classifiers of all layers are learned.
    pub const LAYERS: &str = "layers";
    /// Weights are brought to their places in the model.
    pub const LAYOUT: &str = "layout";
    /// Rows get their labels.
    pub const PREDICT: &str = "predict";

    /// Every stage.
    pub const ALL: [&str; 11] =
        [FORECAST, ASSIGN, EMBED, REFINE, LABEL_VECTORS, TREE, MATCHER, OVERLAP, LAYERS, LAYOUT, PREDICT];
}

/// A report of how far a heavy call has come.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// What is being done: one of [`stage::ALL`].
    pub stage: &'static str,
    /// Units of work done in this stage.
    pub done: u64,
    /// Units of work of this stage in all.
    pub total: u64,
    /// While layers are learned: the first that is not learned to its end, from 0 at the root. They are learned side by
    /// side, the costliest parts first.
    pub layer: Option<u32>,
    /// Rows of the input.
    pub rows: u64,
    /// Labels of the input.
    pub labels: u64,
    /// Seconds since the call began.
    pub seconds: f64,
    /// Seconds until this stage ends, by the speed so far; negative while unknown.
    pub eta: f64,
    /// The forecast peak of memory, in bytes, in the stage `"forecast"`.
    pub forecast_bytes: Option<u64>,
}

/// Time between two looks at the flag while the work is done elsewhere.
const LOOK: Duration = Duration::from_millis(10);

type OnProgress = Arc<dyn Fn(&Progress) + Send + Sync>;

/// Threads, cancellation, progress and the memory limit of one heavy call. Cloning shares the cancel flag.
#[derive(Clone, Default)]
pub struct Control {
    /// How many threads to use; 0 means as many as the machine offers.
    pub threads: usize,
    /// Where all randomness of the call starts. Results never depend on `threads`.
    pub seed: u64,
    /// Refuse with `MEMORY_LIMIT` when the forecast passes this many bytes; 0 means no limit.
    pub memory_limit: u64,
    cancel: Arc<AtomicBool>,
    progress: Option<OnProgress>,
    /// Whether the call is part of one whose forecast counted it.
    part: bool,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control")
            .field("threads", &self.threads)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

thread_local! {
    /// Whether this thread belongs to the pool of a heavy call.
    static IN_POOL: Cell<bool> = const { Cell::new(false) };
}

impl Control {
    /// A control with this many threads (0: all) and nothing else set.
    pub fn with_threads(threads: usize) -> Self {
        Self { threads, ..Self::default() }
    }

    /// The same without a listener, for calls inside a call.
    pub fn without_progress(&self) -> Self {
        Self { progress: None, ..self.clone() }
    }

    /// The same without forecasts and their limit, for calls inside a call whose forecast counted them.
    pub(crate) fn subrun(&self) -> Self {
        Self { part: true, ..self.clone() }
    }

    /// The flag that cancels the call once it is true.
    pub fn cancel_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }

    /// Sets the listener. It is called from worker threads and must be quick.
    pub fn on_progress(&mut self, listener: impl Fn(&Progress) + Send + Sync + 'static) {
        self.progress = Some(Arc::new(listener));
    }

    /// Tells the listener, where there is one.
    pub fn report(&self, progress: &Progress) {
        if let Some(listener) = &self.progress {
            listener(progress);
        }
    }

    /// Whether the call was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// An error once the call was cancelled. Work loops ask at least every few milliseconds.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// Whether forecasts are made: not inside a call whose forecast counted this one.
    pub(crate) fn wants_forecast(&self) -> bool {
        !self.part
    }

    /// Refuses work that needs more memory than the limit, or than the system would give though it needed but the third
    /// of its forecast that tests hold it to. `cure` says what helps but a higher limit.
    pub(crate) fn fits(&self, what: &str, forecast: u64, cure: &str) -> Result<()> {
        if !self.wants_forecast() {
            return Ok(());
        }
        if self.memory_limit > 0 && forecast > self.memory_limit {
            fail!(
                MemoryLimit,
                "{what} is forecast to need {}: raise the limit, {cure}",
                beyond(forecast.into(), self.memory_limit)
            );
        }
        memory::granted(forecast / 3, what)
    }

    /// Refuses work on so many rows and labels that needs more memory than the limit, and tells the listener the forecast of
    /// other; `cure` says what helps but a higher limit.
    pub(crate) fn allows(
        &self,
        what: &str,
        (rows, labels): (usize, usize),
        forecast: u64,
        cure: &str,
    ) -> Result<()> {
        if !self.wants_forecast() {
            return Ok(());
        }
        self.fits(what, forecast, cure)?;
        let (rows, labels) = (rows as u64, labels as u64);
        self.report(&Progress {
            stage: stage::FORECAST,
            done: 1,
            total: 1,
            rows,
            labels,
            forecast_bytes: Some(forecast),
            ..Progress::default()
        });
        Ok(())
    }

    /// The number of threads that this call uses.
    pub fn thread_count(&self) -> usize {
        if self.threads > 0 {
            return self.threads;
        }
        std::thread::available_parallelism().map_or(1, |n| n.get())
    }

    /// Runs `work` in a pool of [`Control::thread_count`] threads. A heavy call makes one pool, at its public border: what
    /// it calls, other public functions among it, finds itself in that pool and runs there.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        if IN_POOL.get() {
            return Ok(work());
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.thread_count())
            .start_handler(|_| IN_POOL.set(true))
            .thread_name(|i| format!("aquila-{i}"))
            .build()
            .map_err(|e| {
                Error::new(ErrorCode::Internal, format!("cannot start {} threads: {e}", self.thread_count()))
            })?;
        Ok(pool.install(work))
    }

    /// Runs `work` on a thread of its own and returns when it ends or the call is cancelled, whatever comes first: files
    /// that give nothing, a slow disk and the release of gigabytes hold nobody then. The work sees the flag as well and
    /// goes away by itself, with all that it holds.
    pub fn run_detached<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (control, (done, ended)) = (self.without_progress(), mpsc::channel());
        // Nobody takes the result of a cancelled call.
        let body = move || drop(done.send(work(&control)));
        let thread = thread::Builder::new()
            .name("aquila-detached".to_owned())
            .spawn(body)
            .map_err(|e| Error::new(ErrorCode::Internal, format!("cannot start a thread: {e}")))?;
        loop {
            self.check()?;
            match ended.recv_timeout(LOOK) {
                Ok(result) => return self.check().and(result),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("work that ends without a panic sends its result"),
        }
    }
}

/// Bytes beside the limit that they pass, as a person reads them: rounded apart, so that near ones do not read alike. A
/// limit that was set as `20M`, which is a power of 1024, is also named as it was set.
pub(crate) fn beyond(bytes: u128, limit: u64) -> String {
    let size = |bytes: f64, round: fn(f64) -> f64| {
        let mut units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")].into_iter();
        match units.find(|(unit, _)| bytes >= *unit) {
            Some((unit, name)) => format!("{} {name}", round(bytes / unit * 10.0) / 10.0),
            None => format!("{bytes} bytes"),
        }
    };
    let decimal = size(limit as f64, f64::floor);
    let limit = binary(limit).map_or(decimal.clone(), |binary| format!("{binary} ({decimal})"));
    format!("{}, more than the limit of {limit}", size(bytes as f64, f64::ceil))
}

/// Bytes that are a short number in a unit of powers of 1024, such as 1.5 GiB.
fn binary(bytes: u64) -> Option<String> {
    let mut units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")].into_iter();
    let (shift, name) = units.find(|(shift, _)| bytes >> shift > 0)?;
    let unit = (1u64 << shift) as f64;
    let short = (bytes as f64 / unit * 100.0).round() / 100.0;
    // Bytes are whole: such a fraction of a unit need not be.
    ((short * unit - bytes as f64).abs() < 1.0).then(|| format!("{short} {name}"))
}

#[cfg(test)]
mod tests {
    use super::{Control, beyond};
    use crate::error::{Error, ErrorCode};
    use std::sync::atomic::Ordering;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn a_call_inside_a_call_runs_in_its_pool() {
        let pool = || (rayon::current_num_threads(), thread::current().id());
        let nested = || (pool(), Control::with_threads(3).install(pool));
        let (outer, inner) = Control::with_threads(1).install(nested).unwrap();
        assert_eq!(inner, Ok(outer));
        assert_eq!(Control::with_threads(3).install(pool).unwrap().0, 3);
    }

    #[test]
    fn work_apart_gives_what_it_gives_and_panics_as_it_panics() {
        let control = Control::default();
        assert_eq!(control.run_detached(|_| Ok(7)), Ok(7));
        let own = Error::new(ErrorCode::Parse, "own");
        assert_eq!(control.run_detached(move |_| Err::<(), _>(own)).unwrap_err().message(), "own");
        let panicked =
            std::panic::catch_unwind(|| Control::default().run_detached::<()>(|_| panic!("a defect")));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"a defect"));
    }

    #[test]
    fn work_apart_is_not_waited_for_once_the_call_is_cancelled() {
        let control = Control::default();
        let (let_go, held) = mpsc::channel::<()>();
        let cancelled = control.run_detached(move |control| {
            control.cancel_flag().store(true, Ordering::Relaxed);
            held.recv().map_err(|e| Error::new(ErrorCode::Io, e.to_string()))
        });
        assert_eq!(cancelled.unwrap_err().code(), ErrorCode::Cancelled);
        // Still at work, though nobody waits.
        let_go.send(()).unwrap();
        // What fails because of it is not told as its own failure.
        let control = Control::default();
        let failed = control.run_detached(|control| {
            control.cancel_flag().store(true, Ordering::Relaxed);
            Err::<(), _>(Error::new(ErrorCode::Parse, "cut short"))
        });
        assert_eq!(failed.unwrap_err().code(), ErrorCode::Cancelled);
    }

    #[test]
    fn sizes_have_fitting_units_and_stay_apart() {
        for (bytes, limit, text) in [
            (1001, 1000, "1.1 kB, more than the limit of 1 kB"),
            (326_210, 1024, "326.3 kB, more than the limit of 1 KiB (1 kB)"),
            (30_000_000, 20 << 20, "30 MB, more than the limit of 20 MiB (20.9 MB)"),
            (3_000_000_000, 2_469_606_195, "3 GB, more than the limit of 2.3 GiB (2.4 GB)"),
            (3_000_000_000, 2_469_606_200, "3 GB, more than the limit of 2.4 GB"),
            (2_000_000_001, 2_000_000_000, "2.1 GB, more than the limit of 2 GB"),
            (7, 3, "7 bytes, more than the limit of 3 bytes"),
            (u128::from(u64::MAX), 1 << 30, "18446744.1 TB, more than the limit of 1 GiB (1 GB)"),
        ] {
            assert_eq!(beyond(bytes, limit), text);
        }
    }
}
