//! One mapped model for each file in the whole process, so that worker threads share it.

use aquila::xlinear::Model;
use aquila::{Error, Result};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
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

static OPEN: LazyLock<Mutex<HashMap<Key, Weak<Model>>>> = LazyLock::new(Mutex::default);

/// The model of a file, mapped now or by someone who still holds it.
pub fn open(path: &Path) -> Result<Arc<Model>> {
    let full = path.canonicalize().map_err(|e| Error::io(path, &e))?;
    let entry = full.metadata().map_err(|e| Error::io(path, &e))?;
    let key = Key { path: full, changed: entry.modified().ok(), bytes: entry.len(), number: number(&entry) };
    // Held while the file is mapped, which takes milliseconds, so that two who ask at once get the same model.
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(model) = open.get(&key).and_then(Weak::upgrade) {
        return Ok(model);
    }
    open.retain(|_, model| model.strong_count() > 0);
    let model = Arc::new(Model::open(path)?);
    open.insert(key, Arc::downgrade(&model));
    Ok(model)
}
