//! `hoistway conform --markdown`: the results as tables of a page.

use std::path::Path;

use anyhow::Result;
use hoistway_core::Kind;
use hoistway_sim::decisions::{Conformance, FileReport, Target, targets};
use hoistway_units::figures::grouped;

use crate::output::Out;

/// Prints the totals, a table by elevator, a table by file, the scenarios that differ, and the
/// elevators without a recording.
pub fn print(conformance: &Conformance, out: &mut Out) -> Result<()> {
    page(conformance).lines().try_for_each(|line| out.line(line))?;
    Ok(())
}

fn page(conformance: &Conformance) -> String {
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
    name.strip_suffix(".jsonl").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_its_folder_and_its_endings() {
        assert_eq!(["a/b.jsonl.gz", "b.jsonl", "b"].map(stem), ["b"; 3]);
    }
}
