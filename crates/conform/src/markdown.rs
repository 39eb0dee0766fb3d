//! The results as tables of a page.

use std::path::Path;

use crate::decisions::{Conformance, FileReport, Target, targets};
use crate::kernel_recording::{Call, RecordingReport};
use hoistway_core::Kind;
use hoistway_units::figures::grouped;

/// Returns the totals, a table by elevator, a table by file, the scenarios that differ, and the
/// elevators without a recording. Recordings of the kernel module have a table of their own.
pub fn markdown(conformance: &Conformance) -> String {
    let recordings = &conformance.recordings;
    match (conformance.files.is_empty(), recordings.is_empty()) {
        (true, false) => of_recordings(recordings),
        (_, true) => of_scenarios(conformance),
        (false, false) => format!("{}\n{}", of_scenarios(conformance), of_recordings(recordings)),
    }
}

/// The totals of the kernel module's recordings, one line per recording with one column per kind of
/// decision that any of them has, and the first differences.
fn of_recordings(recordings: &[RecordingReport]) -> String {
    let identical = recordings.iter().filter(|recording| recording.difference.is_none()).count();
    let sum = |count: fn(&RecordingReport) -> u64| grouped(recordings.iter().map(count).sum());
    let mut lines = vec![
        format!(
            "{identical} of {} recordings are identical; they hold {} calls, {} of them decisions.",
            recordings.len(),
            sum(|recording| recording.records),
            sum(|recording| recording.decisions)
        ),
        String::new(),
    ];
    let has = |call: &&Call| call.is_decision() && recordings.iter().any(|recording| recording.records_of(**call) > 0);
    let calls: Vec<Call> = Call::ALL.iter().filter(has).copied().collect();
    let names: String = calls.iter().map(|call| format!(" {} |", call.name())).collect();
    lines.push(format!("| recording | elevator | identical | decisions |{names}"));
    lines.push(format!("|---|---|---|---|{}", "---|".repeat(calls.len())));
    for recording in recordings {
        let counts: String = calls.iter().map(|call| format!(" {} |", grouped(recording.records_of(*call)))).collect();
        lines.push(format!(
            "| `{}` | `{}` | {} / {} | {} |{counts}",
            stem(&recording.file),
            recording.elevator,
            grouped(recording.identical),
            grouped(recording.records),
            grouped(recording.decisions)
        ));
    }
    let different = |recording: &RecordingReport| {
        recording.difference.as_ref().map(|difference| format!("- `{}`: {difference}", stem(&recording.file)))
    };
    let different: Vec<String> = recordings.iter().filter_map(different).collect();
    lines.push(String::new());
    if different.is_empty() {
        lines.push("No recording differs.".to_owned());
    } else {
        lines.push("These recordings differ; the first difference of each:\n".to_owned());
        lines.extend(different);
    }
    lines.join("\n") + "\n"
}

fn of_scenarios(conformance: &Conformance) -> String {
    let totals = conformance.totals();
    let sum = format!(
        "{} of {} scenarios are identical; they hold {} decisions.",
        grouped(totals.identical),
        grouped(totals.scenarios),
        grouped(totals.decisions)
    );
    let parts = [
        sum,
        by_elevator(conformance),
        by_file(conformance),
        differences(&conformance.files),
        without_recordings(conformance),
    ];
    parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| format!("{}\n", part.trim_end()))
        .collect::<Vec<_>>()
        .join("\n")
}

/// One line per source, in the order of [`targets`].
fn by_elevator(conformance: &Conformance) -> String {
    let mut lines =
        vec!["| recorded from | elevator | identical | decisions |".to_owned(), "|---|---|---|---|".to_owned()];
    for target in targets() {
        let totals = conformance.totals_of(target);
        if totals.scenarios > 0 {
            lines.push(format!(
                "| {} | {} | {} / {} | {} |",
                target.source,
                tuned(target),
                grouped(totals.identical),
                grouped(totals.scenarios),
                grouped(totals.decisions)
            ));
        }
    }
    lines.join("\n")
}

/// The elevator with the tunables that make it that kernel's.
fn tuned(target: &Target) -> String {
    let tunables = target.tunables.iter().map(|(name, value)| format!(", `{name}` {value}"));
    format!("`{}`{}", target.elevator.info().name, tunables.collect::<String>())
}

/// One line per file, one column per list that any of the files has.
fn by_file(conformance: &Conformance) -> String {
    let lists = conformance.lists();
    let names: String = lists.iter().map(|list| format!(" {} |", list.name())).collect();
    let mut lines = vec![format!("| file | identical |{names}"), format!("|---|---|{}", "---|".repeat(lists.len()))];
    for file in &conformance.files {
        let counts = lists.iter().map(|list| match file.decisions_of(*list) {
            Some(count) => format!(" {} |", grouped(count)),
            None => " |".to_owned(),
        });
        let counts: String = counts.collect();
        lines.push(format!("| `{}` | {} / {} |{counts}", stem(&file.file), file.identical, file.total));
    }
    lines.join("\n")
}

/// The first difference of each scenario that differs.
fn differences(files: &[FileReport]) -> String {
    let lines = files.iter().flat_map(|file| {
        file.differences.iter().map(|scenario| {
            format!("- `{}`, line {}, {}: {}", stem(&file.file), scenario.line, scenario.name, scenario.difference)
        })
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return "No scenario differs.".to_owned();
    }
    format!("These scenarios differ; the first difference of each:\n\n{}", lines.join("\n"))
}

/// Names the elevators that none of the files holds decisions for.
fn without_recordings(conformance: &Conformance) -> String {
    let kinds = conformance.elevators_without_recording();
    let (custom, built_in): (Vec<Kind>, Vec<Kind>) =
        kinds.into_iter().partition(|kind| matches!(kind, Kind::Custom(_)));
    let sentence = |kinds: &[Kind], end: &str| {
        let names: Vec<String> = kinds.iter().map(|kind| format!("`{}`", kind.info().name)).collect();
        (!names.is_empty()).then(|| format!("No recording is for {}{end}.", names.join(", ")))
    };
    let sentences = [
        sentence(&built_in, ": they follow their specifications only"),
        sentence(&custom, ", which hoistway does not contain"),
    ];
    sentences.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// A file's name without folder and extensions.
fn stem(file: &str) -> &str {
    let name = Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or(file);
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".rec")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_its_folder_and_its_endings() {
        assert_eq!(["a/b.jsonl.gz", "b.jsonl", "b"].map(stem), ["b"; 3]);
    }
}
