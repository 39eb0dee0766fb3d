//! The parameters of the command queue of a disk.

/// The depth of the command queue and the rule by which it is reordered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QueueProfile {
    pub(crate) depth: u32,
    pub(crate) policy: QueuePolicy,
    /// The number of the oldest commands among which the disk chooses.
    pub(crate) window: u32,
    /// Reduction of a command's positioning time for each unit of time that it has waited.
    pub(crate) age_weight: f64,
    /// Waiting time after which the oldest command is served first.
    pub(crate) max_wait_ms: Option<f64>,
    /// True if a flush waits for all earlier commands and blocks all later ones, as in SATA, which
    /// cannot queue a flush.
    pub(crate) flush_blocks: bool,
}

impl Default for QueueProfile {
    /// A queue of one command.
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

/// The rule by which a disk chooses the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum QueuePolicy {
    /// The oldest command.
    Fifo,
    /// The command whose first sector reaches the head first: shortest access time first.
    ///
    /// Sources: D. M. Jacobson and J. Wilkes, "Disk scheduling algorithms based on rotational
    /// position", HPL-CSP-91-7, 1991; M. Seltzer, P. Chen and J. Ousterhout, "Disk scheduling
    /// revisited", USENIX Winter 1990.
    Satf,
}
