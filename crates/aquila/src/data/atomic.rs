//! A file is written whole or not at all.

use super::temporary::{Temporary, sweep};
use super::watched::Watched;
use crate::control::Control;
use crate::error::{Error, ErrorCode, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const BUFFER: usize = 256 << 10;
/// Symbolic links followed one after the other, as many as Linux follows: more lead round in a circle.
const LINKS: usize = 40;

/// Writes a file so that its name shows the old content or the whole new one, also after a crash.
///
/// `write` fills a temporary file in the same folder. It is then synced to disk and renamed over `path`; where
/// anything fails or the call is cancelled before, it is removed and `path` stays as it was. A symbolic link stays a
/// link: its target is replaced, or made where it leads nowhere. A file that is replaced leaves its rights to the new one,
/// and its owner where the system allows that; one that may not be written to is refused. To stop with an error of the engine, `write` returns it inside [`io::Error::other`].
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
    let kept = Kept::of(&target, path)?;
    let folder = folder_of(&target);
    let mode = kept.as_ref().and_then(Kept::mode);
    let (file, temporary) = Temporary::create(&target, folder, mode, control)?;
    let mut writer = Watched::new(BufWriter::with_capacity(BUFFER, file), control);
    let written = write(&mut writer).and_then(|value| writer.flush().map(|()| value));
    let file = writer.into_inner().into_parts().0;
    match written {
        Ok(value) => {
            // The file is closed there too: Windows renames no open one.
            let sync = move |_: &Control| {
                Ok(kept.map_or(Ok(()), |kept| kept.give(&file)).and_then(|()| file.sync_all()))
            };
            control.run_detached(sync).map_err(io::Error::other)??;
            temporary.rename(&target)?;
            sync_folder(folder);
            sweep(&target, folder);
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

/// What is to be kept of a file that is replaced.
struct Kept {
    #[cfg(unix)]
    entry: fs::Metadata,
}

impl Kept {
    /// Of a file that may be replaced; refuses one that may not be written to.
    fn of(target: &Path, path: &Path) -> io::Result<Option<Self>> {
        let Ok(entry) = fs::metadata(target) else { return Ok(None) };
        let refuse = |why: &str| {
            Err(io::Error::other(Error::new(ErrorCode::Io, format!("{}: {why}", path.display()))))
        };
        if !entry.is_file() {
            // A rename would put a file in the place of a device or a pipe: for root, of /dev/null.
            return refuse("no regular file stands there: name a file to write to");
        }
        let denied = || {
            let kind = OpenOptions::new().write(true).open(target).err().map(|e| e.kind());
            matches!(kind, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem))
        };
        // The first user may write to any file, and means it by the mark alone.
        if entry.permissions().readonly() || cfg!(unix) && denied() {
            return refuse("the file that stands there is read-only: make it writable, or name another one");
        }
        Ok(Some(Self {
            #[cfg(unix)]
            entry,
        }))
    }

    /// The rights of the file.
    fn mode(&self) -> Option<u32> {
        #[cfg(unix)]
        return Some(std::os::unix::fs::MetadataExt::mode(&self.entry) & 0o7777);
        #[cfg(not(unix))]
        None
    }

    /// Gives the rights to another file, and the owner where the system lets us: to another group none that others lack.
    fn give(&self, file: &File) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
            let (old, new) = (&self.entry, file.metadata()?);
            if old.uid() != new.uid() {
                let _ = fchown(file, Some(old.uid()), None);
            }
            let same_group = old.gid() == new.gid() || fchown(file, None, Some(old.gid())).is_ok();
            let mode = old.mode() & 0o7777;
            let mode = if same_group { mode } else { mode & !0o2070 | mode & mode << 3 & 0o070 };
            // A file system without rights refuses to set any: that matters only where it lets more people in.
            let more = |file: &File| Ok::<_, io::Error>(file.metadata()?.mode() & !mode & 0o777 != 0);
            if let Err(error) = file.set_permissions(fs::Permissions::from_mode(mode))
                && more(file)?
            {
                return Err(error);
            }
        }
        #[cfg(not(unix))]
        let _ = file;
        Ok(())
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
