//! The page docs/reproduced.md and its pictures, which `hoistway reproduce --page` writes.

use std::fmt::Write;

use hoistway_report::{Against, AgainstRow, LineOf, Lines, against_svg, lines_svg};

use crate::{Publication, ReproduceError, RowResult, Summary, UnknownResult, plain, publications, rounded};

/// Results beside the published ones: a page of Markdown with pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The text, to be written to [`Page::FILE`].
    pub text: String,
    /// The pictures, to be written to the folder [`Page::PICTURES`] beside the text: file names and
    /// documents of SVG.
    pub pictures: Vec<(String, String)>,
}

impl Page {
    /// The file name of the text.
    pub const FILE: &str = "reproduced.md";
    /// The folder of the pictures.
    pub const PICTURES: &str = "reproduced";

    /// Makes the page of these results.
    ///
    /// # Errors
    /// If the published results are invalid.
    pub fn new(results: &[RowResult]) -> Result<Page, ReproduceError> {
        let drawn = results.iter().filter(|result| is_drawn(result));
        Ok(Page {
            text: text(results)?,
            pictures: drawn.map(|result| (picture_name(result), picture(result))).collect(),
        })
    }
}

fn text(results: &[RowResult]) -> Result<String, ReproduceError> {
    let mut page = String::from(
        "# Published results, reproduced\n\n\
         Explanation: each published result beside the simulated one, with the reasons of the differences.\n\n\
         This page runs the published results on Linux's I/O schedulers that can be run: `hoistway reproduce` makes \
         the page, and `cargo xtask pages write` writes it. Each row has a job file and an expectation with its \
         tolerance in [crates/reproduce/published](../crates/reproduce/published), and marks of the mechanism that has to cause \
         the result (the *reasons*). A row with a number is reproduced if all its figures are within their tolerances \
         and all its reasons hold. Drives and hosts are given by data sheets, measured sets and the kernels' \
         defaults. A row to which a parameter was fitted never counts as reproduced. Rows that describe a drive are \
         inputs.\n\n\
         A row that differs is also run with other values of what its publication does not state (its *unknowns*), one \
         table each. An unknown *decides* the row if with one of the values everything holds: all figures, orders, \
         rules and reasons. It *moves* the row if something that differs holds with one of the values, or if a figure \
         that differs moves by more than its tolerance. Otherwise it *does not decide*. The program computes these \
         words. A row that an unknown decides still differs and does not count as reproduced: the experiment shows \
         that the publication leaves room for both results, not which value its authors had.\n\n",
    );
    let _ = writeln!(page, "**{}**\n", Summary::new(results).text());
    for publication in publications()? {
        let of_it: Vec<&RowResult> =
            results.iter().filter(|result| publication.rows.iter().any(|row| row.id == result.row.id)).collect();
        if !of_it.is_empty() {
            page.push_str(&section(publication, &of_it));
        }
    }
    Ok(page)
}

fn section(publication: &Publication, results: &[&RowResult]) -> String {
    let mut text = format!("## {}: {}\n\n{}\n\n", publication.id, publication.title, publication.about.trim());
    text.push_str("| id | published | ours | tolerance | verdict |\n|---|---|---|---|---|\n");
    for result in results {
        let id = result.row.id.as_str();
        let _ = writeln!(
            text,
            "| [{id}](#{}) | {} | {} | {} | {} |",
            id.to_lowercase(),
            cell(&result.published_text()),
            cell(&result.measured_text()),
            cell(&result.tolerance_text()),
            cell(&result.verdict_text())
        );
    }
    text.push('\n');
    results.iter().for_each(|result| text.push_str(&row(result)));
    text
}

