//! The log of a simulation: a hash of all events, which compares two runs, and readable lines.

use std::fmt;

/// The log of a run.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    events: u64,
    verbose: bool,
    lines: Vec<String>,
}

impl Trace {
    /// Creates an empty log. `verbose` keeps the lines.
    pub fn new(verbose: bool) -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, events: 0, verbose, lines: Vec::new() }
    }

    /// Adds an event: numbers that identify it, and a line, which is formatted only if lines are
    /// kept.
    pub fn note(&mut self, now_ns: u64, numbers: &[u64], line: fmt::Arguments<'_>) {
        self.events += 1;
        self.mix(now_ns);
        for number in numbers {
            self.mix(*number);
        }
        if self.verbose {
            self.lines.push(format!("{:>13.6} ms  {line}", now_ns as f64 / 1e6));
        }
    }

    /// Adds transferred bytes to the hash.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            self.mix(word.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
        }
        let rest = words.remainder().iter().fold(1, |sum, byte| sum << 8 | u64::from(*byte));
        self.mix(rest);
    }

    /// Returns the hash of all events so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the number of events.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the lines, if they were kept.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    fn mix(&mut self, number: u64) {
        self.hash = (self.hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}
