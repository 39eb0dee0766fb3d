//! What happened in a world: a hash of everything, by which two runs are compared, and a log for
//! people.

use std::fmt;

/// The trace of a run.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    happenings: u64,
    verbose: bool,
    lines: Vec<String>,
}

impl Trace {
    /// An empty trace; `verbose` keeps the lines.
    pub fn new(verbose: bool) -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, happenings: 0, verbose, lines: Vec::new() }
    }

    /// Something happened: numbers that say what, and a line for people, which is made only if
    /// somebody reads it.
    pub fn note(&mut self, now_ns: u64, numbers: &[u64], line: fmt::Arguments<'_>) {
        self.happenings += 1;
        self.mix(now_ns);
        for number in numbers {
            self.mix(*number);
        }
        if self.verbose {
            self.lines.push(format!("{:>13.6} ms  {line}", now_ns as f64 / 1e6));
        }
    }

    /// Bytes that passed.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.mix(word.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
        }
        let rest = words.remainder().iter().fold(1, |sum, byte| sum << 8 | u64::from(*byte));
        self.mix(rest);
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// How many things happened.
    pub fn happenings(&self) -> u64 {
        self.happenings
    }

    /// The lines, if they were kept.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    fn mix(&mut self, number: u64) {
        self.hash = (self.hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}
