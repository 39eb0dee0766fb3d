//! Who was answered lately: whether the next request is worth watching for.

use hoistway_reactor::ConnId;

/// After a turn with so few answers the next event is watched for: a client waits for each answer.
/// Where more come at once, the next are on their way already, and a sleep costs nobody anything.
const WATCHED_ANSWERS_MAX: u32 = 2;
/// So long after another client was answered than before, nothing is watched for: several clients
/// need the processors themselves, and what one asks for next comes while another is served.
const SEVERAL_NS: u64 = 10_000_000;

/// Answers of a turn, and whom they went to.
#[derive(Debug, Default)]
pub(crate) struct ReplyHistory {
    in_this_turn: u32,
    last: Option<ConnId>,
    /// Until then several clients are taken to be at work.
    several_until_ns: u64,
}

impl ReplyHistory {
    /// A request was answered.
    pub(crate) fn count(&mut self, id: ConnId, now_ns: u64) {
        self.in_this_turn += 1;
        if self.last.replace(id).is_some_and(|last| last != id) {
            self.several_until_ns = now_ns.saturating_add(SEVERAL_NS);
        }
    }

    /// A turn is over: whether it is worth while to watch for the next event instead of sleeping.
    pub(crate) fn turn_ends(&mut self, now_ns: u64) -> bool {
        let answers = std::mem::take(&mut self.in_this_turn);
        answers <= WATCHED_ANSWERS_MAX && now_ns >= self.several_until_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ConnId = ConnId { slot: 1, generation: 0 };
    const OTHER: ConnId = ConnId { slot: 2, generation: 0 };

    #[test]
    fn a_single_client_with_one_request_at_a_time_is_watched_for() {
        let mut answered = ReplyHistory::default();
        for turn in 0..100 {
            answered.count(ONE, turn);
            assert!(answered.turn_ends(turn), "turn {turn}");
        }
        for _ in 0..16 {
            answered.count(ONE, 100);
        }
        assert!(!answered.turn_ends(100), "16 requests at once");
    }

    #[test]
    fn clients_that_take_turns_are_not_watched_for_until_one_has_been_alone_for_10_ms() {
        let mut answered = ReplyHistory::default();
        answered.count(ONE, 0);
        answered.count(OTHER, 1_000);
        assert!(!answered.turn_ends(2_000));
        answered.count(OTHER, 5_000_000);
        assert!(!answered.turn_ends(5_000_000));
        answered.count(OTHER, 10_001_000);
        assert!(answered.turn_ends(10_001_000));
    }
}
