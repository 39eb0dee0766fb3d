//! `hoistway conform --markdown`: what came out, as the tables of a page.

use std::path::Path;

use anyhow::Result;
use hoistway_core::Kind;
use hoistway_sim::decisions::{List, Target, targets};

use super::{Document, File};
use crate::output::Out;

/// Prints the sum, a table by elevator, a table by file, the scenarios that differ, and the elevators that no recording is for.
pub fn print(document: &Document, out: &mut Out) -> Result<()> {
    page(&document.files).lines().try_for_each(|line| out.line(line))?;
    Ok(())
}

fn page(files: &[File]) -> String {
    let [identical, total] = [|file: &File| u64::from(file.identical), |file: &File| u64::from(file.total)]
        .map(|of| files.iter().map(of).sum::<u64>());
    let decisions: u64 = files.iter().map(|file| file.decisions).sum();
    let sum = format!(
        "{} of {} scenarios are identical; they hold {} decisions.",
        grouped(identical),
        grouped(total),
        grouped(decisions)
    );
    let parts = [sum, by_elevator(files), by_file(files), differences(files), without_recordings(files)];
    parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| format!("{}\n", part.trim_end()))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A line a source, in the order in which sources are known.
fn by_elevator(files: &[File]) -> String {
    let mut lines =
        vec!["| recorded from | elevator | identical | decisions |".to_owned(), "|---|---|---|---|".to_owned()];
    for target in targets() {
        let of_target: Vec<&File> = files.iter().filter(|file| file.sources.contains(&target.source)).collect();
        let (identical, total) = of_target.iter().fold((0, 0), |(identical, total), file| {
            (identical + u64::from(file.identical), total + u64::from(file.total))
        });
        if total > 0 {
            let decisions: u64 = of_target.iter().map(|file| file.decisions).sum();
            let elevator = tuned(target);
            lines.push(format!(
                "| {} | {elevator} | {} / {} | {} |",
                target.source,
                grouped(identical),
                grouped(total),
                grouped(decisions)
            ));
        }
    }
    lines.join("\n")
}

/// The elevator, with what makes it that kernel's.
fn tuned(target: &Target) -> String {
    let tunables = target.tunables.iter().map(|(name, value)| format!(", `{name}` {value}"));
    format!("`{}`{}", target.elevator.info().name, tunables.collect::<String>())
}

/// A line a file, a column a list that any of them has.
fn by_file(files: &[File]) -> String {
    let recorded =
        |file: &File, list: List| file.lists.iter().find(|count| count.list == list).map(|count| count.decisions);
    let lists: Vec<List> =
        List::ALL.into_iter().filter(|list| files.iter().any(|file| recorded(file, *list).is_some())).collect();
    let names: String = lists.iter().map(|list| format!(" {} |", list.name())).collect();
    let mut lines = vec![format!("| file | identical |{names}"), format!("|---|---|{}", "---|".repeat(lists.len()))];
    for file in files {
        let counts = lists.iter().map(|list| match recorded(file, *list) {
            Some(count) => format!(" {} |", grouped(count)),
            None => " |".to_owned(),
        });
        let counts: String = counts.collect();
        lines.push(format!("| `{}` | {} / {} |{counts}", stem(&file.file), file.identical, file.total));
    }
    lines.join("\n")
}

/// Where each scenario that differs does so first.
fn differences(files: &[File]) -> String {
    let told = files.iter().flat_map(|file| {
        file.differences.iter().map(|scenario| {
            format!("- `{}`, line {}, {}: {}", stem(&file.file), scenario.line, scenario.name, scenario.difference)
        })
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        return "No scenario differs.".to_owned();
    }
    format!("These differ, first where it is told:\n\n{}", told.join("\n"))
}

/// Elevators that none of the files is for.
fn without_recordings(files: &[File]) -> String {
    let is_for = |kind: &Kind| {
        targets()
            .iter()
            .any(|target| target.elevator == *kind && files.iter().any(|file| file.sources.contains(&target.source)))
    };
    let names: Vec<String> =
        Kind::ALL.iter().filter(|kind| !is_for(kind)).map(|kind| format!("`{}`", kind.info().name)).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!("No recording is for {}: they stand on their specifications alone.", names.join(", ")),
    }
}

/// A file's name without its folder and its endings.
fn stem(file: &str) -> &str {
    let name = Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or(file);
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.strip_suffix(".jsonl").unwrap_or(name)
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let places = digits.char_indices().map(|(at, digit)| match at {
        at if at > 0 && at % 3 == first => format!(",{digit}"),
        _ => digit.to_string(),
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_name_loses_its_folder_and_its_endings() {
        assert_eq!(["a/b.jsonl.gz", "b.jsonl", "b"].map(stem), ["b"; 3]);
    }
}
