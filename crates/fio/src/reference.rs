//! The tables of options and engines in Markdown, for docs/job-files.md.

use crate::{Description, ENGINES, EngineSupport, KnownOption, SUBJECTS, Support, options};

/// Renders the parts of the reference: the name of each, and its text.
pub fn markdown() -> [(&'static str, String); 4] {
    [
        ("simulated options", simulated()),
        ("engines", engines()),
        ("refused options", refused()),
        ("ignored options", ignored()),
    ]
}

/// A table for each subject.
fn simulated() -> String {
    let mut text = String::new();
    for subject in SUBJECTS {
        let heading = subject.heading;
        text.push_str(&format!("\n### {heading}\n\n| option | value | default | meaning |\n|---|---|---|---|\n"));
        for option in subject.options {
            let Support::Supported(Description { takes, default, meaning, .. }) = option.support else { continue };
            text.push_str(&format!("| {} | {takes} | {default} | {meaning} |\n", quoted(option.names())));
        }
    }
    text
}

fn engines() -> String {
    let rows = ENGINES.iter().map(|engine| {
        let text = match engine.support {
            EngineSupport::Simulated(_) => "simulated".to_owned(),
            EngineSupport::Direct(_, why) | EngineSupport::Like(_, why) => format!("note: {why}"),
            EngineSupport::NoData(why) => format!("note, the job is left out: {why}"),
            EngineSupport::Refused(why) => format!("refused: {why}"),
        };
        (engine.name, text)
    });
    format!("| engine | outcome |\n|---|---|\n{}", grouped(rows))
}

fn refused() -> String {
    let rows = options().filter_map(|option| match option.support {
        Support::Refused(accepted, why) => {
            let but = accepted.first().map_or(String::new(), |value| format!("; `{value}` is accepted"));
            Some((option.name, format!("{why}{but}")))
        }
        _ => None,
    });
    format!("| option | reason |\n|---|---|\n{}", grouped(rows))
}

fn ignored() -> String {
    let mut all: Vec<&str> =
        options().filter(|option| matches!(option.support, Support::Ignored)).flat_map(KnownOption::names).collect();
    all.sort_unstable();
    format!("{}.", quoted(all.into_iter()))
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Joins the names of rows with the same text, in the order of their first name.
fn grouped(rows: impl Iterator<Item = (&'static str, String)>) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, text) in rows {
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => groups.push((text, vec![name])),
        }
    }
    groups
        .iter()
        .map(|(text, names)| format!("| {} | {text} |", quoted(names.iter().copied())))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_every_option_is_in_one_part() {
        let texts: Vec<String> = [simulated(), refused(), ignored()].into();
        for name in options().flat_map(KnownOption::names) {
            let found = texts.iter().filter(|text| {
                // Names in the first column of a table, or in the list.
                text.lines().any(|line| {
                    let cell = line.strip_prefix("| ").and_then(|row| row.split(" | ").next()).unwrap_or(line);
                    cell.contains(&format!("`{name}`"))
                })
            });
            assert_eq!(found.count(), 1, "{name}");
        }
    }
}
