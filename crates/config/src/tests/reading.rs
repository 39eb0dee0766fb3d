//! Arbitrary texts, and the examples of the documentation.

use std::path::Path;

use proptest::prelude::*;

use super::{TestEnvironment, problem_lines};
use crate::keys::{KEYS, Section};
use crate::{Draft, HostEnvironment};

/// Values of all types, some of which some key takes.
const VALUES: [&str; 24] = [
    "1",
    "-1",
    "0",
    "99999999999999999999",
    "true",
    "1.5",
    "1979-05-27",
    "[]",
    "[\"a\"]",
    "[[1]]",
    "{}",
    "{ rate = \"1M\" }",
    "\"\"",
    "\"a\"",
    "\"x\"",
    "\"1M\"",
    "\"mem:1M\"",
    "\"/srv/disk.img\"",
    "\"bfq\"",
    "\"10.0.0.0/8\"",
    "\"127.0.0.1:1\"",
    "\"*\"",
    "\"12ms\"",
    "\"none\"",
];

/// A table with known keys and values of any type.
fn table() -> impl Strategy<Value = String> {
    let section = prop::sample::select(Section::ALL.as_slice());
    section.prop_flat_map(|section| {
        let keys: Vec<&str> = section.keys().map(|key| key.name).chain(["unknown"]).collect();
        let line = (prop::sample::select(keys), prop::sample::select(VALUES.as_slice()));
        let head = if section == Section::Top { String::new() } else { section.heading() };
        prop::collection::vec(line, 0..6).prop_map(move |lines| {
            let lines: String = lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
            format!("{head}\n{lines}")
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = Draft::from_toml(&text, "x.toml").check(&TestEnvironment);
    }

    #[test]
    fn no_configuration_panics_and_every_problem_has_a_location(tables in prop::collection::vec(table(), 0..8)) {
        let text = tables.concat();
        if let Err(problems) = problem_lines(Draft::from_toml(&text, "x.toml").check(&TestEnvironment)) {
            for problem in problems {
                prop_assert!(problem.starts_with("x.toml:") && problem.contains(": "), "{}\nof\n{}", problem, text);
            }
        }
    }

    #[test]
    fn no_export_panics(argument in "[a-c=,:/*\\PC]{0,30}", keys in prop::collection::vec(prop::sample::select(KEYS), 0..5)) {
        let mut draft = Draft::default();
        let keys: String = keys.iter().map(|key| format!(",{}=1", key.name)).collect();
        draft.export(&format!("{argument}{keys}"), &TestEnvironment);
        draft.export(&argument, &TestEnvironment);
        let _ = draft.check(&TestEnvironment);
    }
}

#[test]
fn a_long_invalid_file_is_cheap() {
    let text = (0..50_000).map(|n| format!("k{n} = 1\n")).collect::<String>();
    let problems = problem_lines(Draft::from_toml(&text, "x.toml").check(&TestEnvironment)).unwrap_err();
    assert!(problems.len() <= 101, "{}", problems.len());
    let deep = format!("record = {}", "[".repeat(100_000));
    assert!(problem_lines(Draft::from_toml(&deep, "x.toml").check(&TestEnvironment)).is_err());
}

#[test]
fn every_key_is_read() {
    // A key that no code reads would be accepted and ignored. A value of a type that no key takes
    // must be refused for every key.
    for key in KEYS {
        let wrong = format!("{} = 1979-05-27\n", key.name);
        let text = if key.section == Section::Top { wrong } else { format!("{}\n{wrong}", key.section.heading()) };
        let problems = problem_lines(Draft::from_toml(&text, "x.toml").check(&TestEnvironment)).unwrap_err();
        let refused = format!("`{}` is 1979-05-27: ", key.name);
        assert!(problems.iter().any(|problem| problem.contains(&refused)), "{key:?}: {problems:?}");
    }
}

#[test]
fn the_examples_are_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/serve");
    for name in ["vm-host", "backup-beside-database", "slow-disk"] {
        let path = folder.join(format!("{name}.toml"));
        let checked = problem_lines(Draft::load(&path).expect("an example").check(&Examples))
            .unwrap_or_else(|problems| panic!("{}", problems.join("\n")));
        assert_eq!(checked.warnings, [], "{name}");
    }
}

/// The host of the examples: it has every file, each of 1 TiB.
struct Examples;

impl super::Environment for Examples {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        HostEnvironment.read(path)
    }

    fn bytes(&self, _: &Path) -> std::io::Result<u64> {
        Ok(1 << 40)
    }

    fn identity(&self, path: &Path) -> std::path::PathBuf {
        path.to_owned()
    }

    fn socket_directory(&self) -> std::path::PathBuf {
        "/run".into()
    }
}

#[test]
fn the_examples_of_the_reference_are_valid() {
    let page = include_str!("../../../../docs/serve-config.md");
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty(), "the page has examples");
    for block in blocks {
        let checked = problem_lines(Draft::from_toml(block, "page.toml").check(&Examples));
        assert!(checked.is_ok(), "{block}\n{}", checked.unwrap_err().join("\n"));
    }
}

#[test]
fn the_documented_default_elevators_are_those_of_the_queue() {
    let [rotating, other] = crate::default_elevators();
    let described = format!("`{rotating}` where the device rotates, else `{other}`");
    let elevators: Vec<_> = KEYS.iter().chain(crate::mount::KEYS).filter(|key| key.name == "elevator").collect();
    assert!(elevators.len() >= 2 && elevators.iter().any(|key| key.section == Section::Mount), "{elevators:?}");
    for key in elevators.into_iter().filter(|key| key.default.contains("rotates")) {
        assert!(key.default.ends_with(&described), "{key:?}");
    }
}
