//! The arrows between the crates of the workspace: which crate may depend on which, and how large a
//! crate may grow.

use std::collections::BTreeMap;

use hoistway_units::figures::grouped;

use super::packages::Package;
use crate::graph;

/// What each crate may depend on. A crate that is not listed is a violation. Tests may depend on
/// any crate, but not in a circle.
const ARROWS: &[(&str, &[&str])] = &[
    ("columnar", &[]),
    ("core", &[]),
    ("custom", &["core"]),
    ("drive", &["units"]),
    ("machine", &["core"]),
    ("nbd", &[]),
    ("report", &["units"]),
    ("tracedat", &[]),
    ("traceformats", &[]),
    ("units", &[]),
    ("capi", &["core"]),
    ("conform", &["core", "custom", "units"]),
    ("fio", &["units"]),
    ("trace", &["columnar", "fio", "tracedat", "traceformats", "units", "workload"]),
    ("order", &["drive", "machine", "units"]),
    ("overview", &["trace"]),
    ("workload", &["fio"]),
    ("sim", &["core", "custom", "drive", "fio", "units", "workload"]),
    ("compare", &["core", "custom", "drive", "fio", "sim", "units"]),
    ("playground", &["compare", "core", "drive", "fio", "sim"]),
    ("reproduce", &["core", "drive", "fio", "report", "sim"]),
    ("advise", &["compare", "core", "custom", "drive", "fio", "machine", "report", "sim", "trace", "units"]),
    ("sweep", &["advise", "columnar", "core", "custom", "drive", "fio", "report", "sim", "units"]),
    ("qos", &["core", "custom"]),
    ("reactor", &["machine"]),
    ("tls", &["config"]),
    ("blockdev", &["config", "core", "drive", "machine", "nbd", "qos", "reactor", "tls"]),
    ("control", &["core", "custom", "qos", "units"]),
    ("config", &["core", "custom", "drive", "nbd", "qos", "units"]),
    ("record", &["blockdev", "config", "core", "drive", "machine", "nbd", "qos", "reactor", "trace"]),
    ("server", &["blockdev", "config", "control", "core", "nbd", "qos", "reactor", "tls", "units"]),
    (
        "simulation",
        &["blockdev", "config", "control", "core", "custom", "drive", "mount", "nbd", "qos", "reactor", "server"],
    ),
    ("mount", &["config", "control", "core", "machine", "order", "qos", "reactor"]),
    (
        "bench",
        &["config", "control", "core", "custom", "drive", "fio", "mount", "qos", "report", "sim", "trace", "units"],
    ),
    ("arena", &["bench", "core", "fio", "report", "sweep", "units"]),
    (
        "cli",
        &[
            "advise",
            "arena",
            "bench",
            "blockdev",
            "config",
            "conform",
            "control",
            "core",
            "custom",
            "drive",
            "fio",
            "machine",
            "mount",
            "nbd",
            "order",
            "overview",
            "qos",
            "reactor",
            "record",
            "report",
            "reproduce",
            "server",
            "sim",
            "sweep",
            "trace",
            "units",
        ],
    ),
    (
        "python",
        &[
            "advise",
            "cli",
            "core",
            "custom",
            "drive",
            "fio",
            "machine",
            "report",
            "reproduce",
            "sim",
            "sweep",
            "trace",
            "units",
        ],
    ),
    ("fidelity", &["sim"]),
    ("fiodiff", &["core", "drive", "fio", "sim", "workload"]),
    ("guest", &[]),
    ("vm", &["guest"]),
    ("clib", &["vm"]),
    ("console", &[]),
    ("dist", &["clib", "console", "release", "vm"]),
    ("fresh", &["console", "vm"]),
    ("release", &["vm"]),
    ("rusttokens", &[]),
    ("site", &["report"]),
    (
        "xtask",
        &[
            "clib",
            "config",
            "control",
            "dist",
            "drive",
            "fidelity",
            "fio",
            "fiodiff",
            "fresh",
            "guest",
            "order",
            "release",
            "report",
            "rusttokens",
            "units",
            "vm",
        ],
    ),
];

