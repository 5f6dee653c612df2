//! Files that are gone unless they are renamed, also those of processes that were killed.
//!
//! The name tells for whom such a file stands and who writes it: `.aquila-‹target›-‹process›-‹start›-‹system›-‹number›.tmp`,
//! the first a checksum of the target's name. Whoever replaces the same target takes away what dead processes left for
//! it. On Linux a process is dead where the same system, of the same boot and the same namespace of processes, knows no
//! such number, or one that began at another time; all other files are left for a day, for nobody can tell whether
//! their writers live.

use crate::control::Control;
use crate::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// A file is left for so long where nobody can tell whether its writer lives.
const LEFT: Duration = Duration::from_secs(24 * 60 * 60);
const PREFIX: &str = ".aquila-";
const SUFFIX: &str = ".tmp";

/// The files that are being written, with the flags that cancel their writers.
static WRITTEN: Mutex<Vec<(PathBuf, Arc<AtomicBool>)>> = Mutex::new(Vec::new());

fn written() -> MutexGuard<'static, Vec<(PathBuf, Arc<AtomicBool>)>> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of cancelled calls, whose writers would do that too, but not where the process ends first.
pub fn remove_cancelled() {
    let cancelled: Vec<PathBuf> = written()
        .iter()
        .filter(|(_, cancelled)| cancelled.load(Ordering::Relaxed))
        .map(|(path, _)| path.clone())
        .collect();
    cancelled.iter().for_each(|path| drop(fs::remove_file(path)));
}

/// A file that disappears unless it is renamed.
pub(super) struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    /// Makes a file beside a target, that nobody may read who may not read the target.
    pub fn create(
        target: &Path,
        folder: &Path,
        mode: Option<u32>,
        control: &Control,
    ) -> io::Result<(File, Self)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let owner = &*OWNER;
            let name = format!("{}{}-{number}{SUFFIX}", beginning(target), owner.text());
            let path = folder.join(name);
            // Before it is there: whoever removes the files of cancelled calls must not miss it.
            written().push((path.clone(), control.cancel_flag()));
            let made = Self { path, renamed: false };
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true);
            #[cfg(unix)]
            if let Some(mode) = mode {
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode & 0o600);
            }
            #[cfg(not(unix))]
            let _ = mode;
            match options.open(&made.path) {
                Ok(file) => {
                    control.check().map_err(io::Error::other)?;
                    return Ok((file, made));
                }
                // Another's: dropped here, it would be removed.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => made.forget(),
                Err(e) => {
                    made.forget();
                    if !folder.exists() {
                        return Err(io::Error::new(e.kind(), "its folder does not exist: make it first"));
                    }
                    return Err(e);
                }
            }
        }
    }

    pub fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target).map_err(|error| {
            // Removed under our hands, as the process ends.
            let cancelled =
                written().iter().any(|(path, flag)| *path == self.path && flag.load(Ordering::Relaxed));
            if cancelled { io::Error::other(Error::cancelled()) } else { error }
        })?;
        self.renamed = true;
        Ok(())
    }

    fn forget(mut self) {
        self.renamed = true;
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
        written().retain(|(path, _)| *path != self.path);
    }
}

/// How the names of all temporary files of a target begin.
fn beginning(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().as_encoded_bytes();
    format!("{PREFIX}{:08x}-", crc32fast::hash(name))
}

/// Removes what dead processes left of the same target. Whatever fails is left to the next.
pub(super) fn sweep(target: &Path, folder: &Path) {
    let (beginning, Ok(entries)) = (beginning(target), fs::read_dir(folder)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some(rest) = name.strip_prefix(&beginning).and_then(|rest| rest.strip_suffix(SUFFIX)) else {
            continue;
        };
        let Some(owner) = rest.rsplit_once('-').and_then(|(owner, _)| Owner::read(owner)) else { continue };
        let old = || {
            let changed = entry.metadata().and_then(|m| m.modified());
            changed.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > LEFT))
        };
        if owner.is_dead().unwrap_or_else(old) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A process, told apart from all others that had or will have its number, here or on another system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    process: u32,
    /// When it began, in ticks since the boot; 0 where that is not known.
    start: u64,
    /// The boot and the namespace in which the number means it; 0 where that is not known.
    system: u32,
}

