//! Counts the messages of elevators by kind.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

/// Maximum number of distinct kinds; further kinds are counted together.
const KINDS_MAX: usize = 1024;
/// Name under which kinds beyond [`KINDS_MAX`] are counted.
const OTHERS: &str = "(others)";

/// Number of messages by kind.
#[derive(Debug, Default)]
pub(super) struct MessageCounts {
    kinds: FxHashMap<Vec<u8>, u64>,
    /// Buffer for the kind of the current message, kept to avoid allocations.
    kind: Vec<u8>,
}

impl MessageCounts {
    pub fn take(&mut self, text: &[u8]) {
        kind_of(text, &mut self.kind);
        if let Some(count) = self.kinds.get_mut(&self.kind) {
            *count += 1;
        } else {
            let kind = if self.kinds.len() < KINDS_MAX { self.kind.clone() } else { OTHERS.into() };
            *self.kinds.entry(kind).or_default() += 1;
        }
    }

    /// Returns the counts by elevator and kind.
    pub fn counts(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for (kind, count) in &self.kinds {
            let kind = String::from_utf8_lossy(kind);
            let (elevator, kind) = kind.split_once(' ').unwrap_or((&kind, ""));
            *counts.entry(elevator.to_owned()).or_default().entry(kind.to_owned()).or_default() += count;
        }
        counts
    }
}

/// Writes the constant part of a message to `kind`. The first word counts as far as it has
/// lower-case letters (`bfq2896S` and `bfqSHARED-S` become `bfq`). Further words count up to the
/// first word that contains a digit or an =, or that follows punctuation.
fn kind_of(text: &[u8], kind: &mut Vec<u8>) {
    kind.clear();
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let Some(first) = words.next() else { return };
    let letters = first.iter().take_while(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_')).count();
    let name = if letters == 0 { first } else { &first[..letters] };
    let name = name.strip_suffix(b"-").unwrap_or(name);
    kind.extend_from_slice(&name[..name.len().min(32)]);
    for word in words {
        if kind.len() > 80 || word.iter().any(|byte| byte.is_ascii_digit() || *byte == b'=') {
            break;
        }
        let bare = word.iter().rposition(|byte| !matches!(byte, b':' | b',' | b';' | b'.')).map_or(0, |last| last + 1);
        kind.push(b' ');
        kind.extend_from_slice(&word[..bare]);
        if bare < word.len() || word.ends_with(b"]") {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> String {
        let mut kind = Vec::new();
        kind_of(text.as_bytes(), &mut kind);
        String::from_utf8(kind).unwrap()
    }

    #[test]
    fn kinds_are_messages_without_their_numbers() {
        for (text, expected) in [
            ("bfq2896S get_request 00000000a8d15433: bfqq 000000000c317fa4, 2", "bfq get_request"),
            ("bfq2896S calc_finish: serv 1644, w 1200", "bfq calc_finish"),
            ("bfq2896S expire (4, slow 0, num_disp 1, short_ttime 1)", "bfq expire"),
            ("bfq2896S set_in_service_queue, cur-budget = 1644", "bfq set_in_service_queue"),
            ("bfq [bfq_limit_depth] wr_busy 0 sync 1 depth 192", "bfq [bfq_limit_depth]"),
            ("bfqSHARED-S put_queue: 00000000a3e1d31b 2", "bfq put_queue"),
            ("mq-deadline3 batch 4", "mq-deadline batch"),
            ("bfq dispatch requests: 1 busy queues", "bfq dispatch requests"),
            ("cfq2894S / add_to_rr", "cfq / add_to_rr"),
            ("slice of 7 begins", "slice of"),
            ("", ""),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn kinds_beyond_the_maximum_are_counted_together() {
        let mut notes = MessageCounts::default();
        for number in 0..5000u32 {
            let word: String = number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
            notes.take(format!("bfq {word}").as_bytes());
        }
        let counts = notes.counts();
        assert_eq!(counts["bfq"].len(), KINDS_MAX);
        assert_eq!(counts[OTHERS][""], (5000 - KINDS_MAX) as u64);
    }
}
