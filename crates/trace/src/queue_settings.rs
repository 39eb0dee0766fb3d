//! Settings of a device's queue in a trace: its scheduler, the scheduler's tunables, and attributes
//! of the queue.
//!
//! `hoistway trace record` writes them as messages (blktrace's `m` events), which all formats with
//! messages keep and other tools print:
//!
//! ```text
//! hoistway scheduler bfq: low_latency=1 slice_idle=8
//! hoistway queue: nr_requests=64 rotational=1 write_cache=back
//! ```
//!
//! Several messages of a kind add to one another. A message with another scheduler says that the
//! device was switched to it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

/// Beginning of the messages about a scheduler.
const SCHEDULER: &str = "hoistway scheduler ";
/// Beginning of the messages about a queue.
const QUEUE: &str = "hoistway queue:";
/// Maximum length of a message in bytes. The kernel's own messages have up to 128.
const MESSAGE_BYTES_MAX: usize = 120;
/// Maximum number of schedulers, tunables and attributes that are kept of a damaged trace.
const ENTRIES_MAX: usize = 256;

/// The settings of a device's queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueSettings {
    /// The schedulers in order of their use; more than one if the device was switched.
    pub schedulers: Vec<SchedulerSettings>,
    /// Attributes of the queue by name, as in sysfs: `nr_requests`, `max_sectors_kb`.
    pub queue: BTreeMap<String, String>,
}

/// A scheduler and its tunables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SchedulerSettings {
    /// The kernel's name of the scheduler, such as `mq-deadline` or `none`.
    pub name: String,
    /// The tunables by name, as in sysfs.
    pub tunables: BTreeMap<String, String>,
}

impl QueueSettings {
    /// Returns true if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.schedulers.is_empty() && self.queue.is_empty()
    }

    /// Returns the number of an attribute of the queue.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.queue.get(name)?.parse().ok()
    }

    /// Returns the messages that store the settings in a trace. Values that are empty or have
    /// blanks are left out.
    pub fn messages(&self) -> Vec<String> {
        let schedulers = self.schedulers.iter().map(|used| (format!("{SCHEDULER}{}:", used.name), &used.tunables));
        let queue = (!self.queue.is_empty()).then(|| (QUEUE.to_owned(), &self.queue));
        let mut messages = Vec::new();
        for (begin, values) in schedulers.chain(queue) {
            let mut message = begin.clone();
            for (name, value) in values.iter().filter(|(_, value)| is_word(value)) {
                let bytes = name.len() + value.len() + " =".len();
                if message.len() > begin.len() && message.len() + bytes > MESSAGE_BYTES_MAX {
                    messages.push(std::mem::replace(&mut message, begin.clone()));
                }
                message.push_str(&format!(" {name}={value}"));
            }
            messages.push(message);
        }
        messages
    }

    /// Applies a message of a trace. Returns false if it is about something else.
    pub fn apply_message(&mut self, message: &str) -> bool {
        if let Some(values) = message.strip_prefix(QUEUE) {
            add_values(&mut self.queue, values);
            return true;
        }
        let Some((name, values)) = message.strip_prefix(SCHEDULER).and_then(|rest| rest.split_once(':')) else {
            return false;
        };
        if self.schedulers.last().is_none_or(|last| last.name != name) && self.schedulers.len() < ENTRIES_MAX {
            self.schedulers.push(SchedulerSettings { name: name.to_owned(), tunables: BTreeMap::new() });
        }
        if let Some(last) = self.schedulers.last_mut() {
            add_values(&mut last.tunables, values);
        }
        true
    }
}

impl fmt::Display for QueueSettings {
    /// Writes the settings in a line: `bfq (slice_idle=8), queue: nr_requests=64,
    /// write_cache=back`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = |values: &BTreeMap<String, String>| {
            values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
        };
        let scheduler = |used: &SchedulerSettings| match used.tunables.is_empty() {
            true => used.name.clone(),
            false => format!("{} ({})", used.name, listed(&used.tunables)),
        };
        let mut parts: Vec<String> = Vec::new();
        if !self.schedulers.is_empty() {
            parts.push(self.schedulers.iter().map(scheduler).collect::<Vec<_>>().join(", then "));
        }
        if !self.queue.is_empty() {
            parts.push(format!("queue: {}", listed(&self.queue)));
        }
        f.write_str(&parts.join(", "))
    }
}

fn is_word(value: &str) -> bool {
    !value.is_empty() && !value.contains(char::is_whitespace)
}

fn add_values(values: &mut BTreeMap<String, String>, text: &str) {
    for (name, value) in text.split_whitespace().filter_map(|pair| pair.split_once('=')) {
        if values.len() < ENTRIES_MAX || values.contains_key(name) {
            values.insert(name.to_owned(), value.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn messages_store_all_settings() {
        let tunables: BTreeMap<String, String> =
            (0..20).map(|number| (format!("tunable_{number}"), (number * 1000).to_string())).collect();
        let settings = QueueSettings {
            schedulers: vec![SchedulerSettings { name: "bfq".into(), tunables }],
            queue: values(&[("nr_requests", "64"), ("write_cache", "back")]),
        };
        let messages = settings.messages();
        assert!(messages.len() > 3 && messages.iter().all(|message| message.len() <= MESSAGE_BYTES_MAX));
        assert_eq!(messages.last().map(String::as_str), Some("hoistway queue: nr_requests=64 write_cache=back"));
        let mut read = QueueSettings::default();
        assert!(messages.iter().all(|message| read.apply_message(message)));
        assert_eq!((read.number("nr_requests"), &read), (Some(64), &settings));
    }

    #[test]
    fn a_scheduler_without_tunables_and_a_switch_are_kept() {
        let mut settings = QueueSettings::default();
        assert!(settings.apply_message("hoistway scheduler none:"));
        assert!(settings.apply_message("hoistway scheduler bfq: slice_idle=0"));
        assert!(!settings.apply_message("bfq2896S get_request"));
        let names: Vec<&str> = settings.schedulers.iter().map(|used| used.name.as_str()).collect();
        assert_eq!(settings.to_string(), "none, then bfq (slice_idle=0)");
        assert_eq!((names, &settings.schedulers[1].tunables), (vec!["none", "bfq"], &values(&[("slice_idle", "0")])));
        assert_eq!(settings.messages(), ["hoistway scheduler none:", "hoistway scheduler bfq: slice_idle=0"]);
    }
}
