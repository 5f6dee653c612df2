//! Memory that the system may refuse: then work ends in a coded error instead of ending the process.
//!
//! What is about as large as a caller's own arrays is taken without asking, for where those stand there is mostly room
//! for more. What grows with a number that a caller merely names (of columns, labels, groups) goes through here.

use crate::error::{Error, ErrorCode, Result};

/// Left free for the small things that nobody asks for, those of JavaScript's machine included, which ends the process
/// when it gets none.
const HEADROOM: u64 = 64 << 20;

fn refused(what: &str, bytes: u128) -> Error {
    let message = format!(
        "the system has no {bytes} bytes of memory for {what}: give the process more, or less to do at once"
    );
    Error::new(ErrorCode::OutOfMemory, message)
}

/// An empty list with room for so many elements.
pub fn room<T>(count: usize, what: &str) -> Result<Vec<T>> {
    let mut list = Vec::new();
    let bytes = count as u128 * size_of::<T>() as u128;
    list.try_reserve_exact(count).map_err(|_| refused(what, bytes))?;
    Ok(list)
}

/// A list of so many equal elements.
pub fn filled<T: Clone>(value: T, count: usize, what: &str) -> Result<Vec<T>> {
    let mut list = room(count, what)?;
    list.resize(count, value);
    Ok(list)
}

/// A copy of a list.
pub fn copied<T: Copy>(from: &[T], what: &str) -> Result<Vec<T>> {
    let mut list = room(from.len(), what)?;
    list.extend_from_slice(from);
    Ok(list)
}

/// Whether the system would give so many bytes now. They are not touched, and given back at once.
pub fn granted(bytes: u64, what: &str) -> Result<()> {
    let count = usize::try_from(bytes).unwrap_or(usize::MAX);
    room::<u8>(count, what).map(drop).map_err(|_| refused(what, bytes.into()))
}

/// Whether there is room for the small things that work takes without asking.
pub fn headroom() -> Result<()> {
    granted(HEADROOM, "any work")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_system_has_is_refused_with_its_size() {
        for error in [
            room::<u64>(usize::MAX, "a list").unwrap_err(),
            filled(1u8, isize::MAX as usize, "a list").unwrap_err(),
            granted(u64::MAX, "a list").unwrap_err(),
        ] {
            assert_eq!(error.code(), ErrorCode::OutOfMemory);
            assert!(error.message().contains("bytes of memory for a list: "), "{error}");
        }
        assert_eq!(filled(7u8, 3, "a list").unwrap(), [7; 3]);
        assert_eq!(copied(&[7u8, 8], "a list").unwrap(), [7, 8]);
        headroom().unwrap();
    }
}
