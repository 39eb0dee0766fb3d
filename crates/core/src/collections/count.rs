//! Counters, whose steps are one instruction each.

/// A count of things that exist at a time, or of things that happened. It does not overflow, and
/// every decrement undoes an increment, so that an unsigned count does not fall below zero.
///
/// Debug builds check this. In other builds a step is one instruction, without a test.
pub trait Count {
    /// Adds one.
    fn increment(&mut self);
    /// Subtracts one.
    fn decrement(&mut self);
}

macro_rules! counts {
    ($($integer:ty)*) => {
        $(impl Count for $integer {
            #[inline(always)]
            #[cfg_attr(debug_assertions, track_caller)]
            fn increment(&mut self) {
                debug_assert!(*self < <$integer>::MAX, "a count does not overflow");
                *self = self.wrapping_add(1);
            }
            #[inline(always)]
            #[cfg_attr(debug_assertions, track_caller)]
            fn decrement(&mut self) {
                debug_assert!(*self > <$integer>::MIN, "a decrement undoes an increment");
                *self = self.wrapping_sub(1);
            }
        })*
    };
}

counts! { u8 u32 u64 i32 i64 usize }
