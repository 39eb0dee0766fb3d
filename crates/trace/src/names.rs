//! The names of processes that were told, in bounded memory.

use rustc_hash::FxHashMap;

/// So many processes' names are remembered; with more, all of before are forgotten.
const NAMES_MAX: usize = 1 << 20;
/// So many bytes of a name are: Linux has names of 15.
const NAME_BYTES_MAX: usize = 64;

/// Names by the processes' numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(FxHashMap<u32, Box<[u8]>>);

impl Names {
    /// Remembers what a process is called from now on, and says whether that is news.
    pub fn tell(&mut self, pid: u32, name: &[u8]) -> bool {
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

    /// What a process was called last, as far as that is remembered.
    #[inline]
    pub fn get(&self, pid: u32) -> Option<&[u8]> {
        self.0.get(&pid).map(|name| &**name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_news_once_and_long_ones_are_cut() {
        let mut names = Names::default();
        assert!(names.tell(7, b"fio") && !names.tell(7, b"fio") && names.tell(7, b"dd"));
        assert_eq!((names.get(7), names.get(8)), (Some(&b"dd"[..]), None));
        let long = [b'x'; 60_000];
        assert!(names.tell(8, &long) && !names.tell(8, &long));
        assert_eq!(names.get(8).map(<[u8]>::len), Some(64));
    }
}
