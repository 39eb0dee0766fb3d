//! docs/job-files.md has the tables of engines and options that the code has.

use hoistway_fio::{ENGINES, EngineSupport, OPTIONS, Support};

const PAGE: &str = include_str!("../../../../docs/job-files.md");

/// The lines of a part of the page.
fn part(name: &str) -> String {
    let begin = format!("<!-- begin: {name}, checked by crates/fio/tests/it/page.rs -->\n");
    let end = format!("<!-- end: {name} -->");
    let text = PAGE.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end)).map(|(text, _)| text);
    text.expect("the page has the part").trim().to_owned()
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
    let names = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    groups.iter().map(|(text, all)| format!("| {} | {text} |", names(all))).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_page_lists_every_engine() {
    let rows = ENGINES.iter().map(|engine| {
        let text = match engine.support {
            EngineSupport::Simulated(_) => "simulated".to_owned(),
            EngineSupport::Direct(_, why) | EngineSupport::Like(_, why) => format!("note: {why}"),
            EngineSupport::NoData(why) => format!("note, the job is left out: {why}"),
            EngineSupport::Refused(why) => format!("refused: {why}"),
        };
        (engine.name, text)
    });
    let table = format!("| engine | outcome |\n|---|---|\n{}", grouped(rows));
    assert_eq!(part("engines"), table, "the page should have:\n{table}\n");
}

#[test]
fn the_page_lists_every_refused_option() {
    let rows = OPTIONS.iter().filter_map(|option| match option.support {
        Support::Refused(accepted, why) => {
            let but = accepted.first().map_or(String::new(), |value| format!("; `{value}` is accepted"));
            Some((option.name, format!("{why}{but}")))
        }
        _ => None,
    });
    let table = format!("| option | reason |\n|---|---|\n{}", grouped(rows));
    assert_eq!(part("refused options"), table, "the page should have:\n{table}\n");
}

#[test]
fn the_page_lists_every_option_without_effect() {
    let mut names: Vec<&str> =
        OPTIONS.iter().filter(|option| option.support == Support::Ignored).map(|option| option.name).collect();
    names.sort_unstable();
    let list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    assert_eq!(part("ignored options"), format!("{list}."), "the page should have:\n{list}.\n");
}
