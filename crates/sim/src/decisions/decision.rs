//! One decision of a scheduler, and the lists that decisions are recorded in.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The lists of decisions in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum List {
    /// Bios that joined a queued request, and queued requests that closed up.
    Merge,
    /// Plug, plug timer, unplug.
    Plug,
    /// Processes that went to sleep for want of a request.
    Sleeps,
    /// Bios whose submission was held up.
    Late,
    /// Changes of how many requests of a kind may be in the device.
    #[serde(rename = "token_depth")]
    TokenDepth,
    /// Requests that the driver took.
    Dispatch,
    /// Bios that were done.
    Complete,
}

impl List {
    /// All of them; of two differences at one time, the one in the earlier list is the cause.
    pub const ALL: [List; 7] =
        [List::Merge, List::Plug, List::Sleeps, List::Late, List::TokenDepth, List::Dispatch, List::Complete];

    /// The field's name in a file.
    pub const fn name(self) -> &'static str {
        match self {
            List::Merge => "merge",
            List::Plug => "plug",
            List::Sleeps => "sleeps",
            List::Late => "late",
            List::TokenDepth => "token_depth",
            List::Dispatch => "dispatch",
            List::Complete => "complete",
        }
    }
}

/// How something became part of a queued request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// A bio, at the request's end.
    Back,
    /// A bio, at its beginning.
    Front,
    /// A queued request, at its lower neighbour's end.
    Rq,
}

/// A kind of requests that has tokens of its own (Kyber).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Domain {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Discard,
    /// The rest.
    Other,
}

impl Domain {
    /// The kind of this number in [`hoistway_core::Note::TokenDepth`].
    pub const fn of_number(number: u8) -> Domain {
        match number {
            0 => Domain::Read,
            1 => Domain::Write,
            2 => Domain::Discard,
            _ => Domain::Other,
        }
    }

    /// Its name in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Domain::Read => "read",
            Domain::Write => "write",
            Domain::Discard => "discard",
            Domain::Other => "other",
        }
    }
}

/// What became of the plug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Plugging {
    /// The queue became plugged.
    Plug,
    /// The plug's timer fired.
    Timer,
    /// The plug was removed, for whatever reason.
    Unplug,
}

/// One decision: an entry of one of the lists. Times are in ns from the scenario's beginning; a request goes by the id of
/// the bio that it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The driver took a request.
    Dispatch {
        /// The request.
        id: u32,
        /// When.
        at_ns: u64,
    },
    /// A bio was done.
    Complete {
        /// The bio.
        id: u32,
        /// When.
        at_ns: u64,
    },
    /// A bio, or a queued request, became part of a queued request.
    Merge {
        /// What did.
        id: u32,
        /// The request that it is part of now.
        into: u32,
        /// How.
        how: How,
        /// When.
        at_ns: u64,
    },
    /// The plug changed.
    Plug {
        /// What became of it.
        what: Plugging,
        /// When.
        at_ns: u64,
    },
    /// A process went to sleep, as there was no free request.
    Sleep {
        /// The bio that it was submitting.
        id: u32,
        /// When.
        at_ns: u64,
    },
    /// A bio was neither merged nor made a request at the time it came.
    Late {
        /// The bio.
        id: u32,
        /// When its process began to submit it.
        began_ns: u64,
        /// When it was merged or made a request.
        done_ns: u64,
    },
    /// Another number of requests of a kind may be in the device from now on.
    #[serde(rename = "token_depth")]
    TokenDepth {
        /// The kind.
        domain: Domain,
        /// How many.
        depth: u32,
        /// Since when.
        at_ns: u64,
    },
}

impl Decision {
    /// When it was taken, in ns.
    pub fn at_ns(self) -> u64 {
        match self {
            Decision::Dispatch { at_ns, .. }
            | Decision::Complete { at_ns, .. }
            | Decision::Merge { at_ns, .. }
            | Decision::Plug { at_ns, .. }
            | Decision::Sleep { at_ns, .. }
            | Decision::TokenDepth { at_ns, .. } => at_ns,
            Decision::Late { done_ns, .. } => done_ns,
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Decision::Dispatch { id, at_ns } => write!(f, "request {id} at {at_ns} ns"),
            Decision::Complete { id, at_ns } => write!(f, "{id} done at {at_ns} ns"),
            Decision::Merge { id, into, how, at_ns } => {
                let how = match how {
                    How::Back => "back merge of",
                    How::Front => "front merge of",
                    How::Rq => "join of request",
                };
                write!(f, "{how} {id} into {into} at {at_ns} ns")
            }
            Decision::Plug { what, at_ns } => {
                let what = match what {
                    Plugging::Plug => "plugged",
                    Plugging::Timer => "timer",
                    Plugging::Unplug => "unplugged",
                };
                write!(f, "{what} at {at_ns} ns")
            }
            Decision::Sleep { id, at_ns } => write!(f, "submitter of {id} asleep at {at_ns} ns"),
            Decision::TokenDepth { domain, depth, at_ns } => {
                write!(f, "{} {}s at {at_ns} ns", depth, domain.name())
            }
            Decision::Late { id, began_ns, done_ns } => {
                write!(f, "submission of {id} from {began_ns} to {done_ns} ns")
            }
        }
    }
}
