//! The ids of I/O and of commands of a queue. Both are reused after the end of what they name.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// Returns the id as a number, for example as a part of a tag.
            pub const fn number(self) -> u32 {
                self.0
            }

            /// Returns the id with a number.
            pub const fn of_number(number: u32) -> $name {
                $name(number)
            }

            pub(crate) fn of_index(index: usize) -> $name {
                $name(index as u32)
            }

            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// The id of an I/O of a queue, from the submission of its request to its end.
    IoId
);

id!(
    /// The id of a command to a drive model, until
    /// [`MediumEvent::CommandDone`](crate::MediumEvent::CommandDone).
    CommandId
);

impl IoId {
    /// The flush in progress. No other I/O has this id.
    pub const FLUSH: IoId = IoId(u32::MAX);

    /// Returns the token of the bio in the request queue.
    pub(crate) fn token(self) -> u64 {
        self.0.into()
    }

    pub(crate) fn of_token(token: u64) -> IoId {
        IoId(token as u32)
    }
}
