//! The choice of the next file of a job: `file_service_type` and `openfiles`.
//!
//! With fewer open files than files, a file is opened when its turn comes and fewer are open, and
//! is closed when its turn comes and it is done. Other files are passed over, as by fio 3.33.

use std::collections::BTreeSet;

use hoistway_fio::FileService;
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::distribution::{DRAWS_OF_FILE, Draw};

/// The file whose turn it is.
#[derive(Clone, Debug)]
pub(crate) struct FileTurn {
    kind: Kind,
    file: usize,
    /// Requests still to make to the file.
    left: u32,
    /// The files that are open; `None` if all may be.
    open: Option<OpenFiles>,
}

/// A limited number of open files.
#[derive(Clone, Debug)]
struct OpenFiles {
    most: usize,
    open: BTreeSet<usize>,
    /// Files that were not opened in this pass.
    fresh: BTreeSet<usize>,
}

/// The number of random draws of a file after which the file after the last drawn one is taken.
const DRAWS_MAX: u32 = 64;

#[derive(Clone, Debug)]
enum Kind {
    RoundRobin(u32),
    Sequential,
    Random(u32),
    Drawn(Draw),
}

impl FileTurn {
    /// Creates a turn over files of which `open_max` are open at a time; 0 means all.
    pub fn new(service: &FileService, files: usize, open_max: u32, key: u64) -> FileTurn {
        let kind = match service {
            FileService::RoundRobin(requests) => Kind::RoundRobin(*requests),
            FileService::Sequential => Kind::Sequential,
            FileService::Random(requests) => Kind::Random(*requests),
            FileService::Drawn(law) => Kind::Drawn(Draw::of_files(law, files as u64, key)),
        };
        // The first request moves on to the first file.
        let most = open_max as usize;
        let is_limited = most > 0 && most < files;
        let open = is_limited.then(|| OpenFiles { most, open: BTreeSet::new(), fresh: (0..files).collect() });
        FileTurn { kind, file: files.saturating_sub(1), left: 0, open }
    }

    /// Closes all files: the next pass opens them again, from the first on.
    pub fn reset(&mut self, files: usize) {
        if let Some(open) = &mut self.open {
            open.open.clear();
            open.fresh = (0..files).collect();
            (self.file, self.left) = (files.saturating_sub(1), 0);
        }
    }

    /// Chooses a file that `has_more` accepts; `None` if it accepts none.
    pub fn choose(&mut self, files: usize, rng: &mut Pcg64, has_more: impl Fn(usize) -> bool) -> Option<usize> {
        if self.left > 0 && has_more(self.file) {
            self.left -= 1;
            return Some(self.file);
        }
        let (first, requests) = match &self.kind {
            Kind::RoundRobin(requests) => (self.file + 1, *requests),
            Kind::Sequential => (if self.left > 0 { self.file + 1 } else { 0 }, u32::MAX),
            Kind::Random(requests) => (rng.random_range(0..files.max(1)), *requests),
            Kind::Drawn(draw) => (drawn_file(draw, rng), 1),
        };
        if self.open.is_some() {
            return self.choose_open(first, requests, files, rng, has_more);
        }
        // A file that is done is left to the next one.
        let chosen = (first..first + files).map(|file| file % files.max(1)).find(|file| has_more(*file))?;
        self.file = chosen;
        self.left = requests.saturating_sub(1);
        Some(chosen)
    }

    /// Chooses among the open files and those that may be opened.
    fn choose_open(
        &mut self,
        first: usize,
        requests: u32,
        files: usize,
        rng: &mut Pcg64,
        has_more: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let open = self.open.as_mut()?;
        let mut chosen = None;
        for _ in 0..DRAWS_MAX {
            let drawn = match &self.kind {
                Kind::RoundRobin(_) | Kind::Sequential => break,
                Kind::Random(_) => rng.random_range(0..files.max(1)),
                Kind::Drawn(draw) => drawn_file(draw, rng),
            };
            chosen = open.take(drawn, &has_more).then_some(drawn);
            if chosen.is_some() {
                break;
            }
        }
        let chosen = match chosen {
            Some(chosen) => chosen,
            None => open.next_from(first % files.max(1), &has_more)?,
        };
        self.file = chosen;
        self.left = requests.saturating_sub(1);
        Some(chosen)
    }
}

fn drawn_file(draw: &Draw, rng: &mut Pcg64) -> usize {
    (draw.draw(rng) / DRAWS_OF_FILE) as usize
}

