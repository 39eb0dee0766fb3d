//! The calls of the core that a recording has, and the words of a record that hold their arguments
//! and answers.

use serde::{Serialize, Serializer};

/// A word of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// One of the four numbers of 64 bits.
    A(usize),
    /// The token of a bio.
    Token,
    /// One of the two numbers of 32 bits.
    N(usize),
    /// The operation of a bio or request.
    Op,
    /// The flags of a bio or request.
    Flags,
}

/// The way in which a word is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A decimal number.
    Number,
    /// A signed decimal number.
    Signed,
    /// A handle or token, in hexadecimal digits.
    Handle,
    /// A time in ns.
    Time,
    /// A side of a request: its end or its front.
    Side,
    /// The kind of deferred work.
    Work,
    /// A hardware queue, or none.
    HwQueue,
    /// An operation.
    Op,
    /// Flags of a bio.
    Flags,
}

/// A named word of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub name: &'static str,
    pub word: Word,
    pub form: Form,
    /// True for a part of the core's answer, false for an argument.
    pub is_answer: bool,
}

const fn arg(name: &'static str, word: Word, form: Form) -> Field {
    Field { name, word, form, is_answer: false }
}

const fn answer(name: &'static str, word: Word, form: Form) -> Field {
    Field { name, word, form, is_answer: true }
}

macro_rules! calls {
    ($($(#[$doc:meta])* $kind:ident = $number:literal, $name:literal, $decides:literal, [$($field:expr),* $(,)?];)*) => {
        /// A call of the core, or a part of the description of a queue.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Call {
            $($(#[$doc])* $kind = $number,)*
        }

        impl Call {
            /// All calls, in the order of their numbers.
            pub const ALL: &'static [Call] = &[$(Call::$kind,)*];

            /// The name of the call in texts.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Call::$kind => $name,)*
                }
            }

            /// Returns true if the call asks the core for a decision. All other calls answer
            /// whether they succeeded and whether the queue must be run.
            pub const fn is_decision(self) -> bool {
                match self {
                    $(Call::$kind => $decides,)*
                }
            }

            /// The fields of the call's record.
            pub(super) const fn fields(self) -> &'static [Field] {
                match self {
                    $(Call::$kind => const { &[$($field,)*] },)*
                }
            }
        }
    };
}

use Form::{Handle, Number, Side, Signed, Time};
use Word::{A, N};

const OP: Field = arg("op", Word::Op, Form::Op);
const FLAGS: Field = arg("flags", Word::Flags, Form::Flags);

