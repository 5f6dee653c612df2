//! A file is written whole or not at all.

use super::watched::Watched;
use crate::control::Control;
use crate::error::{Error, ErrorCode, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const BUFFER: usize = 256 << 10;
/// Symbolic links followed one after the other, as many as Linux follows: more lead round in a circle.
const LINKS: usize = 40;

/// Writes a file so that its name shows the old content or the whole new one, also after a crash.
///
/// `write` fills a temporary file in the same folder. It is then synced to disk and renamed over `path`; where
/// anything fails or the call is cancelled before, it is removed and `path` stays as it was. A symbolic link stays a
/// link: its target is replaced, or made where it leads nowhere. To stop with an error of the engine, `write` returns it inside [`io::Error::other`].
///
/// ```
/// # fn main() -> Result<(), aquila::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.txt");
/// use std::io::Write;
///
/// aquila::data::write_atomically(&path, &aquila::Control::default(), |file| file.write_all(b"whole"))?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"whole");
/// # Ok(())
/// # }
/// ```
pub fn write_atomically<T>(
    path: impl AsRef<Path>,
    control: &Control,
    write: impl FnOnce(&mut Watched<'_, BufWriter<File>>) -> io::Result<T>,
) -> Result<T> {
    let path = path.as_ref();
    try_write(path, control, write).map_err(|error| match error.downcast::<Error>() {
        Ok(own) => own,
        Err(error) => Error::io(path, error),
    })
}

fn try_write<T>(
    path: &Path,
    control: &Control,
    write: impl FnOnce(&mut Watched<'_, BufWriter<File>>) -> io::Result<T>,
) -> io::Result<T> {
    control.check().map_err(io::Error::other)?;
    let target = behind_links(path)?;
    // A rename would put a file in the place of a device or a pipe: for root, of /dev/null.
    if fs::metadata(&target).is_ok_and(|m| !m.is_file()) {
        let message = format!("{}: no regular file stands there: name a file to write to", path.display());
        return Err(io::Error::other(Error::new(ErrorCode::Io, message)));
    }
    let folder = folder_of(&target);
    let (file, temporary) = Temporary::create(folder)?;
    let mut writer = Watched::new(BufWriter::with_capacity(BUFFER, file), control);
    let written = write(&mut writer).and_then(|value| writer.flush().map(|()| value));
    let file = writer.into_inner().into_parts().0;
    match written {
        Ok(value) => {
            // The file is closed there too: Windows renames no open one.
            control.run_detached(move |_| Ok(file.sync_all())).map_err(io::Error::other)??;
            temporary.rename(&target)?;
            sync_folder(folder);
            Ok(value)
        }
        Err(error) => {
            // The name goes first, so that the time it takes to give up gigabytes falls on the last who has them open.
            drop(temporary);
            let _ = control.run_detached(move |_| {
                drop(file);
                Ok(())
            });
            Err(error)
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What a path leads to in the end, whether it is there or not.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..LINKS {
        match fs::read_link(&target) {
            // An absolute one takes the folder's place.
            Ok(next) => target = folder_of(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    let message = format!("{}: its symbolic links lead to no end: name a file to write to", path.display());
    Err(io::Error::other(Error::new(ErrorCode::Io, message)))
}

/// A file that disappears unless it is renamed.
struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    fn create(folder: &Path) -> io::Result<(File, Self)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".aquila-{}-{number}.tmp", std::process::id()));
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((file, Self { path, renamed: false })),
                // Left by a killed process that had our number, as all first processes of a container have.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) if !folder.exists() => {
                    return Err(io::Error::new(e.kind(), "its folder does not exist: make it first"));
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes the rename itself survive a power cut. Some file systems cannot sync a folder; the file is whole anyway.
fn sync_folder(folder: &Path) {
    if cfg!(unix)
        && let Ok(folder) = File::open(folder)
    {
        let _ = folder.sync_all();
    }
}
