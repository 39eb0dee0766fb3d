//! Names in arguments: elevators, probes, and suggestions for unknown names.

use hoistway_core::Kind;
use hoistway_drive::probe::Probe;
pub use hoistway_units::names::did_you_mean;

/// Finds an elevator by name or alias.
///
/// # Errors
/// A message with the names near to this one.
pub fn kind(name: &str) -> Result<Kind, String> {
    hoistway_sim::elevator_of_name(name).map_err(|error| error.to_string())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_names_the_near_elevators_and_not_all() {
        let said = kind("dedline").unwrap_err();
        let all = Kind::ALL.len();
        assert_eq!(
            said,
            format!("there is no elevator `dedline` (did you mean `deadline`?); `hoistway elevators` lists all {all}")
        );
        assert!(kind("bfk").unwrap_err().contains("did you mean `bfq`?"), "{}", kind("bfk").unwrap_err());
    }

    #[test]
    fn an_alias_is_a_name() {
        assert_eq!(kind("as"), Ok(Kind::Anticipatory));
        assert_eq!(kind("none"), Ok(Kind::Noop));
    }
}
