//! What a recorded request waits for.

/// The condition that releases one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The request is released when at most this number of earlier requests of its process is
    /// outstanding.
    pub outstanding_max: u32,
    /// The delay after that condition is met.
    pub then: ReleaseDelay,
}

/// The delay of a [`Release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseDelay {
    /// A pause in ns after the completion that released the request.
    Think(u64),
    /// A time in ns after the first request of the process, or no delay if that time has passed.
    At(u64),
    /// A time in ns after the release of the previous request of the process, or no delay if that
    /// time has passed. It is for traces without completions, whose only known times are those
    /// between submissions.
    Gap(u64),
}
