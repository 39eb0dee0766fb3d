//! Checks of the table `[queue]`.

use toml::Spanned;

use super::super::raw::RawQueue;
use super::super::{QueuePolicy, QueueProfile};
use super::disk::MAX_MS;
use super::{Check, Checked};

/// The largest queue depth of a disk: SCSI tags on a parallel bus have 8 bits.
const MAX_DEPTH: u32 = 256;

impl Check<'_> {
    /// The queue of the table; a queue of one command without a table.
    pub(super) fn queue(&self, raw: Option<&Spanned<RawQueue>>) -> Checked<QueueProfile> {
        let Some(raw) = raw.map(Spanned::as_ref) else { return Ok(QueueProfile::default()) };
        let depth = self.within(&raw.depth, "queue.depth", 1, MAX_DEPTH)?;
        if raw.policy == QueuePolicy::Fifo {
            self.satf_alone(raw)?;
        }
        let window = match &raw.window {
            Some(window) => self.within(window, "queue.window", 1, depth)?,
            None => depth,
        };
        let age_weight = match &raw.age_weight {
            Some(weight) => self.within(weight, "queue.age_weight", 0.0, 1000.0)?,
            None => 0.0,
        };
        let max_wait_ms = match &raw.max_wait_ms {
            Some(limit) => Some(self.within(limit, "queue.max_wait_ms", 0.0, MAX_MS)?),
            None => None,
        };
        Ok(QueueProfile { depth, policy: raw.policy, window, age_weight, max_wait_ms, flush_blocks: raw.flush_blocks })
    }

    /// Refuses the keys of `satf` for a queue in order of arrival.
    fn satf_alone(&self, raw: &RawQueue) -> Checked<()> {
        let given = [
            (raw.window.as_ref().map(|value| (value.span(), value.as_ref().to_string())), "queue.window"),
            (raw.age_weight.as_ref().map(|value| (value.span(), value.as_ref().to_string())), "queue.age_weight"),
            (raw.max_wait_ms.as_ref().map(|value| (value.span(), value.as_ref().to_string())), "queue.max_wait_ms"),
        ];
        for (value, key) in given {
            if let Some((span, value)) = value {
                return Err(self.value(span, key, value, "only `policy = \"satf\"` reorders commands"));
            }
        }
        Ok(())
    }
}
