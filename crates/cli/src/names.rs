//! Names in arguments: elevators, kernels, probes, and suggestions for unknown names.

use hoistway_core::Kind;
use hoistway_drive::probe::Probe;
use hoistway_sim::Kernel;

/// Finds an elevator by name or alias.
///
/// # Errors
/// A message with the nearest name and all known names.
pub fn kind(name: &str) -> Result<Kind, String> {
    Kind::from_name(name).ok_or_else(|| {
        let names = Kind::ALL.iter().map(|kind| kind.info().name);
        let known = names.clone().collect::<Vec<_>>().join(", ");
        format!("there is no elevator `{name}`{}; there are {known}", did_you_mean(name, names))
    })
}

/// Finds a kernel by version.
///
/// # Errors
/// A message with the nearest version and all known versions.
pub fn kernel(name: &str) -> Result<Kernel, String> {
    Kernel::from_name(name).ok_or_else(|| {
        let names = Kernel::ALL.iter().map(|kernel| kernel.name());
        let known = names.clone().collect::<Vec<_>>().join(", ");
        format!("there is no host of kernel `{name}`{}; there are {known}", did_you_mean(name, names))
    })
}

/// Finds a probe by name.
///
/// # Errors
/// A message with the nearest name and all known names.
pub fn probe(name: &str) -> Result<Probe, String> {
    Probe::from_name(name).ok_or_else(|| {
        let names = Probe::ALL.iter().map(|probe| probe.name());
        let known = names.clone().collect::<Vec<_>>().join(", ");
        format!("there is no probe `{name}`{}; there are {known}", did_you_mean(name, names))
    })
}

/// An entry of a list of elevators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// All elevators.
    All,
    /// One elevator.
    One(Kind),
}

/// Parses an entry of a list: an elevator, or `all`.
///
/// # Errors
/// The errors of [`kind`].
pub fn kinds(name: &str) -> Result<Named, String> {
    if name == "all" { Ok(Named::All) } else { kind(name).map(Named::One) }
}

/// " (did you mean `x`?)"; empty if no name is near.
pub fn did_you_mean<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> String {
    nearest(typed, names).map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// The name with the fewest edits, if they are fewer than half of its letters.
fn nearest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    names
        .map(|name| (strsim::damerau_levenshtein(&typed, name), name))
        .filter(|(edits, name)| edits * 2 <= name.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_names_the_nearest_elevator_and_all_of_them() {
        let said = kind("dedline").unwrap_err();
        assert!(said.starts_with("there is no elevator `dedline` (did you mean `deadline`?)"), "{said}");
        for kind in Kind::ALL {
            assert!(said.contains(kind.info().name), "{said}");
        }
    }

    #[test]
    fn a_name_unlike_all_others_gets_no_suggestion() {
        assert_eq!(did_you_mean("zzzzzzzz", ["noop", "deadline"].into_iter()), "");
    }

    #[test]
    fn an_alias_is_a_name() {
        assert_eq!(kind("as"), Ok(Kind::Anticipatory));
    }
}
