//! The controllers of the block layer (the kernel's rq-qos policies): they hold bios back before
//! these become requests, and are told what becomes of them.
//!
//! Throttling of write-back is the only one so far. A further one is a field of [`Controllers`],
//! before `wbt`: the kernel asks io.latency first, then io.cost, then the throttle of write-back.

use hoistway_core::{Bio, BlockLayer, Kind, Op, QueueConfig, RequestId, Submitted};

use super::super::task::SubmitterId;
use super::flush::FlushRules;
use super::write_back_throttle::{Class, Settings, WriteBackThrottle};
use crate::config::HostConfig;

/// The answer of the controllers to a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The bio goes on to the request queue. The admission is valid until [`Controllers::queued`].
    Granted,
    /// The submitter sleeps with this bio until [`Controllers::completed`] or
    /// [`Controllers::timer`] returns it; it has the admission then.
    Held,
}

/// The controllers of a device.
pub(super) struct Controllers {
    /// The throttle of write-back, if the host has one.
    wbt: Option<WriteBackThrottle<RequestId>>,
}

impl Controllers {
    /// The controllers of an idle device of depth `depth`.
    pub fn new(host: &HostConfig, queue: &QueueConfig, elevator: Kind, depth: u32, flush_rules: FlushRules) -> Self {
        let throttles = host.write_back_throttling && queue.layer == BlockLayer::V6_1;
        let settings = Settings {
            depth,
            rotational: queue.rotational,
            write_back_cache: flush_rules.has_volatile_cache(),
            latency_ns: host.write_back_latency_us * 1000,
        };
        Controllers { wbt: throttles.then(|| WriteBackThrottle::new(settings, elevator)).flatten() }
    }

    /// Decides about the next bio of a submitter.
    #[inline]
    pub fn admit(&mut self, submitter: SubmitterId, bio: &Bio, now_ns: u64) -> Admission {
        let (Some(wbt), Some(class)) = (&mut self.wbt, Class::of(bio)) else { return Admission::Granted };
        if wbt.admit(submitter, class, now_ns) { Admission::Granted } else { Admission::Held }
    }

    /// Records what became of an admitted bio in the request queue.
    #[inline]
    pub fn queued(&mut self, submitter: SubmitterId, bio: &Bio, outcome: Submitted) {
        let request = match outcome {
            Submitted::Queued(request) => Some(request),
            Submitted::Merged(_) => None,
            Submitted::Asleep => return,
        };
        if let (Some(wbt), Some(class)) = (&mut self.wbt, Class::of(bio)) {
            wbt.begun(submitter, class, request);
        }
    }

    /// Records that a request was issued to the drive.
    #[inline]
    pub fn issued(&mut self, request: RequestId, op: Op, now_ns: u64) {
        if let Some(wbt) = &mut self.wbt {
            wbt.issued(request, op, now_ns);
        }
    }

    /// Records that a request completed, `service_ns` after it was issued; `is_there` says which
    /// requests the queue still has. Returns the submitters whose bio is admitted now.
    #[inline]
    pub fn completed(
        &mut self,
        request: (RequestId, Op),
        service_ns: u64,
        now_ns: u64,
        is_there: impl Fn(RequestId) -> bool,
    ) -> Vec<SubmitterId> {
        self.wbt.as_mut().map_or_else(Vec::new, |wbt| wbt.completed(request, service_ns, now_ns, is_there))
    }

    /// The time of the next call of [`Self::timer`], in ns.
    #[inline]
    pub fn next_timer(&self) -> Option<u64> {
        self.wbt.as_ref()?.next_timer()
    }

    /// Runs the timers that are due. Returns the submitters whose bio is admitted now.
    pub fn timer(&mut self, now_ns: u64) -> Vec<SubmitterId> {
        self.wbt.as_mut().map_or_else(Vec::new, |wbt| wbt.timer(now_ns))
    }

    /// Records that a writer sleeps in dirty throttling.
    pub fn dirty_sleep(&mut self, now_ns: u64) {
        if let Some(wbt) = &mut self.wbt {
            wbt.dirty_sleep(now_ns);
        }
    }
}
