//! The recent replies, from which the server decides whether a busy poll is worth its CPU time.

use hoistway_reactor::ConnId;

/// Replies per turn up to which the engine may poll for the next event: a client with one request
/// at a time waits for each reply. After more replies in one turn the next requests are already in
/// the socket, so that a sleep costs no latency.
const POLLED_REPLIES_MAX: u32 = 2;
/// How long after replies to two different clients the engine does not poll, in ns. Several active
/// clients need the CPU themselves, and requests of one arrive while another is served.
const SEVERAL_CLIENTS_NS: u64 = 10_000_000;

/// The number of replies of the current turn, and the client of the last one.
#[derive(Debug, Default)]
pub(crate) struct ReplyHistory {
    replies_in_turn: u32,
    last_client: Option<ConnId>,
    /// Until this time, in ns, several clients are considered active.
    several_clients_until_ns: u64,
}

impl ReplyHistory {
    /// Counts a reply to a client.
    pub(crate) fn count(&mut self, id: ConnId, now_ns: u64) {
        self.replies_in_turn += 1;
        if self.last_client.replace(id).is_some_and(|last| last != id) {
            self.several_clients_until_ns = now_ns.saturating_add(SEVERAL_CLIENTS_NS);
        }
    }

    /// Ends a turn. Returns true if the engine should poll for the next event instead of sleeping.
    pub(crate) fn end_turn(&mut self, now_ns: u64) -> bool {
        let replies = std::mem::take(&mut self.replies_in_turn);
        replies <= POLLED_REPLIES_MAX && now_ns >= self.several_clients_until_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ConnId = ConnId { slot: 1, generation: 0 };
    const OTHER: ConnId = ConnId { slot: 2, generation: 0 };

    #[test]
    fn the_engine_polls_for_a_single_client_with_one_request_at_a_time() {
        let mut history = ReplyHistory::default();
        for turn in 0..100 {
            history.count(ONE, turn);
            assert!(history.end_turn(turn), "turn {turn}");
        }
        for _ in 0..16 {
            history.count(ONE, 100);
        }
        assert!(!history.end_turn(100), "16 requests at once");
    }

    #[test]
    fn the_engine_does_not_poll_until_one_client_was_alone_for_10_ms() {
        let mut history = ReplyHistory::default();
        history.count(ONE, 0);
        history.count(OTHER, 1_000);
        assert!(!history.end_turn(2_000));
        history.count(OTHER, 5_000_000);
        assert!(!history.end_turn(5_000_000));
        history.count(OTHER, 10_001_000);
        assert!(history.end_turn(10_001_000));
    }
}