calls! {
    /// A new queue: its capacity, its elevator and its root group.
    Queue = 1, "queue", false, [];
    /// The configuration of the new queue.
    Config = 2, "config", false, [];
    /// The names of the new queue's elevator and of the module's version.
    Name = 3, "name", false, [];
    /// A tunable of the new queue.
    Tunable = 4, "tunable", false, [];
    /// The end of the recording.
    End = 5, "end", false, [arg("lost", A(0), Number), arg("records", A(1), Number)];
    /// A new request is submitted.
    Submit = 16, "submit", false, [
        arg("context", A(0), Handle), arg("sector", A(1), Number), arg("sectors", N(0), Number), OP, FLAGS,
        arg("token", Word::Token, Handle), answer("request", A(2), Handle), answer("what", N(1), Number),
    ];
    /// The driver returns a request.
    Requeue = 17, "requeue", false, [arg("request", A(0), Handle)];
    /// The driver asks for a request.
    Next = 18, "next", true, [
        arg("hw_queue", A(3), Form::HwQueue), answer("request", A(0), Handle), answer("sector", A(1), Number),
        answer("sectors", N(0), Number), answer("op", Word::Op, Form::Op), answer("flags", Word::Flags, Form::Flags),
        answer("pid", N(1), Number), answer("submitted_ns", A(2), Number), answer("token", Word::Token, Handle),
    ];
    /// The device completed a request.
    Complete = 19, "complete", false, [
        arg("request", A(0), Handle), answer("tokens", N(0), Number), answer("token", Word::Token, Handle),
    ];
    /// The block layer asks whether it may merge a bio into a request.
    AllowsMerge = 20, "allows_merge", true, [
        arg("request", A(0), Handle), arg("context", A(1), Handle), arg("sector", A(2), Number),
        arg("sectors", N(0), Number), OP, FLAGS,
    ];
    /// The block layer asks for a request into which it can merge a bio.
    FindMerge = 21, "find_merge", true, [
        arg("context", A(1), Handle), arg("sector", A(2), Number), arg("sectors", N(0), Number), OP, FLAGS,
        answer("request", A(0), Handle), answer("side", N(1), Side), answer("token", Word::Token, Handle),
    ];
    /// The block layer asks for the request beside another one.
    Neighbour = 22, "neighbour", true, [
        arg("request", A(0), Handle), arg("side", N(1), Side), answer("found", A(1), Handle),
        answer("token", Word::Token, Handle),
    ];
    /// The block layer merged a bio into a request.
    Growth = 23, "record_growth", false, [
        arg("request", A(0), Handle), arg("side", N(1), Side), arg("sector", A(1), Number),
        arg("sectors", N(0), Number),
    ];
    /// The block layer merged two requests.
    Join = 24, "record_join", false, [
        arg("request", A(0), Handle), arg("absorbed", A(1), Handle), arg("sector", A(2), Number),
        arg("sectors", N(0), Number), arg("absorbed_sector", A(3), Number), arg("absorbed_sectors", N(1), Number),
    ];
    /// The block layer merged a request that was about to be inserted.
    InsertJoin = 25, "record_join_at_insert", false, [
        arg("request", A(0), Handle), arg("grown_sector", A(1), Number), arg("grown_sectors", N(0), Number),
        arg("context", A(2), Handle), arg("sector", A(3), Number), arg("sectors", N(1), Number), OP, FLAGS,
        arg("token", Word::Token, Handle),
    ];
    /// The module asks for the requests on the dispatch list. Each of them has a record.
    Dispatched = 26, "dispatched", true, [
        arg("index", N(1), Number), answer("requests", N(0), Number), answer("token", Word::Token, Handle),
    ];
    /// The module asks for the time of the next timer.
    NextTimer = 27, "next_timer", true, [answer("at", A(0), Time)];
    /// A timer fires.
    Timer = 28, "timer", false, [];
    /// The module asks for deferred work.
    NextWork = 29, "next_work", true, [answer("what", N(0), Form::Work), answer("context", A(0), Handle)];
    /// A context is created.
    Context = 30, "context_create", false, [arg("pid", N(0), Number), answer("context", A(0), Handle)];
    /// A context's process exits.
    Exit = 31, "context_exit", false, [arg("context", A(0), Handle)];
    /// A context's priority changes.
    Priority = 32, "context_set_priority", false, [
        arg("context", A(0), Handle), arg("class", N(0), Number), arg("level", N(1), Number),
    ];
    /// A context's process changes its CPU.
    Cpu = 33, "context_set_cpu", false, [arg("context", A(0), Handle), arg("cpu", N(0), Number)];
    /// A context moves to another group.
    Move = 34, "context_move", false, [arg("context", A(0), Handle), arg("group", A(1), Handle)];
    /// A group is created.
    Group = 35, "group_create", false, [
        arg("parent", A(0), Handle), arg("weight", N(0), Number), answer("group", A(1), Handle),
    ];
    /// A group's weights change.
    Weights = 36, "group_set_weights", false, [arg("group", A(0), Handle), arg("weight", N(0), Number)];
    /// A group is removed.
    GroupRemove = 37, "group_remove", false, [arg("group", A(0), Handle)];
    /// A tunable changes.
    SetTunable = 38, "set_tunable", false, [arg("index", N(0), Number), arg("value", A(0), Signed)];
    /// The block layer asks how many requests it may allocate.
    DepthLimit = 39, "depth_limit", true, [
        arg("nr_requests", N(0), Number), arg("context", A(0), Handle), arg("sector", A(1), Number),
        arg("sectors", A(2), Number), OP, FLAGS, answer("limit", N(1), Number),
    ];
    /// The block layer begins to search for a request into which it can merge a bio.
    PrepareMerge = 40, "prepare_merge", true, [
        arg("context", A(1), Handle), arg("sector", A(2), Number), arg("sectors", N(0), Number), OP, FLAGS,
        answer("request", A(0), Handle), answer("side", N(1), Side), answer("token", Word::Token, Handle),
    ];
    /// The module asks whether requests may be merged at insertion.
    Joins = 41, "joins_at_insert", true, [];
    /// Bandwidth is reserved for a context.
    Reserve = 42, "reserve", true, [
        arg("context", A(0), Handle), arg("bytes_per_second", A(1), Number), arg("depth_bytes", A(2), Number),
        arg("request_bytes", A(3), Number),
    ];
    /// The reservation of a context ends.
    Release = 43, "release", false, [arg("context", A(0), Handle)];
    /// Bandwidth is reserved for a group.
    GroupReserve = 44, "group_reserve", true, [
        arg("group", A(0), Handle), arg("bytes_per_second", A(1), Number), arg("depth_bytes", A(2), Number),
        arg("request_bytes", A(3), Number),
    ];
    /// The reservation of a group ends.
    GroupRelease = 45, "group_release", false, [arg("group", A(0), Handle)];
}

impl Call {
    /// The call of a number in a record.
    pub fn of_number(number: u8) -> Option<Call> {
        Call::ALL.iter().copied().find(|call| *call as u8 == number)
    }

    /// Returns true for the records that describe a new queue.
    pub const fn is_start(self) -> bool {
        matches!(self, Call::Queue | Call::Config | Call::Name | Call::Tunable)
    }
}

impl Serialize for Call {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
