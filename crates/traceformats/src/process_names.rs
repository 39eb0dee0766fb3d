//! Names of processes by process id, in bounded memory.

use rustc_hash::FxHashMap;

/// Maximum number of remembered names. When it is reached, all names are forgotten.
const NAMES_MAX: usize = 1 << 20;
/// Maximum length of a stored name in bytes. Linux has names of 15 bytes.
const NAME_BYTES_MAX: usize = 64;

/// The last recorded name of each process id.
#[derive(Clone, Debug, Default)]
pub struct ProcessNames(FxHashMap<u32, Box<[u8]>>);

impl ProcessNames {
    /// Stores the current name of a process. Returns true if the name differs from the stored one.
    pub fn set(&mut self, pid: u32, name: &[u8]) -> bool {
        let name = name.get(..NAME_BYTES_MAX).unwrap_or(name);
        if self.get(pid) == Some(name) {
            return false;
        }
        if self.0.len() >= NAMES_MAX && !self.0.contains_key(&pid) {
            self.0.clear();
        }
        self.0.insert(pid, name.into());
        true
    }

    /// Returns the last stored name of a process.
    #[inline]
    pub fn get(&self, pid: u32) -> Option<&[u8]> {
        self.0.get(&pid).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_returns_true_for_a_changed_name_and_cuts_long_names() {
        let mut names = ProcessNames::default();
        assert!(names.set(7, b"fio") && !names.set(7, b"fio") && names.set(7, b"dd"));
        assert_eq!((names.get(7), names.get(8)), (Some(&b"dd"[..]), None));
        let long = [b'x'; 60_000];
        assert!(names.set(8, &long) && !names.set(8, &long));
        assert_eq!(names.get(8).map(<[u8]>::len), Some(64));
    }
}