/// The largest crate, in lines of `src` with comments and unit tests; the core may be larger.
const LINES_MAX: usize = 15_000;
/// Crates that may be above [`LINES_MAX`], with the lines that they may have.
const LARGE: &[(&str, usize)] = &[("core", usize::MAX), ("drive", 17_000), ("sim", 16_700), ("xtask", 17_800)];

/// Lists the arrows and sizes that break the law.
pub fn violations(packages: &[Package]) -> Vec<String> {
    let mut found: Vec<String> = packages.iter().flat_map(forbidden_arrows).collect();
    found.extend(circles(packages));
    for package in packages {
        let lines = package.sources().map_or(0, |files| files.iter().map(|file| file.text.lines().count()).sum());
        found.extend(too_large(&package.name, lines));
    }
    found
}

fn forbidden_arrows(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        return vec![format!(
            "{}: the crate is missing in the table of tools/xtask/src/laws/crates.rs",
            package.directory
        )];
    };
    let forbidden = package.dependencies.iter().filter(|other| !allowed.contains(&other.as_str()));
    let allowed = if allowed.is_empty() { "no other crate".to_owned() } else { allowed.join(", ") };
    forbidden.map(|other| format!("{}: depends on {other}; it may depend on {allowed}", package.directory)).collect()
}

/// Circles of crates, the dependencies of tests included: cargo itself refuses only those without
/// tests.
fn circles(packages: &[Package]) -> Vec<String> {
    let mut arrows: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let all = package.dependencies.iter().chain(&package.dev_dependencies).map(String::as_str);
        arrows.insert(&package.name, all.filter(|other| *other != package.name).collect());
    }
    let circles = graph::circles(&arrows);
    circles
        .into_iter()
        .map(|circle| format!("crates depend on one another in a circle: {}", circle.join(", ")))
        .collect()
}

/// States the law of sizes, for CONTRIBUTING.md.
pub fn size_rule() -> String {
    let large: Vec<String> = LARGE
        .iter()
        .filter(|(_, most)| *most != usize::MAX)
        .map(|(name, most)| format!("`{name}` {}", grouped(*most as u64)))
        .collect();
    let most = grouped(LINES_MAX as u64);
    format!("- A crate has at most {most} lines in `src`. Exceptions: the core has no limit; {}.", large.join(", "))
}

fn too_large(name: &str, lines: usize) -> Option<String> {
    let most = LARGE.iter().find(|(known, _)| *known == name).map_or(LINES_MAX, |(_, most)| *most);
    (lines > most).then(|| format!("crates/{name}: {lines} lines in src; {most} is the most"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str], dev: &[&str]) -> Package {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Package {
            name: name.to_owned(),
            directory: format!("crates/{name}"),
            dependencies: owned(dependencies),
            dev_dependencies: owned(dev),
            ..Package::default()
        }
    }

    #[test]
    fn a_forbidden_arrow_is_found() {
        let found = forbidden_arrows(&package("core", &["sim"], &[]));
        assert_eq!(found, ["crates/core: depends on sim; it may depend on no other crate"]);
        assert_eq!(forbidden_arrows(&package("units", &["core", "fio"], &[])).len(), 2);
    }

    #[test]
    fn allowed_arrows_and_those_of_tests_pass() {
        assert_eq!(forbidden_arrows(&package("sim", &["core"], &["advise"])), [""; 0]);
    }

    #[test]
    fn a_crate_outside_the_table_is_found() {
        assert_eq!(forbidden_arrows(&package("unheard-of", &[], &[])).len(), 1);
    }

    #[test]
    fn a_circle_through_a_dependency_of_tests_is_found() {
        let found = circles(&[package("a", &["b"], &[]), package("b", &[], &["a"]), package("c", &["a"], &[])]);
        assert_eq!(found, ["crates depend on one another in a circle: a, b"]);
    }

    #[test]
    fn the_table_itself_has_no_circle() {
        let table: Vec<Package> = ARROWS.iter().map(|(name, allowed)| package(name, allowed, &[])).collect();
        assert_eq!(circles(&table), [""; 0]);
    }

    #[test]
    fn a_crate_above_the_limit_is_found() {
        assert_eq!(too_large("fio", LINES_MAX), None);
        assert!(too_large("fio", LINES_MAX + 1).is_some());
    }
}
