//! The progress of a shutdown.

/// How far the server has shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DrainState {
    /// The server is in service.
    Serving,
    /// The server waits until the last connection is closed, or until the deadline.
    Connections {
        /// The deadline, in ns.
        until_ns: u64,
    },
    /// The server waits until the devices are flushed, or until the deadline.
    Flushes {
        /// The number of flushes that are not complete.
        left: usize,
        /// The deadline, in ns.
        until_ns: u64,
        /// True as long as every request was answered and every flush succeeded.
        clean: bool,
    },
    /// The shutdown is complete.
    Ended {
        /// True if every request was answered and every device was flushed before the deadline.
        clean: bool,
    },
}

impl DrainState {
    /// Returns true from the start of a shutdown: new requests are refused.
    pub(crate) fn has_begun(self) -> bool {
        self != DrainState::Serving
    }

    /// Returns the time in ns at which the server must act even without an event.
    pub(crate) fn deadline_ns(self) -> Option<u64> {
        match self {
            DrainState::Connections { until_ns } | DrainState::Flushes { until_ns, .. } => Some(until_ns),
            // The next turn returns `Turn::Ended` without a wait.
            DrainState::Ended { .. } => Some(0),
            DrainState::Serving => None,
        }
    }

    /// Returns whether a complete shutdown was clean; `None` before its end.
    pub(crate) fn ended(self) -> Option<bool> {
        match self {
            DrainState::Ended { clean } => Some(clean),
            _ => None,
        }
    }
}
