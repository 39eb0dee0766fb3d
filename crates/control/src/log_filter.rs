//! Filters of the log, in the syntax of `RUST_LOG`.

use crate::names::suggest;
use crate::text::{BadValue, bad};

/// The levels, from the fewest messages to the most.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// How the targets of the messages of this program begin: those of its crates, and of the FUSE
/// library.
const TARGETS: [&str; 2] = ["hoistway", "fuser"];

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
        unknown.extend(target.filter(|target| !TARGETS.iter().any(|known| target.starts_with(known))));
    }
    Ok((!unknown.is_empty()).then(|| {
        format!("no message has the target {}: targets begin with {}", unknown.join(" or "), TARGETS.join(" or "))
    }))
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
        let warning = check("warn,hositway=debug").expect("levels").expect("a warning");
        assert_eq!(warning, "no message has the target hositway: targets begin with hoistway or fuser");
    }
}
