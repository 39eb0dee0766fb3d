//! Advice on the access pattern: `fadvise_hint`.

/// The advice on the access pattern that a job gives to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FadviseHint {
    /// No advice.
    None,
    /// The pattern of `rw`: random or sequential.
    #[default]
    Pattern,
    /// Sequential access.
    Sequential,
    /// Random access.
    Random,
}

impl FadviseHint {
    /// The advice of a job whose accesses are random, or sequential: [`FadviseHint::Sequential`],
    /// [`FadviseHint::Random`] or [`FadviseHint::None`].
    pub fn of(self, is_random: bool) -> FadviseHint {
        match self {
            FadviseHint::Pattern if is_random => FadviseHint::Random,
            FadviseHint::Pattern => FadviseHint::Sequential,
            given => given,
        }
    }
}
