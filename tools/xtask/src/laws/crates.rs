//! The dependencies between the crates of the workspace: which crate may depend on which.
//! The product needs no tools.

use std::collections::BTreeMap;

use hoistway_workspace::packages::Package;

use crate::graph;

/// What each crate may depend on. A crate that is not listed is a violation. Tests may depend on
/// any crate, but not in a cycle.
const ALLOWED: &[(&str, &[&str])] = &[
    ("columnar", &[]),
    ("core", &[]),
    ("custom", &["core"]),
    ("drive", &["units"]),
    ("machine", &["core"]),
    ("nbd", &[]),
    ("report", &["units"]),
    ("traceformats", &[]),
    ("units", &[]),
    ("capi", &["core"]),
    ("conform", &["core", "custom", "units"]),
    ("fio", &["units"]),
    ("trace", &["columnar", "fio", "traceformats", "units", "workload"]),
    ("order", &["drive", "machine", "units"]),
    ("overview", &["trace"]),
    ("workload", &["fio"]),
    ("sim", &["core", "custom", "drive", "fio", "units", "workload"]),
    ("compare", &["core", "custom", "drive", "fio", "report", "sim", "units"]),
    ("playground", &["compare", "core", "drive", "fio", "sim"]),
    ("reproduce", &["core", "drive", "fio", "report", "sim"]),
    ("advise", &["compare", "core", "custom", "drive", "fio", "machine", "report", "sim", "trace", "units"]),
    ("sweep", &["advise", "columnar", "compare", "core", "custom", "drive", "fio", "report", "sim", "units"]),
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
            "compare",
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
            "compare",
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
    ("dist", &["vm", "workspace"]),
    ("fiodiff", &["core", "drive", "fio", "sim", "workload", "workspace"]),
    ("fresh", &["vm", "workspace"]),
    ("guest", &[]),
    ("kernel", &["dist", "guest", "units", "vm", "workspace"]),
    ("lab", &["drive", "guest", "kernel", "order", "sim", "units", "vm", "workspace"]),
    ("pages", &["config", "control", "drive", "fio", "workspace"]),
    ("rusttokens", &[]),
    ("site", &["report", "workspace"]),
    ("vm", &["guest", "workspace"]),
    ("workspace", &[]),
    ("xtask", &["rusttokens", "workspace"]),
];

/// The folder of the crates that users get.
const PRODUCT: &str = "crates/";
/// The folder of the crates that only developers run.
const TOOLS: &str = "tools/";

/// Lists the dependencies that break the law.
pub fn violations(packages: &[Package]) -> Vec<String> {
    let mut found: Vec<String> = packages.iter().flat_map(forbidden_dependencies).collect();
    found.extend(cycles(packages));
    found.extend(tools_in_product(packages));
    found
}

fn forbidden_dependencies(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![format!(
            "{}: the crate is missing in the table of tools/xtask/src/laws/crates.rs",
            package.directory
        )];
    };
    let forbidden = package.dependencies.iter().filter(|other| !allowed.contains(&other.as_str()));
    let allowed = if allowed.is_empty() { "no other crate".to_owned() } else { allowed.join(", ") };
    forbidden.map(|other| format!("{}: depends on {other}; it may depend on {allowed}", package.directory)).collect()
}

/// Dependency cycles of crates, the dependencies of tests included: cargo itself refuses only those
/// without tests.
fn cycles(packages: &[Package]) -> Vec<String> {
    let mut edges: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let all = package.dependencies.iter().chain(&package.dev_dependencies).map(String::as_str);
        edges.insert(&package.name, all.filter(|other| *other != package.name).collect());
    }
    let cycles = graph::cycles(&edges);
    cycles.into_iter().map(|cycle| format!("dependency cycle of crates: {}", cycle.join(", "))).collect()
}

/// Dependencies of the product on tools.
fn tools_in_product(packages: &[Package]) -> Vec<String> {
    let is_tool = |name: &String| packages.iter().any(|one| one.name == *name && one.directory.starts_with(TOOLS));
    let product = packages.iter().filter(|package| package.directory.starts_with(PRODUCT));
    product
        .flat_map(|package| {
            let tools = package.dependencies.iter().filter(|name| is_tool(name));
            tools.map(|tool| format!("{}: depends on {tool}, a tool of developers", package.directory))
        })
        .collect()
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
    fn a_forbidden_dependency_is_found() {
        let found = forbidden_dependencies(&package("core", &["sim"], &[]));
        assert_eq!(found, ["crates/core: depends on sim; it may depend on no other crate"]);
        assert_eq!(forbidden_dependencies(&package("units", &["core", "fio"], &[])).len(), 2);
    }

    #[test]
    fn dependencies_that_are_allowed_or_of_tests_pass() {
        assert_eq!(forbidden_dependencies(&package("sim", &["core"], &["advise"])), [""; 0]);
    }

    #[test]
    fn a_crate_outside_the_table_is_found() {
        assert_eq!(forbidden_dependencies(&package("unheard-of", &[], &[])).len(), 1);
    }

    #[test]
    fn a_cycle_through_a_dependency_of_tests_is_found() {
        let found = cycles(&[package("a", &["b"], &[]), package("b", &[], &["a"]), package("c", &["a"], &[])]);
        assert_eq!(found, ["dependency cycle of crates: a, b"]);
    }

    #[test]
    fn the_table_itself_has_no_cycle() {
        let table: Vec<Package> = ALLOWED.iter().map(|(name, allowed)| package(name, allowed, &[])).collect();
        assert_eq!(cycles(&table), [""; 0]);
    }

    #[test]
    fn a_tool_in_the_product_is_found() {
        let tool = Package { directory: "tools/vm".to_owned(), ..package("vm", &[], &[]) };
        let found = tools_in_product(&[package("sim", &["vm"], &[]), package("core", &[], &["vm"]), tool]);
        assert_eq!(found, ["crates/sim: depends on vm, a tool of developers"]);
    }
}