impl OpenFiles {
    /// Opens a file if it may be opened, or closes it if it is done. Returns true if it is open.
    fn take(&mut self, file: usize, has_more: &impl Fn(usize) -> bool) -> bool {
        let is_open = self.open.contains(&file);
        if is_open && has_more(file) {
            return true;
        }
        if is_open {
            self.open.remove(&file);
            return false;
        }
        if self.open.len() >= self.most || !self.fresh.remove(&file) || !has_more(file) {
            return false;
        }
        self.open.insert(file);
        true
    }

    /// Takes the first file from this one on that can be taken, around the end.
    fn next_from(&mut self, first: usize, has_more: &impl Fn(usize) -> bool) -> Option<usize> {
        // Each step closes a file, passes over one, or ends; the second time around finds the files
        // that could not be opened before others were closed.
        let mut from = first;
        for _ in 0..3 {
            while let Some(file) = self.next_known(from) {
                if self.take(file, has_more) {
                    return Some(file);
                }
                from = file + 1;
            }
            from = 0;
        }
        None
    }

    /// The next open file from this one on, or the next that may be opened.
    fn next_known(&self, from: usize) -> Option<usize> {
        let open = self.open.range(from..).next().copied();
        let fresh = self.fresh.range(from..).next().copied().filter(|_| self.open.len() < self.most);
        [open, fresh].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(service: &FileService, requests: usize) -> Vec<usize> {
        let mut left = [4u32, 4, 4];
        let (mut turn, mut rng) = (FileTurn::new(service, 3, 0, 1), Pcg64::new(1, 1));
        let next = || {
            let file = turn.choose(3, &mut rng, |file| left[file] > 0)?;
            left[file] -= 1;
            Some(file)
        };
        std::iter::repeat_with(next).map_while(|file| file).take(requests).collect()
    }

    #[test]
    fn files_take_turns_of_so_many_requests() {
        assert_eq!(turns(&FileService::RoundRobin(1), 6), [0, 1, 2, 0, 1, 2]);
        assert_eq!(turns(&FileService::RoundRobin(2), 6), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn a_file_is_finished_before_the_next() {
        assert_eq!(turns(&FileService::Sequential, 100), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    }

    /// The turns of files with this many requests, of which `open_max` are open.
    fn limited(service: &FileService, open_max: u32, requests: &[u32]) -> Vec<usize> {
        let (files, mut left) = (requests.len(), requests.to_vec());
        let (mut turn, mut rng) = (FileTurn::new(service, files, open_max, 1), Pcg64::new(1, 1));
        let next = || {
            let file = turn.choose(files, &mut rng, |file| left[file] > 0)?;
            left[file] -= 1;
            Some(file)
        };
        std::iter::repeat_with(next).map_while(|file| file).collect()
    }

    /// The orders are those of `fio` 3.33 with `--write_iolog`, `rw=write`, `bs=4k`, `nrfiles` and
    /// `filesize=8k`; in the last, files have 4, 8, 8 and 12 KiB.
    #[test]
    fn a_limit_of_open_files_holds_back_the_others_until_one_is_done() {
        let robin = FileService::RoundRobin(1);
        assert_eq!(limited(&robin, 2, &[2; 6]), [0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5]);
        assert_eq!(limited(&robin, 1, &[2; 4]), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(limited(&FileService::RoundRobin(2), 2, &[2; 6]), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        assert_eq!(limited(&FileService::Sequential, 2, &[2; 3]), [0, 0, 1, 1, 2, 2]);
        assert_eq!(limited(&robin, 2, &[1, 2, 2, 3]), [0, 1, 1, 2, 2, 3, 3, 3]);
    }

    #[test]
    fn no_more_random_files_are_begun_than_may_be_open() {
        for service in [FileService::Random(1), FileService::Random(3)] {
            let drawn = limited(&service, 3, &[4; 20]);
            assert_eq!(drawn.len(), 80);
            let mut made = [0; 20];
            for file in drawn {
                made[file] += 1;
                assert!(made.iter().filter(|made| (1..4).contains(*made)).count() <= 3, "{made:?}");
            }
        }
    }

    #[test]
    fn random_files_are_all_done_in_the_end() {
        let drawn = turns(&FileService::Random(2), 100);
        assert_eq!(drawn.len(), 12);
        assert!(drawn.chunks(2).all(|pair| pair[0] == pair[1]), "{drawn:?}");
    }
}
