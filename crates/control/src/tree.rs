//! The tree: what there is under which path, and how a path is understood.
//!
//! Paths are declared once, in [`LEAVES`], as patterns: a component in capitals stands for the name
//! of a thing (`NAME`, `ID`) or of a tunable (`TUNABLE`). Listings, help and the page
//! docs/serve-control.md are made from the same rows.

use crate::leaf::{Ask, Leaf, SetError};
use crate::leaves::LEAVES;
use crate::names;
use crate::share::Watch;
use crate::target::{AdminTarget, Change, ObjectKind};

/// Why a path leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// There is no such component in a directory.
    #[error("no {component:?} in {}{}", folder(.inside), hint(.meant))]
    Unknown {
        /// The component.
        component: String,
        /// The path of the directory.
        inside: String,
        /// The component that was probably meant.
        meant: Option<String>,
    },
    /// A leaf has nothing below it.
    #[error("{0} is no directory")]
    NoDirectory(String),
}

/// Where a path leads.
#[derive(Clone)]
pub enum Place {
    /// To a directory.
    Directory(Vec<String>),
    /// To a leaf.
    Leaf(Found),
}

/// A leaf that a path leads to.
#[derive(Clone)]
pub struct Found {
    /// The leaf.
    pub leaf: &'static Leaf,
    /// The path, as components.
    pub components: Vec<String>,
    name: String,
    tunable: String,
}

impl Found {
    /// The path.
    pub fn path(&self) -> String {
        self.components.join("/")
    }

    /// What the leaf tells; `None`: it is gone, or tells nothing.
    pub fn get(&self, steer: &dyn AdminTarget, watch: &Watch) -> Option<String> {
        self.leaf.get?(&self.ask(steer, watch))
    }

    /// What setting the leaf comes to; `None`: it is only read.
    pub fn set(&self, steer: &dyn AdminTarget, watch: &Watch, value: &str) -> Option<Result<Change, SetError>> {
        self.leaf.set.map(|set| set(&self.ask(steer, watch), value))
    }

    fn ask<'a>(&'a self, steer: &'a dyn AdminTarget, watch: &'a Watch) -> Ask<'a> {
        Ask { steer, watch, name: &self.name, tunable: &self.tunable }
    }
}

/// Where a path leads. Slashes at its ends and double ones do not count; the empty path is the
/// root.
///
/// # Errors
/// The first component that is not there.
pub fn find(path: &str, steer: &dyn AdminTarget) -> Result<Place, PathError> {
    let mut walked: Vec<String> = Vec::new();
    for component in path.split('/').filter(|component| !component.is_empty()) {
        if leaf_at(&walked).is_some() {
            return Err(PathError::NoDirectory(walked.join("/")));
        }
        // What is there is compared as names: `%41` and `A` are the same.
        let wanted = names::unescape(component);
        let there = entries(&walked, steer);
        let Some(entry) = there.iter().find(|entry| wanted.is_some() && names::unescape(entry) == wanted) else {
            let meant = names::meant(component, there.iter().map(String::as_str)).map(str::to_owned);
            return Err(PathError::Unknown { component: component.to_owned(), inside: walked.join("/"), meant });
        };
        walked.push(entry.clone());
    }
    Ok(match leaf_at(&walked) {
        Some(leaf) => Place::Leaf(found(leaf, walked)),
        None => Place::Directory(walked),
    })
}

/// What a directory holds, in the order of the table; directories among them can be told by
/// [`is_directory`].
pub fn entries(directory: &[String], steer: &dyn AdminTarget) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for leaf in LEAVES {
        let Some(next) = next_component(leaf.path, directory) else { continue };
        match variable(leaf.path, next) {
            None if entries.iter().all(|entry| entry != next) => entries.push(next.to_owned()),
            None => {}
            // All leaves of a kind of thing lead through the same names.
            Some(_) if !entries.is_empty() => {}
            Some(Variable::Thing(things)) => {
                entries.extend(steer.names(things).iter().map(|name| names::escape(name)));
            }
            Some(Variable::Tunable) => {
                let device = directory.get(1).and_then(|name| names::unescape(name));
                let facts = device.and_then(|name| steer.device(&name));
                entries.extend(
                    facts.into_iter().flat_map(|facts| facts.tunables).map(|(tunable, _)| tunable.name.to_owned()),
                );
            }
        }
    }
    entries
}