fn row(result: &RowResult) -> String {
    let row = result.row;
    let mut text = format!("### {}\n\n{}: **{}**", row.id, capital(&row.what), result.verdict_text());
    let why = result.why();
    let _ = writeln!(text, "{}", if why.is_empty() { ".".to_owned() } else { format!(" ({}).", sentence(&why)) });
    if !row.why.is_empty() {
        let _ = writeln!(text, "\n{}", row.why.trim());
    }
    let setting = setting(result);
    if !setting.is_empty() {
        let _ = writeln!(text, "\n{setting}");
    }
    if !result.values.is_empty() {
        text.push_str("\n| figure | published | ours | |\n|---|---|---|---|\n");
    }
    for found in &result.values {
        let value = found.expected;
        let published = match value.published {
            Some(published) => format!("{} ({})", plain(published), value.tolerance()),
            None => value.tolerance(),
        };
        let unit = if value.unit.is_empty() { String::new() } else { format!(", {}", value.unit) };
        let note = if value.note.is_empty() { String::new() } else { format!("; {}", value.note) };
        let right = match (value.bounds(), found.holds) {
            (None, _) => "",
            (_, true) => "in",
            (_, false) => "**out**",
        };
        let _ = writeln!(
            text,
            "| {}{unit} | {published} | {} | {right}{} |",
            cell(&value.name),
            rounded(found.measured),
            cell(&note)
        );
    }
    if !result.orders.is_empty() || !result.reasons.is_empty() {
        text.push('\n');
    }
    for found in &result.orders {
        let holds = if found.holds { "holds" } else { "**does not hold**" };
        let _ = writeln!(text, "- Order {}: {holds}.", found.expected.falls.join(" > "));
    }
    for found in &result.reasons {
        let reason = found.expected;
        let holds = if found.holds { "holds" } else { "**does not hold**" };
        let figure = format!("{} {}", rounded(found.measured), reason.unit);
        let _ = writeln!(
            text,
            "- Reason: {}: {} is {}, due {}: {holds}.",
            reason.text,
            reason.name,
            figure.trim(),
            reason.bounds()
        );
    }
    result.unknowns.iter().for_each(|unknown| text.push_str(&experiment(result, unknown)));
    if is_drawn(result) {
        let _ = writeln!(text, "\n![{}]({}/{})", row.id, Page::PICTURES, picture_name(result));
    }
    text.push('\n');
    text
}

/// The experiment on an unknown: its effect, and a table with a column for each value.
fn experiment(row: &RowResult, experiment: &UnknownResult) -> String {
    let unknown = experiment.unknown;
    let mut text = format!("\nUnknown: {} ({}): **{}**", unknown.name, unknown.stated, experiment.effect.name());
    let deciding: Vec<&str> = experiment.deciding().collect();
    let _ = match (deciding.as_slice(), unknown.seeds) {
        ([], None) => writeln!(text, "."),
        ([], Some(seeds)) => writeln!(text, ". Number of seeds in trials: {seeds}."),
        (deciding, None) => writeln!(text, ", with {}.", deciding.join(" or ")),
        (deciding, Some(seeds)) => {
            writeln!(text, ", with {}. Number of seeds in trials: {seeds}.", deciding.join(" or "))
        }
    };
    let mut columns = vec![(format!("{} (above)", unknown.here), row)];
    columns.extend(experiment.trials.iter().map(|tried| (tried.trial.value().to_owned(), &tried.result)));
    let heads: Vec<String> = columns.iter().map(|(head, _)| cell(head)).collect();
    let _ = writeln!(text, "\n| figure | due | {} |\n|---|---|{}", heads.join(" | "), "---|".repeat(heads.len()));
    let mut line = |name: &str, due: &str, figures: Vec<(String, bool)>| {
        let figure = |(figure, holds)| if holds { figure } else { format!("**{figure}**") };
        let figures: Vec<String> = figures.into_iter().map(figure).collect();
        let _ = writeln!(text, "| {} | {} | {} |", cell(name), cell(due), figures.join(" | "));
    };
    let of_columns = |figure: &dyn Fn(&RowResult) -> (String, bool)| columns.iter().map(|(_, of)| figure(of)).collect();
    for (index, found) in row.values.iter().enumerate().filter(|(_, found)| found.expected.bounds().is_some()) {
        let value = found.expected;
        let unit = if value.unit.is_empty() { String::new() } else { format!(", {}", value.unit) };
        let due = match value.published {
            Some(published) => format!("{} ({})", plain(published), value.tolerance()),
            None => value.tolerance(),
        };
        let figure =
            |of: &RowResult| of.values.get(index).map_or_else(<_>::default, |v| (rounded(v.measured), v.holds));
        line(&format!("{}{unit}", value.name), &due, of_columns(&figure));
    }
    for (index, found) in row.orders.iter().enumerate() {
        let figure = |of: &RowResult| {
            let holds = of.orders.get(index).is_some_and(|order| order.holds);
            (if holds { "holds" } else { "does not hold" }.to_owned(), holds)
        };
        line(&format!("order {}", found.expected.falls.join(" > ")), "holds", of_columns(&figure));
    }
    for (index, found) in row.reasons.iter().enumerate() {
        let reason = found.expected;
        let unit = if reason.unit.is_empty() { String::new() } else { format!(", {}", reason.unit) };
        let figure =
            |of: &RowResult| of.reasons.get(index).map_or_else(<_>::default, |v| (rounded(v.measured), v.holds));
        line(&format!("{}{unit} (reason)", reason.name), &reason.bounds(), of_columns(&figure));
    }
    text
}

