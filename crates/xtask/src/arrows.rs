//! The arrows between the crates of the workspace: which may stand on which.

use anyhow::{Result, bail};

use crate::repository;

/// What each crate may depend on; a crate that is not listed is a mistake.
const ARROWS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("drive", &[]),
    ("units", &[]),
    ("fio", &["units"]),
    ("nbd", &[]),
    ("trace", &["fio", "units"]),
    ("sim", &["core", "drive", "fio", "trace"]),
    ("advise", &["core", "drive", "fio", "machine", "sim", "trace", "units"]),
    ("serve", &["core", "drive", "machine", "nbd", "trace", "units"]),
    ("order", &["drive", "machine"]),
    ("machine", &["core"]),
    ("mount", &["core", "machine", "order", "serve"]),
    ("report", &[]),
    ("capi", &["core"]),
    (
        "cli",
        &[
            "advise", "core", "drive", "units", "fio", "nbd", "trace", "sim", "serve", "order", "machine", "mount",
            "report",
        ],
    ),
    ("python", &["core", "drive", "sim", "trace", "report"]),
    ("xtask", &["core", "drive", "fio", "nbd", "trace", "sim", "serve", "order", "report", "cli"]),
];

const PREFIX: &str = "hoistway-";

/// The arrows of the workspace that point where they must not. What only tests use is free.
pub fn check() -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for entry in std::fs::read_dir(repository::root().join("crates"))? {
        let entry = entry?;
        let manifest = entry.path().join("Cargo.toml");
        if !manifest.is_file() {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&manifest)?;
        broken.extend(broken_by(&name, &text)?);
    }
    broken.sort();
    Ok(broken)
}

fn broken_by(name: &str, manifest: &str) -> Result<Vec<String>> {
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        bail!("crates/{name} is not in the table of arrows in crates/xtask/src/arrows.rs");
    };
    let manifest: toml::Table = manifest.parse()?;
    let mut broken = Vec::new();
    for dependency in dependencies(&manifest) {
        let Some(other) = dependency.strip_prefix(PREFIX) else { continue };
        if !allowed.contains(&other) {
            let allowed = if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
            broken.push(format!("crates/{name} depends on {other}; it may stand on {allowed}"));
        }
    }
    Ok(broken)
}

/// The names of all dependencies but those of tests, renamed ones by their real names.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().filter_map(toml::Value::as_table));
    }
    let mut names = Vec::new();
    for table in tables {
        for key in ["dependencies", "build-dependencies"] {
            for (name, value) in table.get(key).and_then(toml::Value::as_table).into_iter().flatten() {
                let renamed = value.get("package").and_then(toml::Value::as_str);
                names.push(renamed.unwrap_or(name).to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_that_points_back_is_found_even_under_another_name() {
        let back = "[dependencies]\nx = { package = 'hoistway-sim', path = '../sim' }";
        assert_eq!(broken_by("core", back).unwrap(), ["crates/core depends on sim; it may stand on nothing"]);
        let other = "[target.'cfg(unix)'.build-dependencies]\nhoistway-core = '1'";
        assert_eq!(broken_by("trace", other).unwrap().len(), 1);
    }

    #[test]
    fn allowed_arrows_and_those_of_tests_pass_and_unknown_crates_do_not() {
        let manifest = "[dependencies]\nhoistway-core = '1'\nserde = '1'\n[dev-dependencies]\nhoistway-cli = '1'";
        assert_eq!(broken_by("sim", manifest).unwrap(), [""; 0]);
        assert!(broken_by("nobody", manifest).is_err());
    }
}
