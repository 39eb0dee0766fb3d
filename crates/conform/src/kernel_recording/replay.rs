//! Compares the answers of a recording with those of hoistway's crates, record by record.

use std::collections::VecDeque;
use std::fmt;

use serde::Serialize;

use super::call::Call;
use super::error::RecordError;
use super::queue::ReplayQueue;
use super::record::{Record, seconds};
use super::start::Start;

/// The number of records that are shown before a difference.
const BEFORE: usize = 10;

/// The first answer of a recording that the replay does not have. Later ones cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordDifference {
    /// The number of the record, from 1.
    pub number: u64,
    /// The time of the call in ns since boot.
    pub time_ns: u64,
    /// The call.
    pub call: Call,
    /// The call with its arguments, as text.
    pub question: String,
    /// The recorded answer, as text.
    pub expected: String,
    /// The answer of the replay, as text.
    pub got: String,
    /// The state of the replay after the call: the queue and its requests.
    pub state: Vec<String>,
    /// The records before, the last one at the end.
    pub before: Vec<String>,
}

impl fmt::Display for RecordDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RecordDifference { number, question, expected, got, .. } = self;
        let at = seconds(self.time_ns);
        write!(f, "record {number} at {at}, {question}: expected {expected}, got {got}")
    }
}

/// A replay of a recording.
#[allow(missing_debug_implementations)]
#[derive(Default)]
pub struct Replay {
    start: Option<Start>,
    queue: Option<ReplayQueue>,
    /// The number of queues: resizing begins a new one.
    queues: u32,
    before: VecDeque<Record>,
}

impl Replay {
    /// Makes the call of the next record. Returns the difference between its answer and the
    /// recorded one; the replay cannot be continued then.
    ///
    /// # Errors
    /// [`RecordError`] if the record describes an impossible queue or is out of place.
    pub fn step(&mut self, record: &Record) -> Result<Option<RecordDifference>, RecordError> {
        let call = record.call;
        match (call, &mut self.queue) {
            (Call::Queue, _) => self.begin(Start::new(*record)),
            (Call::Config | Call::Name | Call::Tunable, queue) => {
                let right = "the description of a queue begins with its capacity";
                let start = self.start.as_mut().filter(|_| queue.is_none());
                let start = start.ok_or(RecordError::Place { call, right })?;
                if start.add(record)? {
                    self.queue = Some(ReplayQueue::new(start)?);
                }
            }
            (Call::End, _) => {}
            (_, Some(queue)) => {
                let made = queue.answer(record);
                if made != *record {
                    return Ok(Some(self.difference(record, &made)));
                }
            }
            (_, None) => {
                return Err(RecordError::Place { call, right: "the description of the queue is not complete" });
            }
        }
        if self.before.len() == BEFORE {
            self.before.pop_front();
        }
        self.before.push_back(*record);
        Ok(None)
    }

    fn begin(&mut self, start: Start) {
        self.start = Some(start);
        self.queue = None;
        self.queues = self.queues.saturating_add(1);
    }

    fn difference(&self, record: &Record, made: &Record) -> RecordDifference {
        RecordDifference {
            number: record.number,
            time_ns: record.time_ns,
            call: record.call,
            question: record.arguments(),
            expected: record.answer(),
            got: made.answer(),
            state: self.queue.as_ref().map(ReplayQueue::state).unwrap_or_default(),
            before: self.before.iter().map(Record::to_string).collect(),
        }
    }

    /// The elevator of the current queue.
    pub fn elevator(&self) -> Option<&'static str> {
        self.start.as_ref().and_then(Start::elevator)
    }

    /// The version of the kernel module that made the recording.
    pub fn module(&self) -> &str {
        self.start.as_ref().map(Start::module).unwrap_or_default()
    }

    /// The number of queues so far: a change of `nr_requests` begins a new one.
    pub fn queues(&self) -> u32 {
        self.queues
    }
}
