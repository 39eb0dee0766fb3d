//! A tunable time: its value in milliseconds and the same time in ticks.

use crate::clock::Clock;

/// A time that is set in milliseconds and counted in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StoredTime {
    /// The value as it was set, in ms.
    pub stored_ms: i64,
    /// The same time in ticks of the queue's clock.
    pub ticks: u64,
}

impl StoredTime {
    /// Converts a tunable's value in ms; the sign of a negative value is ignored.
    pub fn of(clock: &Clock, ms: i64) -> StoredTime {
        StoredTime { stored_ms: ms, ticks: clock.ticks_of_stored_ms(ms.unsigned_abs()) }
    }
}
