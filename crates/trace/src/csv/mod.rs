//! hoistway's own CSV: a line an event.

/// What the first line of such a file begins with.
pub(crate) const HEADER_BEGINNING: &[u8] = b"time_ns,action,";
