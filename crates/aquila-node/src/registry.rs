//! One mapped model for each file in the whole process, so that worker threads share it.

use aquila::xlinear::Model;
use aquila::{Error, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

/// A file's content, as far as its directory entry tells: a replaced file is another model.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    path: PathBuf,
    changed: Option<SystemTime>,
    bytes: u64,
    /// The clock of a file system is coarse: two files written in one of its ticks differ in this alone.
    number: u64,
}

#[cfg(unix)]
fn number(entry: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(entry)
}

#[cfg(not(unix))]
fn number(_: &std::fs::Metadata) -> u64 {
    0
}

type Models = HashMap<Key, Weak<Model>>;

static OPEN: LazyLock<Mutex<Models>> = LazyLock::new(Mutex::default);

/// Never held across work on the disk: a file that does not open is to hold up nobody else's.
fn models() -> MutexGuard<'static, Models> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn held(models: &Models, key: &Key) -> Option<Arc<Model>> {
    models.get(key).and_then(Weak::upgrade)
}

/// The model of a file, mapped now or by someone who still holds it.
pub fn open(path: &Path) -> Result<Arc<Model>> {
    let full = path.canonicalize().map_err(|e| Error::io(path, e))?;
    let entry = full.metadata().map_err(|e| Error::io(path, e))?;
    let key = Key { path: full, changed: entry.modified().ok(), bytes: entry.len(), number: number(&entry) };
    let known = held(&models(), &key);
    if let Some(model) = known {
        return Ok(model);
    }
    let model = Arc::new(Model::open(path)?);
    let mut models = models();
    // Of several who mapped it side by side, all take what came first.
    if let Some(first) = held(&models, &key) {
        return Ok(first);
    }
    models.retain(|_, model| model.strong_count() > 0);
    models.insert(key, Arc::downgrade(&model));
    Ok(model)
}
