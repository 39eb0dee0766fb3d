//! A scheduler's decision, and the lists that hold recorded decisions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The lists of decisions in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum List {
    /// Bios merged into a queued request, and queued requests that joined a neighbour.
    Merge,
    /// Plugging, the timer of the plug, unplugging.
    Plug,
    /// Processes that slept because no request was free.
    Sleeps,
    /// Bios whose submission was delayed.
    Late,
    /// Changes of the number of requests of a domain that may be in the device.
    #[serde(rename = "token_depth")]
    TokenDepth,
    /// Requests that the driver took.
    Dispatch,
    /// Completed bios.
    Complete,
}

impl List {
    /// All lists. Of two differences at one time, the one in the earlier list is the cause.
    pub const ALL: [List; 7] =
        [List::Merge, List::Plug, List::Sleeps, List::Late, List::TokenDepth, List::Dispatch, List::Complete];

    /// The name of the list's field in a file.
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

/// The kind of a merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeKind {
    /// A bio at the end of the request.
    Back,
    /// A bio at the front of the request.
    Front,
    /// A queued request at the end of its lower neighbour.
    Rq,
}

/// A group of requests with its own tokens (Kyber).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Domain {
    /// Requests that read.
    Read,
    /// Requests that write.
    Write,
    /// Requests that discard.
    Discard,
    /// All other requests.
    Other,
}

impl Domain {
    /// The domain of a number in [`hoistway_core::Note::TokenDepth`].
    pub const fn of_number(number: u8) -> Domain {
        match number {
            0 => Domain::Read,
            1 => Domain::Write,
            2 => Domain::Discard,
            _ => Domain::Other,
        }
    }

    /// The name of the domain in a file.
    pub const fn name(self) -> &'static str {
        match self {
            Domain::Read => "read",
            Domain::Write => "write",
            Domain::Discard => "discard",
            Domain::Other => "other",
        }
    }
}

/// A change of the plug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlugEvent {
    /// The queue became plugged.
    Plug,
    /// The plug's timer fired.
    Timer,
    /// The plug was removed, for any reason.
    Unplug,
}

/// A decision: an entry of one of the lists. Times are in ns since the start of the scenario. A
/// request has the id of the bio that it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// The driver took a request.
    Dispatch {
        /// Id of the request.
        id: u32,
        /// Time of the dispatch, in ns.
        at_ns: u64,
    },
    /// A bio completed.
    Complete {
        /// Id of the bio.
        id: u32,
        /// Time of the completion, in ns.
        at_ns: u64,
    },
    /// A bio, or a queued request, was merged into a queued request.
    Merge {
        /// Id of the merged bio or request.
        id: u32,
        /// Id of the request that received the bio or request.
        into: u32,
        /// Kind of the merge.
        how: MergeKind,
        /// Time of the merge, in ns.
        at_ns: u64,
    },
    /// The plug changed.
    Plug {
        /// The change.
        what: PlugEvent,
        /// Time of the change, in ns.
        at_ns: u64,
    },
    /// A process slept because no request was free.
    Sleep {
        /// Id of the submitted bio.
        id: u32,
        /// Time, in ns.
        at_ns: u64,
    },
    /// A bio was neither merged nor turned into a request at the time of its submission.
    Late {
        /// Id of the bio.
        id: u32,
        /// Start of the submission, in ns.
        began_ns: u64,
        /// Time of the merge or of the new request, in ns.
        done_ns: u64,
    },
    /// The number of requests of a domain that may be in the device changed.
    #[serde(rename = "token_depth")]
    TokenDepth {
        /// The domain.
        domain: Domain,
        /// The new number of requests.
        depth: u32,
        /// Time of the change, in ns.
        at_ns: u64,
    },
}

impl Decision {
    /// Time of the decision, in ns.
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
                    MergeKind::Back => "back merge of",
                    MergeKind::Front => "front merge of",
                    MergeKind::Rq => "join of request",
                };
                write!(f, "{how} {id} into {into} at {at_ns} ns")
            }
            Decision::Plug { what, at_ns } => {
                let what = match what {
                    PlugEvent::Plug => "plugged",
                    PlugEvent::Timer => "timer",
                    PlugEvent::Unplug => "unplugged",
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
