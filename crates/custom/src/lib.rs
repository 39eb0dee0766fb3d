//! Custom elevators: elevators outside this repository, registered by name, which the simulator,
//! the servers and the commands of the same program run beside the built-in ones.
//!
//! The core calls a custom elevator through a type of the host
//! ([`HostTypes::Custom`](hoistway_core::HostTypes::Custom)). The hosts of this repository use
//! [`Boxed`], which is one of the registered elevators, so that a program can have many of them,
//! and new ones at run time.
//!
//! # Where to change what
//!
//! - The contract of a custom elevator, and its checks: `crates/core/src/elevator/custom.rs` and
//!   `crates/core/src/elevators/custom.rs`.
//! - The names: [`register`], [`find`], [`all`].
//!
#![doc = include_str!("../README.md")]

use std::sync::{Arc, PoisonError, RwLock};

use hoistway_core::{
    Capacity, CustomElevator, CustomElevators, CustomKind, CustomRequest, Info, Kind, Owned, QueueView, RequestId,
};

/// A custom elevator of any type.
pub type AnyCustom = Box<dyn CustomElevator + Send + Sync>;

/// The host types of queues that run registered elevators, with the sink `S` of trace events.
pub type Host<S> = Owned<S, Boxed>;

type Make = Arc<dyn Fn(Capacity) -> AnyCustom + Send + Sync>;

/// A registered elevator.
struct Registered {
    kind: CustomKind,
    make: Make,
}

static REGISTERED: RwLock<Vec<Registered>> = RwLock::new(Vec::new());

/// Why an elevator was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// A built-in elevator has the name.
    #[error("an elevator cannot be named `{0}`: a built-in elevator has this name")]
    BuiltIn(String),
    /// The name does not have the form of an elevator's name.
    #[error(
        "an elevator cannot be named `{0}`: a name has small letters, digits and hyphens, and begins with a letter"
    )]
    Form(String),
}

/// Registers an elevator for this process. `make` creates it for a queue of a capacity.
///
/// An elevator that is registered under the name of an earlier one replaces it for look-ups by
/// name; queues that use the earlier one keep it. Descriptions are kept until the process ends.
///
/// # Errors
/// [`RegisterError`] if the name is not usable.
pub fn register(
    info: Info,
    make: impl Fn(Capacity) -> AnyCustom + Send + Sync + 'static,
) -> Result<Kind, RegisterError> {
    let name = info.name;
    if Kind::from_name(name).is_some() {
        return Err(RegisterError::BuiltIn(name.to_owned()));
    }
    let is_usual = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(is_usual) {
        return Err(RegisterError::Form(name.to_owned()));
    }
    let kind = CustomKind::new(Box::leak(Box::new(info)));
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.push(Registered { kind, make: Arc::new(make) });
    Ok(Kind::Custom(kind))
}

/// Finds an elevator by name or alias: a built-in one, or the one that was registered last under
/// this name.
pub fn find(name: &str) -> Option<Kind> {
    Kind::from_name(name).or_else(|| registered().into_iter().find(|kind| kind.info().name == name))
}

/// The registered elevators in order of registration, without those that were replaced.
pub fn registered() -> Vec<Kind> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let mut kinds: Vec<Kind> = Vec::new();
    for entry in registered.iter() {
        let name = entry.kind.info().name;
        kinds.retain(|kind| kind.info().name != name);
        kinds.push(Kind::Custom(entry.kind));
    }
    kinds
}

/// All elevators: the built-in ones in the order in which they appeared, then the registered ones.
pub fn all() -> Vec<Kind> {
    [Kind::ALL.to_vec(), registered()].concat()
}

/// A registered elevator.
pub struct Boxed(AnyCustom);

impl std::fmt::Debug for Boxed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Boxed").finish_non_exhaustive()
    }
}

impl CustomElevators for Boxed {
    fn create(info: &'static Info, capacity: Capacity) -> Option<Boxed> {
        let wanted = CustomKind::new(info);
        let make = {
            let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
            registered.iter().find(|entry| entry.kind == wanted)?.make.clone()
        };
        Some(Boxed(make(capacity)))
    }
}

impl CustomElevator for Boxed {
    fn insert(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        self.0.insert(queue, request);
    }
    fn dispatch(&mut self, queue: &mut QueueView) -> Option<RequestId> {
        self.0.dispatch(queue)
    }
    fn complete(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        self.0.complete(queue, request);
    }
    fn timer(&mut self, queue: &mut QueueView) {
        self.0.timer(queue);
    }
    fn merged(&mut self, queue: &mut QueueView, request: &CustomRequest) {
        self.0.merged(queue, request);
    }
    fn exit(&mut self, pid: u32) {
        self.0.exit(pid);
    }
    fn tunable(&self, index: usize) -> i64 {
        self.0.tunable(index)
    }
    fn set_tunable(&mut self, index: usize, value: i64) {
        self.0.set_tunable(index, value);
    }
    fn failure(&self) -> Option<&str> {
        self.0.failure()
    }
    fn longest_wait_ns(&self) -> u64 {
        self.0.longest_wait_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An elevator that dispatches nothing.
    struct Silent;

    impl CustomElevator for Silent {
        fn insert(&mut self, _: &mut QueueView, _: &CustomRequest) {}
        fn dispatch(&mut self, _: &mut QueueView) -> Option<RequestId> {
            None
        }
    }

    fn add(name: &'static str) -> Result<Kind, RegisterError> {
        register(Info::custom(name, "1", "For a test"), |_| Box::new(Silent))
    }

    #[test]
    fn names_of_built_in_elevators_and_unusual_names_are_refused() {
        assert_eq!(add("cfq"), Err(RegisterError::BuiltIn("cfq".into())));
        assert_eq!(add("as"), Err(RegisterError::BuiltIn("as".into())), "an alias");
        for name in ["", "My", "7up", "a.b", "a b"] {
            assert_eq!(add(name), Err(RegisterError::Form(name.into())));
        }
    }

    #[test]
    fn the_last_elevator_of_a_name_is_found_and_the_earlier_one_still_exists() {
        let (first, second) = (add("twice").unwrap(), add("twice").unwrap());
        assert_ne!(first, second);
        assert_eq!(find("twice"), Some(second));
        assert_eq!(all().into_iter().filter(|kind| kind.info().name == "twice").collect::<Vec<_>>(), [second]);
        assert!(Boxed::create(first.info(), Capacity::default()).is_some());
        assert_eq!(find("cfq"), Some(Kind::Cfq));
    }

    #[test]
    fn an_elevator_that_was_not_registered_is_not_created() {
        static UNKNOWN: Info = Info::custom("unknown", "1", "Not registered");
        assert!(Boxed::create(&UNKNOWN, Capacity::default()).is_none());
    }
}
