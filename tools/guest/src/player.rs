//! A player and copies on a file system: the worker processes of the campaign with a player.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::system;

/// The bytes of a read or write of a copy.
const COPY_BYTES: usize = 128 << 10;
/// The bytes of a read of the player.
const READ_BYTES: usize = 64 << 10;

/// Copies a file again and again until the process is killed.
pub fn copy(from: &Path, to: &Path) -> Outcome<()> {
    let mut buffer = vec![0; COPY_BYTES];
    let failed = |error: std::io::Error| format!("a copy of {} to {}: {error}", from.display(), to.display());
    loop {
        let mut source = File::open(from).map_err(failed)?;
        let mut target = File::create(to).map_err(failed)?;
        loop {
            let count = source.read(&mut buffer).map_err(failed)?;
            if count == 0 {
                break;
            }
            target.write_all(buffer.get(..count).unwrap_or_default()).map_err(failed)?;
        }
        // The next round must read from the disk.
        target.sync_data().map_err(failed)?;
        system::forget_pages(&source)?;
        system::forget_pages(&target)?;
    }
}

/// The results of a player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// The bytes a second.
    pub bytes_per_second: u64,
    /// The time that 99 of 100 reads took at most, in microseconds.
    pub p99_us: u64,
    /// The time of the longest read in microseconds.
    pub longest_us: u64,
}

/// A clock that starts with the player: that of the system, or a simulated one in tests.
trait Clock {
    fn elapsed(&self) -> Duration;
    fn sleep(&self, time: Duration);
}

impl Clock for Instant {
    fn elapsed(&self) -> Duration {
        Instant::elapsed(self)
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// Reads a file through the page cache at a rate, for a time; the file begins again at its end. A
/// player that is late reads as fast as it can and does not skip.
pub fn play(path: &Path, bytes_per_second: u64, duration: Duration) -> Outcome<Played> {
    play_by(Instant::now, path, bytes_per_second, duration)
}

fn play_by<C: Clock>(
    start: impl FnOnce() -> C,
    path: &Path,
    bytes_per_second: u64,
    duration: Duration,
) -> Outcome<Played> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let mut file = File::open(path).map_err(failed)?;
    system::forget_pages(&file)?;
    let mut buffer = vec![0; READ_BYTES];
    let (clock, mut read, mut times) = (start(), 0u64, Vec::new());
    while clock.elapsed() < duration {
        let due = Duration::from_nanos(read.saturating_mul(1_000_000_000) / bytes_per_second.max(1));
        if let Some(wait) = due.checked_sub(clock.elapsed()) {
            clock.sleep(wait);
        }
        let asked = clock.elapsed();
        let count = file.read(&mut buffer).map_err(failed)?;
        times.push(clock.elapsed().saturating_sub(asked));
        if count == 0 {
            system::forget_pages(&file)?;
            file = File::open(path).map_err(failed)?;
        }
        read += count as u64;
    }
    times.sort_unstable();
    let microseconds = |time: Option<&Duration>| time.map_or(0, |time| time.as_micros() as u64);
    let elapsed_us = clock.elapsed().as_micros().max(1) as u64;
    Ok(Played {
        bytes_per_second: read.saturating_mul(1_000_000) / elapsed_us,
        p99_us: microseconds(times.get(times.len() * 99 / 100)),
        longest_us: microseconds(times.last()),
    })
}

impl Played {
    /// The line that the process prints.
    pub fn line(&self) -> String {
        format!("{} {} {}", self.bytes_per_second, self.p99_us, self.longest_us)
    }

    /// Parses the line.
    pub fn parse(line: &str) -> Option<Played> {
        let mut numbers = line.split_whitespace().map(|word| word.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Played { bytes_per_second: next()?, p99_us: next()?, longest_us: next()? })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// A clock that advances by the time of each sleep, and by 1 us at each reading.
    struct Simulated(Cell<Duration>);

    impl Clock for Simulated {
        fn elapsed(&self) -> Duration {
            self.0.update(|now| now + Duration::from_micros(1));
            self.0.get()
        }

        fn sleep(&self, time: Duration) {
            self.0.update(|now| now + time);
        }
    }

    #[test]
    fn a_player_keeps_its_rate_on_a_fast_disk_and_its_line_is_parsed() {
        let path = std::env::temp_dir().join(format!("hoistway-film-{}", std::process::id()));
        std::fs::write(&path, vec![1; 200_000]).expect("a file");
        let (rate, duration) = (1_000_000, Duration::from_millis(400));
        let exact = play_by(|| Simulated(Cell::default()), &path, rate, duration).expect("it is readable");
        assert!((900_000..1_100_000).contains(&exact.bytes_per_second), "{exact:?}");
        assert_eq!((exact.p99_us, exact.longest_us), (1, 1));
        // On a busy machine a player is late, or reads nothing at all, but is never early.
        let played = play(&path, rate, duration).expect("it is readable");
        assert!(played.bytes_per_second < 1_500_000, "{played:?}");
        assert_eq!(Played::parse(&played.line()), Some(played));
        assert_eq!(Played::parse("1 2"), None);
        std::fs::remove_file(path).expect("it exists");
    }
}