/// Whether something lies below these components, if they are there at all.
pub fn is_directory(components: &[String]) -> bool {
    leaf_at(components).is_none()
}

/// The leaf whose path these components are.
pub fn leaf_at(components: &[String]) -> Option<&'static Leaf> {
    LEAVES.iter().find(|leaf| {
        leaf.path.split('/').count() == components.len()
            && leaf.path.split('/').zip(components).all(|(pattern, component)| fits(pattern, component))
    })
}

/// A leaf under these components.
pub fn found(leaf: &'static Leaf, components: Vec<String>) -> Found {
    let (mut name, mut tunable) = (String::new(), String::new());
    for (pattern, component) in leaf.path.split('/').zip(&components) {
        match variable(leaf.path, pattern) {
            Some(Variable::Thing(_)) => name = names::unescape(component).unwrap_or_default(),
            Some(Variable::Tunable) => tunable.clone_from(component),
            None => {}
        }
    }
    Found { leaf, components, name, tunable }
}

/// The leaves whose patterns a path could be the beginning of: a pattern or a real path.
pub fn leaves_under(path: &str) -> impl Iterator<Item = &'static Leaf> {
    let wanted: Vec<String> = path.split('/').filter(|component| !component.is_empty()).map(str::to_owned).collect();
    LEAVES.iter().filter(move |leaf| {
        let mut patterns = leaf.path.split('/');
        wanted
            .iter()
            .all(|component| patterns.next().is_some_and(|pattern| pattern == component || fits(pattern, component)))
    })
}

/// The pattern, or the beginning of one, that was probably meant.
pub fn meant_path(path: &str) -> Option<&'static str> {
    let ends = |leaf: &'static Leaf| {
        let slashes = leaf.path.match_indices('/').map(|(at, _)| at).chain([leaf.path.len()]);
        slashes.filter_map(|end| leaf.path.get(..end))
    };
    names::meant(path.trim_matches('/'), LEAVES.iter().flat_map(ends))
}

/// What stands for different names.
enum Variable {
    Thing(ObjectKind),
    Tunable,
}

/// What a component of a pattern stands for; `None`: for itself.
fn variable(path: &str, component: &str) -> Option<Variable> {
    match (component, path.split('/').next()) {
        ("TUNABLE", _) => Some(Variable::Tunable),
        ("NAME", Some("devices")) => Some(Variable::Thing(ObjectKind::Devices)),
        ("NAME", Some("exports")) => Some(Variable::Thing(ObjectKind::Exports)),
        ("NAME", Some("tenants")) => Some(Variable::Thing(ObjectKind::Tenants)),
        ("NAME", Some("groups")) => Some(Variable::Thing(ObjectKind::Groups)),
        ("ID", _) => Some(Variable::Thing(ObjectKind::Clients)),
        _ => None,
    }
}

/// The component of a pattern behind those of a directory, if it leads through it.
fn next_component(path: &'static str, directory: &[String]) -> Option<&'static str> {
    let mut components = path.split('/');
    for walked in directory {
        if !components.next().is_some_and(|pattern| fits(pattern, walked)) {
            return None;
        }
    }
    components.next()
}

fn fits(pattern: &str, component: &str) -> bool {
    matches!(pattern, "NAME" | "ID" | "TUNABLE") || pattern == component
}

fn folder(inside: &str) -> String {
    if inside.is_empty() { "the root".to_owned() } else { inside.to_owned() }
}

fn hint(meant: &Option<String>) -> String {
    meant.as_ref().map_or_else(String::new, |meant| format!("; did you mean {meant:?}?"))
}
