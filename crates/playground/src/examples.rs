//! The example jobs, which are job files of the repository.

use serde::Serialize;

/// An example job.
#[derive(Debug, Serialize)]
pub(super) struct Example {
    /// The name of the job file.
    name: &'static str,
    /// What the job shows, as the label of a choice.
    label: &'static str,
    /// The drive on which it shows that.
    drive: &'static str,
    /// The elevators that differ in it.
    elevators: &'static [&'static str],
    /// The longest runtime of a job for a quick answer; none for jobs that are short.
    runtime: Option<&'static str>,
    /// The text of the job file.
    text: &'static str,
}

macro_rules! example {
    ($path:literal, $label:literal, $drive:literal, $elevators:expr, $runtime:expr) => {
        Example {
            name: $path,
            label: $label,
            drive: $drive,
            elevators: &$elevators,
            runtime: $runtime,
            text: include_str!(concat!("../../../examples/", $path)),
        }
    };
}

/// All examples; the first is shown when the page opens.
pub(super) const EXAMPLES: [Example; 6] = [
    example!(
        "competing-readers.fio",
        "Readers that compete for a disk",
        "sata-7200-2006",
        ["deadline", "anticipatory", "cfq-v3"],
        Some("4s")
    ),
    example!(
        "reader-and-writer.fio",
        "A reader beside a writer",
        "sata-7200-2006",
        ["mq-deadline", "cfq-v3", "bfq"],
        Some("4s")
    ),
    example!(
        "playground/database-and-backup.fio",
        "A database beside a backup",
        "sata-7200-2006",
        ["noop", "mq-deadline", "kyber", "bfq"],
        Some("3s")
    ),
    example!(
        "playground/boot.fio",
        "Programs that start while files are copied",
        "sata-7200-2006",
        ["mq-deadline", "bfq", "anticipatory"],
        Some("5s")
    ),
    example!(
        "priorities.fio",
        "Readers with I/O priorities",
        "sata-7200-2006",
        ["mq-deadline", "cfq-v3", "bfq"],
        Some("4s")
    ),
    example!("archive.fio", "An archive of a tree of files", "sata-7200-2006", ["mq-deadline", "bfq"], None),
];
