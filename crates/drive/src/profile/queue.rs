//! The parameters of the command queue of a disk.

/// The commands that a disk takes at once, and how it chooses among them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QueueProfile {
    pub(crate) depth: u32,
    pub(crate) policy: QueuePolicy,
    /// How many of the oldest are looked at.
    pub(crate) window: u32,
    /// So much shorter a command's positioning time counts for each unit of time that it has waited.
    pub(crate) age_weight: f64,
    /// After so long the oldest goes first.
    pub(crate) max_wait_ms: Option<f64>,
    /// Whether a flush waits for the commands before it and lets none after it begin, as in SATA, which cannot queue it.
    pub(crate) flush_blocks: bool,
}

impl Default for QueueProfile {
    /// One command at a time.
    fn default() -> QueueProfile {
        QueueProfile {
            depth: 1,
            policy: QueuePolicy::Fifo,
            window: 1,
            age_weight: 0.0,
            max_wait_ms: None,
            flush_blocks: true,
        }
    }
}

/// Which of the waiting commands a disk begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum QueuePolicy {
    /// The oldest.
    Fifo,
    /// The one whose first sector is under the head soonest: shortest access time first (D. M. Jacobson and J. Wilkes, "Disk scheduling
    /// algorithms based on rotational position", HPL-CSP-91-7, 1991; M. Seltzer, P. Chen and J. Ousterhout, "Disk scheduling
    /// revisited", USENIX Winter 1990).
    Satf,
}
