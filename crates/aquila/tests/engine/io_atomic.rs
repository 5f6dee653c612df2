//! Files are whole or not there, whatever stops the writer.

use aquila::data::write_atomically;
use aquila::{Control, Error, ErrorCode};
use std::io::{self, Write};

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    write_atomically(&path, &Control::default(), |file| file.write_all(b"old")).unwrap();
    let refused = write_atomically(&path, &Control::default(), |file| {
        file.write_all(&[0; 1 << 20])?;
        Err::<(), _>(io::Error::other("disk full"))
    });
    let error = refused.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Io);
    assert!(error.message().contains("a: disk full"), "{error}");
    let own =
        write_atomically(&path, &Control::default(), |_| Err::<(), _>(io::Error::other(Error::cancelled())));
    assert_eq!(own.unwrap_err().code(), ErrorCode::Cancelled);
    let panicked = std::panic::catch_unwind(|| {
        write_atomically(&path, &Control::default(), |file| -> io::Result<()> {
            file.write_all(b"half")?;
            panic!("a defect")
        })
    });
    assert!(panicked.is_err());
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_write_replaces_the_file_and_returns_the_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    for content in ["one", "two"] {
        let n = write_atomically(&path, &Control::default(), |file| {
            file.write_all(content.as_bytes()).map(|()| content.len())
        });
        assert_eq!(n.unwrap(), 3);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_rights_and_a_new_one_follows_the_mask() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    write_atomically(&path, &Control::default(), |file| file.write_all(b"new")).unwrap();
    assert_eq!(mode(&path), mode(&plain));
    for rights in [0o600, 0o640, 0o755, 0o666, 0o200] {
        std::fs::set_permissions(&path, PermissionsExt::from_mode(rights)).unwrap();
        write_atomically(&path, &Control::default(), |file| {
            // Nobody may look into what is half written who may not look into the whole.
            for entry in std::fs::read_dir(folder.path())? {
                let entry = entry?;
                if entry.file_name().to_string_lossy().ends_with(".tmp") {
                    assert_eq!(mode(&entry.path()) & !rights & 0o777, 0, "{rights:o}");
                }
            }
            file.write_all(b"new")
        })
        .unwrap();
        assert_eq!(mode(&path), rights, "{rights:o}");
    }
    // As the first user may give files away, whose it was is kept; others cannot try.
    if std::os::unix::fs::chown(&path, Some(1234), Some(5678)).is_ok() {
        write_atomically(&path, &Control::default(), |file| file.write_all(b"new")).unwrap();
        let entry = std::fs::metadata(&path).unwrap();
        assert_eq!((entry.uid(), entry.gid(), mode(&path)), (1234, 5678, 0o200));
    }
}

#[test]
fn a_read_only_file_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, "old").unwrap();
    let mut rights = std::fs::metadata(&path).unwrap().permissions();
    rights.set_readonly(true);
    std::fs::set_permissions(&path, rights).unwrap();
    let error = write_atomically(&path, &Control::default(), |file| file.write_all(b"new")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Io);
    assert!(
        error.message().contains("a: the file that stands there is read-only: make it writable"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[cfg(unix)]
#[test]
fn links_stay_links_and_devices_devices() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("a"), folder.path().join("link"));
    std::fs::write(&path, "old").unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    write_atomically(&link, &Control::default(), |file| file.write_all(b"new")).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    let error =
        write_atomically("/dev/null", &Control::default(), |file| file.write_all(b"new")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Io);
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_stays_a_link_and_its_target_is_made() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(place("far/deep")).unwrap();
    // One after the other, relative to the folder of each, the last one's path absolute.
    symlink("far/deep/second", place("first")).unwrap();
    symlink("../third", place("far/deep/second")).unwrap();
    symlink(place("target"), place("far/third")).unwrap();
    for content in ["made", "replaced"] {
        let all = |file: &mut dyn Write| file.write_all(content.as_bytes());
        write_atomically(place("first"), &Control::default(), |file| all(file)).unwrap();
        for link in ["first", "far/deep/second", "far/third"] {
            assert!(std::fs::symlink_metadata(place(link)).unwrap().is_symlink(), "{link}");
        }
        assert!(std::fs::symlink_metadata(place("target")).unwrap().is_file());
        assert_eq!(std::fs::read_to_string(place("target")).unwrap(), content);
    }
}

#[cfg(unix)]
#[test]
fn links_in_a_circle_are_refused_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    std::os::unix::fs::symlink("two", &one).unwrap();
    std::os::unix::fs::symlink("one", &two).unwrap();
    let error = write_atomically(&one, &Control::default(), |file| file.write_all(b"new")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Io);
    assert!(error.message().contains("one: its symbolic links lead to no end"), "{error}");
    assert_eq!(std::fs::read_link(&one).unwrap(), std::path::Path::new("two"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}