static OWNER: LazyLock<Owner> = LazyLock::new(|| {
    let process = std::process::id();
    Owner { process, start: start_of("self").unwrap_or(0), system: system().unwrap_or(0) }
});

impl Owner {
    fn text(self) -> String {
        format!("{}-{:x}-{:08x}", self.process, self.start, self.system)
    }

    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let process = parts.next()?.parse().ok()?;
        let start = u64::from_str_radix(parts.next()?, 16).ok()?;
        let system = u32::from_str_radix(parts.next()?, 16).ok()?;
        parts.next().is_none().then_some(Self { process, start, system })
    }

    /// Whether it is gone; `None` where that cannot be told.
    fn is_dead(self) -> Option<bool> {
        let own = *OWNER;
        if own.start == 0 || own.system == 0 || self.system != own.system || self.start == 0 {
            return None;
        }
        // Where the first process does not show, others' are hidden too.
        if !Path::new("/proc/1").exists() {
            return None;
        }
        match start_of(&self.process.to_string()) {
            Some(start) => Some(start != self.start),
            None => Some(!Path::new(&format!("/proc/{}", self.process)).exists()),
        }
    }
}

/// When a process began: the 22nd field of its state, the 20th behind its name, which may hold blanks and brackets.
fn start_of(process: &str) -> Option<u64> {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    state.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

fn system() -> Option<u32> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(crc32fast::hash(&[&boot, namespace.as_os_str().as_encoded_bytes()].concat()).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_read_as_they_are_written() {
        let owner = Owner { process: 7, start: 0xabc, system: 0x12 };
        assert_eq!(Owner::read(&owner.text()), Some(owner));
        for text in ["", "7", "7-x-00000012", "7-abc-00000012-3", "-7-abc-1"] {
            assert_eq!(Owner::read(text), None, "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_what_dead_processes_left_for_the_target_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let (target, other) = (folder.path().join("a"), folder.path().join("b"));
        let own = *OWNER;
        assert!(own.start > 0 && own.system > 0, "{own:?}");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let living = Owner { process: child.id(), start: start_of(&child.id().to_string()).unwrap(), ..own };
        let put = |target: &Path, owner: Owner| {
            let path = folder.path().join(format!("{}{}-0{SUFFIX}", beginning(target), owner.text()));
            fs::write(&path, "half").unwrap();
            path
        };
        let again = Owner { start: living.start + 1, ..living };
        let elsewhere = Owner { system: own.system ^ 1, start: 1, ..own };
        let unknown = Owner { start: 0, ..own };
        let stay = [own, living, elsewhere, unknown].map(|owner| put(&target, owner));
        let foreign = put(&other, again);
        let odd = folder.path().join(format!("{}mine{SUFFIX}", beginning(&target)));
        fs::write(&odd, "mine").unwrap();
        let goes = put(&target, again);
        let old = put(&target, Owner { process: 1, ..elsewhere });
        let day_ago = SystemTime::now() - LEFT - Duration::from_secs(60);
        File::options().write(true).open(&old).unwrap().set_modified(day_ago).unwrap();
        sweep(&target, folder.path());
        assert!(stay.iter().all(|path| path.exists()) && foreign.exists() && odd.exists());
        assert!(!goes.exists() && !old.exists());
        child.kill().unwrap();
        child.wait().unwrap();
        sweep(&target, folder.path());
        assert!(!stay[1].exists() && stay[0].exists());
    }

    #[test]
    fn files_of_cancelled_calls_are_removed_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        let (cancelled, other) = (Control::default(), Control::default());
        let (_, gone) = Temporary::create(&target, folder.path(), None, &cancelled).unwrap();
        let (_, stays) = Temporary::create(&target, folder.path(), None, &other).unwrap();
        cancelled.cancel_flag().store(true, Ordering::Relaxed);
        remove_cancelled();
        assert!(!gone.path.exists() && stays.path.exists());
        let own = gone.rename(&target).unwrap_err().downcast::<Error>().unwrap();
        assert_eq!(own.code(), crate::ErrorCode::Cancelled);
        assert!(Temporary::create(&target, folder.path(), None, &cancelled).is_err());
        drop(stays);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
