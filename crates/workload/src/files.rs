//! The choice of the next file of a job: `file_service_type`.

use hoistway_fio::FileService;
use rand::RngExt;
use rand_pcg::Pcg64;

use crate::distribution::Draw;

/// The file whose turn it is.
#[derive(Clone, Debug)]
pub(crate) struct FileTurn {
    kind: Kind,
    file: usize,
    /// Requests still to make to the file.
    left: u32,
}

#[derive(Clone, Debug)]
enum Kind {
    RoundRobin(u32),
    Sequential,
    Random(u32),
    Drawn(Draw),
}

impl FileTurn {
    pub fn new(service: &FileService, files: usize, key: u64) -> FileTurn {
        let kind = match service {
            FileService::RoundRobin(requests) => Kind::RoundRobin(*requests),
            FileService::Sequential => Kind::Sequential,
            FileService::Random(requests) => Kind::Random(*requests),
            FileService::Drawn(law) => Kind::Drawn(Draw::new(law, files as u64, key)),
        };
        // The first request moves on to the first file.
        FileTurn { kind, file: files.saturating_sub(1), left: 0 }
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
            Kind::Drawn(draw) => (draw.draw(rng) as usize, 1),
        };
        // A file that is done is left to the next one.
        let chosen = (first..first + files).map(|file| file % files.max(1)).find(|file| has_more(*file))?;
        self.file = chosen;
        self.left = requests.saturating_sub(1);
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(service: &FileService, requests: usize) -> Vec<usize> {
        let mut left = [4u32, 4, 4];
        let (mut turn, mut rng) = (FileTurn::new(service, 3, 1), Pcg64::new(1, 1));
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

    #[test]
    fn random_files_are_all_done_in_the_end() {
        let drawn = turns(&FileService::Random(2), 100);
        assert_eq!(drawn.len(), 12);
        assert!(drawn.chunks(2).all(|pair| pair[0] == pair[1]), "{drawn:?}");
    }
}
