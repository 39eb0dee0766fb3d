//! The pages of docs/elevators: one for each elevator, with the table of tunables that the command
//! prints.

use std::path::PathBuf;

use crate::common::run;
use hoistway_core::Kind;

const FIRST_LINE: &str = "| tunable | default | range | does | trade-off |";

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/elevators"))
}

#[test]
fn every_elevator_has_a_page_and_every_page_an_elevator() {
    let mut pages: Vec<String> = std::fs::read_dir(folder())
        .expect("the folder of the pages")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| !name.ends_with(".svg"))
        .collect();
    let mut elevators: Vec<String> = Kind::ALL.iter().map(|kind| format!("{}.md", kind.info().name)).collect();
    pages.sort();
    elevators.sort();
    assert_eq!(pages, elevators);
}

#[test]
fn the_tunables_of_a_page_are_those_of_the_command() {
    for kind in Kind::ALL {
        let name = kind.info().name;
        let page = std::fs::read_to_string(folder().join(format!("{name}.md"))).expect("a page");
        let tables = page.lines().filter(|line| line.starts_with("| tunable |")).count();
        assert_eq!(tables, usize::from(!kind.info().tunables.is_empty()), "{name}.md has one table of tunables");
        let section =
            page.split("\n## Tunables\n").nth(1).unwrap_or_else(|| panic!("{name}.md has no section Tunables"));
        let section = section.split("\n## ").next().unwrap_or_default();
        let printed = run(&["elevators", name, "--markdown"]).out;
        assert!(printed.starts_with(FIRST_LINE) || printed == "None.\n", "{printed}");
        assert!(
            format!("{section}\n").contains(&format!("\n{printed}\n")),
            "the table of {name}.md is not what `hoistway elevators {name} --markdown` prints; `cargo xtask pages write` \
             brings it up to date"
        );
    }
}
