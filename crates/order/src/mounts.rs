//! What is mounted, and where.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustc_hash::FxHashSet;
use rustix::fs::{major, minor};

use crate::problem::bytes;
use crate::reach;

/// The directories with a place in them that something is mounted on, by file system and number: there a directory tells the number of what
/// lies under the mount. Where the system does not tell, none.
pub fn directories_with_mounts() -> FxHashSet<(u64, u64)> {
    let table = table();
    let places = table.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let directories: FxHashSet<Vec<u8>> =
        places.filter_map(|place| Path::new(&OsString::from_vec(unescaped(place))).parent().map(bytes)).collect();
    directories.iter().filter_map(|directory| reach::identity(None, directory)).collect()
}

/// What kind of file system (`ext4`) is mounted from a device; `None` where the system does not tell.
pub fn kind(device: u64) -> Option<String> {
    let number = format!("{}:{}", major(device), minor(device));
    let table = table();
    let mut lines = table.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b' '));
    let mut fields = lines.find(|fields| fields.clone().nth(2) == Some(number.as_bytes()))?;
    // Behind a mount's options any number of fields stand before the dash.
    fields.find(|field| field == b"-")?;
    Some(String::from_utf8_lossy(fields.next()?).into_owned())
}

fn table() -> Vec<u8> {
    fs::read("/proc/self/mountinfo").unwrap_or_default()
}

/// Blanks and backslashes are written as three octal digits.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_in_places_of_mounts_are_read_back() {
        assert_eq!(unescaped(br"/a\040b\134c\xy\04"), br"/a b\c\xy\04");
    }

    #[test]
    fn a_place_that_something_is_mounted_on_makes_its_directory_known() {
        let Ok(stat) = rustix::fs::stat("/") else { return };
        // Every Linux has /proc.
        assert!(directories_with_mounts().contains(&(stat.st_dev, stat.st_ino)));
    }

    #[test]
    fn a_device_s_file_system_is_known_by_its_kind() {
        let Ok(stat) = rustix::fs::stat("/proc") else { return };
        assert_eq!(kind(stat.st_dev).as_deref(), Some("proc"));
        assert_eq!(kind(u64::MAX), None);
    }
}
