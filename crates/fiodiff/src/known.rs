//! The jobs that are known to differ, by their options.

use crate::case::Case;

/// A kind of jobs that differ from fio's.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What differs, as a part of a sentence in Markdown.
    pub text: &'static str,
    is: fn(&Case) -> bool,
}

/// All kinds.
pub const KINDS: &[Kind] = &[];

/// The kind of a job that is known to differ.
pub fn kind_of(case: &Case) -> Option<Kind> {
    KINDS.iter().copied().find(|kind| (kind.is)(case))
}