/// The inputs of a row: job files, drive, kernel, elevators, seeds.
fn setting(result: &RowResult) -> String {
    let row = result.row;
    let jobs = row.jobs.iter().map(|job| format!("[{}](../{job})", name_of(job))).collect::<Vec<_>>();
    let mut parts = Vec::new();
    if !jobs.is_empty() {
        parts.push(jobs.join(", "));
    }
    parts.extend(row.drive.as_ref().map(|drive| format!("drive `{drive}`")));
    parts.extend(row.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    if !row.elevators.is_empty() {
        let names: Vec<String> = row.elevators.iter().map(|name| format!("`{name}`")).collect();
        parts.push(names.join(", "));
    }
    if row.seeds > 1 {
        parts.push(format!("mean over {} seeds", row.seeds));
    }
    let mut text = if parts.is_empty() { String::new() } else { format!("{}.", parts.join("; ")) };
    if !row.inputs.is_empty() {
        let _ = write!(text, " Given: {}.", row.inputs.join("; "));
    }
    text.trim().to_owned()
}

/// A file's name without its folder.
fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

fn picture_name(result: &RowResult) -> String {
    format!("{}.svg", result.row.id)
}

fn is_drawn(result: &RowResult) -> bool {
    result.plot.is_some() || !result.values.is_empty()
}

fn picture(result: &RowResult) -> String {
    let title = format!("{}: {}", result.row.id, shortened(&result.row.what));
    if let Some(plot) = &result.plot {
        let line = |line: &crate::Line| LineOf {
            name: line.name.clone(),
            points: line.points.clone(),
            dashed: line.published,
        };
        let lines = plot.lines.iter().map(line).collect();
        return lines_svg(&Lines { title, x: plot.x.clone(), y: plot.y.clone(), lines, ..Lines::default() });
    }
    let rows = result.values.iter().map(|found| {
        let value = found.expected;
        let (low, high) = value.bounds().unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let unit = if value.unit.is_empty() { String::new() } else { format!(", {}", value.unit) };
        AgainstRow {
            name: format!("{}{unit}", value.name),
            found: found.measured,
            expected: value.published,
            low,
            high,
        }
    });
    against_svg(&Against { title, rows: rows.collect() })
}

/// Shortens a text to the width of a picture.
fn shortened(text: &str) -> String {
    const LETTERS_MAX: usize = 82;
    if text.chars().count() <= LETTERS_MAX {
        return text.to_owned();
    }
    let mut short = String::new();
    for word in text.split(' ') {
        if short.chars().count() + 1 + word.chars().count() > LETTERS_MAX {
            break;
        }
        short = format!("{short} {word}");
    }
    format!("{} ...", short.trim().trim_end_matches([',', ':']))
}

/// Escapes the separator of table cells.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Removes the full stop at the end.
fn sentence(text: &str) -> &str {
    text.trim_end().trim_end_matches('.')
}
