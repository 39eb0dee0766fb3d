//! Which tunables a search covers, from the names that a user gives.

use hoistway_core::Kind;

use super::space::Space;
use crate::case::Case;
use crate::device_facts::kind_of;
use hoistway_compare::scheduler_name;

/// The settings of the queue that a search can cover.
pub const QUEUE_NAMES: [&str; 3] = ["read_ahead_kb", "nr_requests", "queue_depth"];

/// A name does not select anything to search.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// There is no such scheduler to set.
    #[error("`{name}` is no scheduler that could be set; there are {}", known.join(", "))]
    Scheduler {
        /// The name.
        name: String,
        /// The schedulers that can be set.
        known: Vec<&'static str>,
    },
    /// The scheduler has no such tunable.
    #[error("{scheduler} has no tunable `{tunable}` that could be searched; {}", has(known))]
    Tunable {
        /// The scheduler.
        scheduler: String,
        /// The name of the tunable.
        tunable: String,
        /// The tunables of the scheduler.
        known: Vec<&'static str>,
    },
    /// The requests of a recording do not depend on these settings.
    #[error(
        "read_ahead_kb and nr_requests cannot be searched for a trace: requests are taken as they were recorded, below both"
    )]
    BelowTheQueue,
}

/// The tunables of a scheduler in a sentence.
pub fn has(known: &[&str]) -> String {
    if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) }
}

/// The spaces that names select: `bfq` for all tunables of a scheduler, `bfq.slice_idle` for one,
/// `read_ahead_kb`, `nr_requests` and `queue_depth` for the queue. Without names all tunables of
/// all candidates.
///
/// # Errors
/// [`SelectionError`] for the first name that selects nothing.
pub fn select_spaces(case: &Case, names: &[String]) -> Result<Vec<Space>, SelectionError> {
    if names.is_empty() {
        return Ok(case.candidates.iter().map(|kind| Space::of(*kind)).collect());
    }
    // Each scheduler with the names of its tunables; `None` for all.
    let mut selected: Vec<(Kind, Option<Vec<String>>)> = Vec::new();
    let mut queue = Vec::new();
    for name in names {
        let name = name.trim();
        if QUEUE_NAMES.contains(&name) {
            queue.push(name);
            continue;
        }
        let (scheduler, tunable) = name.split_once('.').map_or((name, None), |(name, tunable)| (name, Some(tunable)));
        let kind = candidate(case, scheduler)?;
        let index = selected.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            selected.push((kind, Some(Vec::new())));
            selected.len() - 1
        });
        match tunable {
            None => selected[index].1 = None,
            Some(tunable) => {
                check_tunable(kind, scheduler, tunable)?;
                if let Some(names) = &mut selected[index].1 {
                    names.push(tunable.to_owned());
                }
            }
        }
    }
    if selected.is_empty() {
        selected = case.candidates.iter().map(|kind| (*kind, Some(Vec::new()))).collect();
    }
    if case.recorded.is_some() && queue.iter().any(|name| *name != "queue_depth") {
        return Err(SelectionError::BelowTheQueue);
    }
    let spaces = selected.into_iter().map(|(kind, names)| {
        let space = Space::of(kind);
        let space = match names {
            Some(names) => space.only(&names.iter().map(String::as_str).collect::<Vec<_>>()),
            None => space,
        };
        queue.iter().fold(space, |space, name| with_queue(space, name, case))
    });
    Ok(spaces.collect())
}

fn with_queue(space: Space, name: &str, case: &Case) -> Space {
    let host = &case.bench.host;
    match name {
        "read_ahead_kb" => space.with_read_ahead(host.read_ahead_kib),
        "nr_requests" => {
            let usual = case.depth().clamp(32, 128) * 2;
            let now = if host.pool_follows_drive { usual } else { host.queue.nr_requests.unwrap_or(usual) };
            space.with_requests(u64::from(now))
        }
        _ => space.with_depth(u64::from(case.depth())),
    }
}

fn candidate(case: &Case, name: &str) -> Result<Kind, SelectionError> {
    kind_of(name).filter(|kind| case.candidates.contains(kind)).ok_or_else(|| SelectionError::Scheduler {
        name: name.to_owned(),
        known: case.candidates.iter().map(|kind| scheduler_name(*kind)).collect(),
    })
}

fn check_tunable(kind: Kind, scheduler: &str, tunable: &str) -> Result<(), SelectionError> {
    let space = Space::of(kind);
    let known: Vec<&'static str> =
        space.ladders.iter().filter_map(|ladder| ladder.dimension.tunable()).map(|row| row.name).collect();
    if known.contains(&tunable) {
        return Ok(());
    }
    Err(SelectionError::Tunable { scheduler: scheduler.to_owned(), tunable: tunable.to_owned(), known })
}
