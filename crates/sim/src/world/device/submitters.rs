//! The submitters of a device, each with a context in the queue.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::ops::{Index, IndexMut};

use hoistway_core::{Bio, ContextId};

use super::super::task::SubmitterId;
use super::plug::Plug;

/// The context that a submitter is in the queue, and the bios that it could not submit yet.
#[derive(Debug)]
pub(super) struct Submitter {
    pub context: ContextId,
    pub backlog: VecDeque<Bio>,
    /// The plug, while one of the submitter's calls submits.
    pub plug: Option<Plug>,
}

/// The submitters of a device.
#[derive(Debug, Default)]
pub(super) struct Submitters {
    all: Vec<Submitter>,
    by_context: HashMap<ContextId, SubmitterId, BuildHasherDefault<DefaultHasher>>,
    /// Submitters whose bios the queue's storage had no room for.
    pub refused: VecDeque<SubmitterId>,
    /// Submitters whose backlog has been submitted completely.
    pub resumed: Vec<SubmitterId>,
}

impl Submitters {
    /// Adds the submitter with this context.
    pub fn add(&mut self, context: ContextId) {
        self.by_context.insert(context, SubmitterId(self.all.len() as u32));
        self.all.push(Submitter { context, backlog: VecDeque::new(), plug: None });
    }

    /// The submitter with this context.
    #[inline]
    pub fn of_context(&self, context: ContextId) -> Option<SubmitterId> {
        self.by_context.get(&context).copied()
    }
}

impl Index<SubmitterId> for Submitters {
    type Output = Submitter;

    #[inline]
    fn index(&self, submitter: SubmitterId) -> &Submitter {
        &self.all[submitter.0 as usize]
    }
}

impl IndexMut<SubmitterId> for Submitters {
    #[inline]
    fn index_mut(&mut self, submitter: SubmitterId) -> &mut Submitter {
        &mut self.all[submitter.0 as usize]
    }
}
