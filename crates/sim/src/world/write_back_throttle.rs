//! Write-back throttling of the multi-queue block layer (`wbt_lat_usec`, from 4.10 on): few
//! requests of write-back are in the queue and the drive at a time, so that other requests do not
//! wait behind them.
//!
//! The rules are those that J. Axboe described ("Toward less-annoying background writeback",
//! LWN, April 2016, and the announcements of the patches): a depth that follows from the slots of
//! the controller, half of it for write-back, and a quarter of it within 100 ms of other I/O. A
//! lower `queue_depth` of a disk changed nothing in guests. The further decrease when reads take
//! longer than `wbt_lat_usec` is not modelled. BFQ and CFQ switch the throttling off.

use hoistway_core::{Bio, Flags, Kind, Op, RequestId};

/// The depth for a device that takes at least as many requests.
const DEPTH_MAX: u32 = 16;
/// The time after a read for which write-back has a quarter of the depth.
const CLOSE_NS: u64 = 100_000_000;

/// The throttle of a device.
#[derive(Debug)]
pub(super) struct WriteBackThrottle {
    /// Most requests of write-back, alone and within 100 ms of a read.
    limits: [usize; 2],
    /// Requests of write-back that were in the queue or in the drive when it was last asked.
    in_flight: Vec<RequestId>,
    /// The time until which a read counts as close.
    close_until_ns: u64,
}

impl WriteBackThrottle {
    /// Creates the throttle of a device whose controller has `depth` slots. None for an elevator
    /// that switches it off.
    pub fn new(depth: u32, elevator: Kind) -> Option<WriteBackThrottle> {
        let name = elevator.info().name;
        if name.starts_with("bfq") || name.starts_with("cfq") {
            return None;
        }
        // One request is ready while a device of depth 1 has the other.
        let limits = match depth.min(DEPTH_MAX) as usize {
            0..=2 => [2, 1],
            depth => [depth.div_ceil(2), depth.div_ceil(4)],
        };
        Some(WriteBackThrottle { limits, in_flight: Vec::new(), close_until_ns: 0 })
    }

    /// Returns true if a bio of write-back may become a request now. `is_there` returns true for
    /// requests that have not ended.
    pub fn admits(&mut self, now_ns: u64, is_there: impl Fn(RequestId) -> bool) -> bool {
        self.in_flight.retain(|id| is_there(*id));
        let [alone, close] = self.limits;
        self.in_flight.len() < if now_ns < self.close_until_ns { close } else { alone }
    }

    /// Records that a bio became a request.
    pub fn begun(&mut self, id: RequestId, bio: &Bio, now_ns: u64) {
        if is_throttled(bio) {
            self.in_flight.push(id);
        }
        self.touched(bio.op, now_ns);
    }

    /// Records that a request was made or ended: write-back has less of the depth beside reads.
    pub fn touched(&mut self, op: Op, now_ns: u64) {
        if op == Op::Read {
            self.close_until_ns = now_ns + CLOSE_NS;
        }
    }
}

/// Returns true if a bio is throttled: a write that is not a direct one.
pub(super) fn is_throttled(bio: &Bio) -> bool {
    bio.op == Op::Write && !bio.flags.has(Flags::IDLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_back_has_less_beside_reads() {
        for (depth, limits) in [(1, [2, 1]), (4, [2, 1]), (32, [8, 4]), (256, [8, 4])] {
            let mut throttle = WriteBackThrottle::new(depth, Kind::MqDeadline).expect("it is on");
            assert_eq!(throttle.limits, limits, "depth {depth}");
            assert!(throttle.admits(0, |_| true));
            throttle.touched(Op::Read, 5);
            assert_eq!(throttle.close_until_ns, 5 + CLOSE_NS);
        }
    }

    #[test]
    fn bfq_and_cfq_switch_it_off() {
        assert!(WriteBackThrottle::new(1, Kind::Bfq).is_none() && WriteBackThrottle::new(1, Kind::Cfq).is_none());
    }
}
