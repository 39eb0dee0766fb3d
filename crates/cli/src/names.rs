//! Names in arguments: elevators, kernels, probes, and suggestions for unknown names.

use hoistway_advise::compare::{EveryElevator, Named};
use hoistway_core::Kind;
use hoistway_drive::probe::Probe;
use hoistway_sim::Kernel;
pub use hoistway_units::names::did_you_mean;

/// Finds an elevator by name or alias.
///
/// # Errors
/// A message with the names near to this one.
pub fn kind(name: &str) -> Result<Kind, String> {
    hoistway_sim::elevator_of_name(name).map_err(|error| error.to_string())
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

/// The kernel of a simulated host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKernel {
    /// One kernel for all elevators.
    One(Kernel),
    /// The kernel of each elevator for its block layer, and the rest of the host of 2.6.18.
    Own,
}

/// Parses the kernel of a host: a version, or `own`.
///
/// # Errors
/// The errors of [`kernel`].
pub fn host_kernel(name: &str) -> Result<HostKernel, String> {
    match name {
        "own" => Ok(HostKernel::Own),
        _ => kernel(name).map(HostKernel::One).map_err(|error| format!("{error}, and own")),
    }
}

/// Parses a runtime, in seconds if it has no unit; the value is in ns.
///
/// # Errors
/// A message with the valid form.
pub fn runtime(text: &str) -> Result<u64, String> {
    match hoistway_units::parse_time_ns(text, hoistway_units::TimeUnit::Seconds) {
        Ok(0) => Err("a runtime is longer than nothing, as in 30s".to_owned()),
        Ok(ns) => Ok(ns),
        Err(error) => Err(format!("{error}; write a time, as in 30s")),
    }
}

/// Parses the part of a job to run.
///
/// # Errors
/// A message with the valid range.
pub fn scale(text: &str) -> Result<f64, String> {
    let part = text.parse::<f64>().ok().filter(|part| *part > 0.0 && *part <= 1.0);
    part.ok_or_else(|| "it takes a number above 0 and at most 1, as in 0.1".to_owned())
}

/// Parses an entry of a list: an elevator, `history` or `all`.
///
/// # Errors
/// The errors of [`kind`].
pub fn kinds(name: &str) -> Result<Named, String> {
    match name {
        "all" => Ok(Named::Every(EveryElevator::All)),
        "history" => Ok(Named::Every(EveryElevator::History)),
        _ => kind(name).map(Named::One),
    }
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
    fn a_runtime_has_a_unit_or_is_in_seconds_and_a_scale_is_a_part() {
        assert_eq!(
            (runtime("30"), runtime("2m"), runtime("500ms")),
            (Ok(30_000_000_000), Ok(120_000_000_000), Ok(500_000_000))
        );
        assert!(runtime("0").is_err() && runtime("soon").is_err());
        assert_eq!(scale("0.1"), Ok(0.1));
        assert!(["0", "1.5", "-1", "nan", "x"].iter().all(|text| scale(text).is_err()));
    }

    #[test]
    fn an_alias_is_a_name() {
        assert_eq!(kind("as"), Ok(Kind::Anticipatory));
        assert_eq!(kind("none"), Ok(Kind::Noop));
    }
}
