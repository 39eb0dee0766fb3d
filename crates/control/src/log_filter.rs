//! Filters of the log, in the syntax of `RUST_LOG`.

use crate::names::suggest;
use crate::text::{BadValue, bad};

/// The levels, from the fewest messages to the most.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The crates whose messages reach the log: those of this program, which depend on `tracing`, and
/// libraries that depend on `log`.
const TARGETS: [&str; 11] = [
    "hoistway",
    "hoistway_blockdev",
    "hoistway_control",
    "hoistway_mount",
    "hoistway_qos",
    "hoistway_reactor",
    "hoistway_record",
    "hoistway_server",
    "fuser",
    "mio",
    "rustls",
];

/// Checks a filter: directives separated by commas, each a level or `TARGET=LEVEL`. Returns a
/// warning about targets that no message has.
///
/// The syntax of `RUST_LOG` also has a target alone, which stands for `TARGET=trace`. It is refused
/// here: a mistyped level would be taken for a target, and silence all others.
///
/// # Errors
/// A directive without a level, with its correction.
pub fn check(filter: &str) -> Result<Option<String>, BadValue> {
    let mut unknown = Vec::new();
    for directive in filter.split(',').map(str::trim) {
        let (target, level) =
            directive.rsplit_once('=').map_or((None, directive), |(target, level)| (Some(target.trim()), level.trim()));
        if !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level)) {
            let hint = suggest(level, LEVELS).map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
            let levels = LEVELS.join(", ");
            return bad(
                level,
                format!("is no level of the log: it takes {levels}, or TARGET=LEVEL, separated by commas{hint}"),
            );
        }
        unknown.extend(target.filter(|target| !has_messages(target)));
    }
    Ok((!unknown.is_empty()).then(|| {
        let hints: Vec<String> =
            unknown.iter().filter_map(|target| nearest(target)).map(|near| format!("{near:?}")).collect();
        let hint = if hints.is_empty() { String::new() } else { format!("; did you mean {}?", hints.join(" and ")) };
        format!("no message has the target {}: targets are {}{hint}", unknown.join(" or "), TARGETS.join(", "))
    }))
}

/// Returns true if messages can have the target: a filter matches all targets that begin with it,
/// and modules follow the crate.
fn has_messages(target: &str) -> bool {
    let (name, modules) = target.split_once("::").map_or((target, None), |(name, modules)| (name, Some(modules)));
    TARGETS.iter().any(|known| if modules.is_some() { *known == name } else { known.starts_with(name) })
}

/// The target with the nearest known crate in place of its own.
fn nearest(target: &str) -> Option<String> {
    let name = target.split("::").next().unwrap_or_default();
    suggest(&name.replace('-', "_"), TARGETS)
        .map(|near| format!("{near}{}", target.get(name.len()..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directive_has_a_level() {
        for filter in ["off", "warn", "INFO", "warn,hoistway=debug", "error, hoistway_server::admin=trace , fuser=off"]
        {
            assert_eq!(check(filter), Ok(None), "{filter}");
        }
        for (filter, level, hint) in [
            ("wran", "wran", "did you mean \"warn\"?"),
            ("warn,hoistway=debgu", "debgu", "did you mean \"debug\"?"),
            ("hoistway_server", "hoistway_server", "TARGET=LEVEL, separated by commas"),
            ("warn,", "", "off, error, warn, info, debug, trace"),
            ("", "", "off, error"),
        ] {
            let error = check(filter).expect_err(filter).to_string();
            assert!(error.starts_with(&format!("{level:?} is no level")) && error.contains(hint), "{error}");
        }
    }

    #[test]
    fn a_target_that_no_message_has_is_named() {
        for (filter, target, hint) in [
            ("warn,hositway=debug", "hositway", "did you mean \"hoistway\"?"),
            ("hoistway_servr=info", "hoistway_servr", "did you mean \"hoistway_server\"?"),
            ("hoistway-server::admin=info", "hoistway-server::admin", "did you mean \"hoistway_server::admin\"?"),
            ("hoistway_serv::admin=info", "hoistway_serv::admin", "did you mean \"hoistway_server::admin\"?"),
            ("tokio=info", "tokio", "targets are hoistway, hoistway_blockdev,"),
        ] {
            let warning = check(filter).expect("levels").unwrap_or_else(|| panic!("{filter}"));
            assert!(warning.starts_with(&format!("no message has the target {target}: targets are ")), "{warning}");
            assert!(warning.contains(hint), "{warning}");
        }
        for filter in ["fuser::reply=error", "hoist=debug", "hoistway::commands=off", "rustls=warn,mio=off"] {
            assert_eq!(check(filter), Ok(None), "{filter}");
        }
    }

    /// Skipped in a package of this crate alone.
    #[test]
    fn the_targets_are_the_crates_of_the_repository_that_log() {
        let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        if !crates.join("cli").is_dir() {
            return;
        }
        let manifests = std::fs::read_dir(crates)
            .expect("the crates")
            .filter_map(|folder| std::fs::read_to_string(folder.expect("a folder").path().join("Cargo.toml")).ok());
        let name = |manifest: String| {
            let logs = manifest.lines().any(|line| line.starts_with("tracing.workspace"));
            let name =
                manifest.lines().find_map(|line| line.strip_prefix("name = "))?.trim_matches('"').replace('-', "_");
            logs.then_some(name)
        };
        let mut expected: Vec<String> = manifests.filter_map(name).collect();
        expected.sort_unstable();
        let listed: Vec<&str> = TARGETS.into_iter().filter(|target| target.starts_with("hoistway")).collect();
        assert_eq!(listed, expected);
    }
}
