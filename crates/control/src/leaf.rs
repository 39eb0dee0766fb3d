//! The type of a leaf of the control tree: its path, unit and meaning, and how it is read and set.

use crate::share::Watch;
use crate::target::{AdminTarget, Change, Refused};
use crate::text::BadValue;

/// How a leaf can be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The leaf can be read.
    Read,
    /// The leaf can be read and set.
    ReadWrite,
    /// The leaf can be set.
    Write,
}

impl Access {
    /// Returns `ro`, `rw` or `wo`.
    pub const fn label(self) -> &'static str {
        match self {
            Access::Read => "ro",
            Access::ReadWrite => "rw",
            Access::Write => "wo",
        }
    }
}

/// Reads a leaf. `None` if the object no longer exists.
pub type Get = fn(&LeafQuery<'_>) -> Option<String>;
/// Translates the value of a leaf to the change that sets it.
pub type Set = fn(&LeafQuery<'_>, &str) -> Result<Change, SetError>;

/// A leaf of the tree, or of each tree that its pattern stands for.
pub struct Leaf {
    /// The pattern of its path.
    pub path: &'static str,
    /// The unit of its value, or its form.
    pub unit: &'static str,
    /// The meaning of its value, and the effect of setting it, in a sentence.
    pub meaning: &'static str,
    /// Reads the value; lines are separated by `\n`.
    pub get: Option<Get>,
    /// Sets the value.
    pub set: Option<Set>,
}

impl Leaf {
    /// Returns how the leaf can be accessed.
    pub const fn access(&self) -> Access {
        match (self.get.is_some(), self.set.is_some()) {
            (_, false) => Access::Read,
            (true, true) => Access::ReadWrite,
            (false, true) => Access::Write,
        }
    }
}

/// The object that a leaf is read or set for.
pub struct LeafQuery<'a> {
    /// The administered server or mount.
    pub target: &'a dyn AdminTarget,
    /// The shares of the last ten seconds.
    pub watch: &'a Watch,
    /// The name of the object.
    pub name: &'a str,
    /// The name of the tunable.
    pub tunable: &'a str,
}

/// Why a leaf was not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The object no longer exists.
    #[error("it no longer exists")]
    Gone,
    /// The value is invalid.
    #[error(transparent)]
    Value(#[from] BadValue),
    /// The server refused the change.
    #[error(transparent)]
    Refused(#[from] Refused),
}
