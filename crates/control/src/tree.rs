//! The tree of paths: directories, leaves, and the resolution of a path.
//!
//! Paths are declared once, in [`LEAVES`], as patterns: a component in capitals stands for the name
//! of an object (`NAME`, `ID`) or of a tunable (`TUNABLE`). Listings, help and the page
//! docs/serve-control.md use the same rows.

use crate::leaf::{Leaf, LeafQuery, SetError};
use crate::leaves::LEAVES;
use crate::names;
use crate::share::Watch;
use crate::target::{AdminTarget, Change, ObjectKind};

/// Why a path does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A directory has no such component.
    #[error("no {component:?} in {}{}", directory(.inside), hint(.suggestion))]
    Unknown {
        /// The component.
        component: String,
        /// The path of the directory.
        inside: String,
        /// A similar component of the directory.
        suggestion: Option<String>,
    },
    /// A leaf has nothing below it.
    #[error("{0} is not a directory")]
    NoDirectory(String),
}

/// A node of the tree.
#[derive(Clone)]
pub enum Node {
    /// A directory, as components.
    Directory(Vec<String>),
    /// A leaf.
    Leaf(Found),
}

/// A leaf of the tree with the object that its path names.
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
    /// Returns the path.
    pub fn path(&self) -> String {
        self.components.join("/")
    }

    /// Returns the value of the leaf; `None` if the object no longer exists or the leaf is
    /// write-only.
    pub fn get(&self, target: &dyn AdminTarget, watch: &Watch) -> Option<String> {
        self.leaf.get?(&self.query(target, watch))
    }

    /// Returns the change that sets the leaf; `None` if the leaf is read-only.
    pub fn set(&self, target: &dyn AdminTarget, watch: &Watch, value: &str) -> Option<Result<Change, SetError>> {
        self.leaf.set.map(|set| set(&self.query(target, watch), value))
    }

    fn query<'a>(&'a self, target: &'a dyn AdminTarget, watch: &'a Watch) -> LeafQuery<'a> {
        LeafQuery { target, watch, name: &self.name, tunable: &self.tunable }
    }
}

/// Resolves a path. Slashes at its ends and repeated slashes are ignored; the empty path is the
/// root.
///
/// # Errors
/// The first component that does not exist.
pub fn find(path: &str, target: &dyn AdminTarget) -> Result<Node, PathError> {
    let mut walked: Vec<String> = Vec::new();
    for component in path.split('/').filter(|component| !component.is_empty()) {
        if leaf_at(&walked).is_some() {
            return Err(PathError::NoDirectory(walked.join("/")));
        }
        // Components are compared after decoding: `%41` and `A` are equal.
        let wanted = names::unescape(component);
        let present = entries(&walked, target);
        let Some(entry) = present.iter().find(|entry| wanted.is_some() && names::unescape(entry) == wanted) else {
            let suggestion = names::suggest(component, present.iter().map(String::as_str)).map(str::to_owned);
            return Err(PathError::Unknown { component: component.to_owned(), inside: walked.join("/"), suggestion });
        };
        walked.push(entry.clone());
    }
    Ok(match leaf_at(&walked) {
        Some(leaf) => Node::Leaf(found(leaf, walked)),
        None => Node::Directory(walked),
    })
}

/// Returns the entries of a directory in the order of the table; see [`is_directory`].
pub fn entries(directory: &[String], target: &dyn AdminTarget) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for leaf in LEAVES {
        let Some(next) = next_component(leaf.path, directory) else { continue };
        match variable(leaf.path, next) {
            None if entries.iter().all(|entry| entry != next) => entries.push(next.to_owned()),
            None => {}
            // All leaves of a kind of object have the same names.
            Some(_) if !entries.is_empty() => {}
            Some(Variable::Object(kind)) => {
                entries.extend(target.names(kind).iter().map(|name| names::escape(name)));
            }
            Some(Variable::Tunable) => {
                let device = directory.get(1).and_then(|name| names::unescape(name));
                let facts = device.and_then(|name| target.device(&name));
                entries.extend(
                    facts.into_iter().flat_map(|facts| facts.tunables).map(|(tunable, _)| tunable.name.to_owned()),
                );
            }
        }
    }
    entries
}

/// Returns true if these components, which must exist, are those of a directory.
pub fn is_directory(components: &[String]) -> bool {
    leaf_at(components).is_none()
}

/// Returns the leaf with these components.
pub fn leaf_at(components: &[String]) -> Option<&'static Leaf> {
    LEAVES.iter().find(|leaf| {
        leaf.path.split('/').count() == components.len()
            && leaf.path.split('/').zip(components).all(|(pattern, component)| fits(pattern, component))
    })
}

/// Returns a leaf with the object that its components name.
pub fn found(leaf: &'static Leaf, components: Vec<String>) -> Found {
    let (mut name, mut tunable) = (String::new(), String::new());
    for (pattern, component) in leaf.path.split('/').zip(&components) {
        match variable(leaf.path, pattern) {
            Some(Variable::Object(_)) => name = names::unescape(component).unwrap_or_default(),
            Some(Variable::Tunable) => tunable.clone_from(component),
            None => {}
        }
    }
    Found { leaf, components, name, tunable }
}

/// Returns the leaves below a path, which may contain patterns.
pub fn leaves_under(path: &str) -> impl Iterator<Item = &'static Leaf> {
    let wanted: Vec<String> = path.split('/').filter(|component| !component.is_empty()).map(str::to_owned).collect();
    LEAVES.iter().filter(move |leaf| {
        let mut patterns = leaf.path.split('/');
        wanted
            .iter()
            .all(|component| patterns.next().is_some_and(|pattern| pattern == component || fits(pattern, component)))
    })
}

/// Returns the pattern, or the beginning of one, that is most similar to a misspelt path.
pub fn suggest_path(path: &str) -> Option<&'static str> {
    let ends = |leaf: &'static Leaf| {
        let slashes = leaf.path.match_indices('/').map(|(at, _)| at).chain([leaf.path.len()]);
        slashes.filter_map(|end| leaf.path.get(..end))
    };
    names::suggest(path.trim_matches('/'), LEAVES.iter().flat_map(ends))
}

/// A variable component of a pattern.
enum Variable {
    Object(ObjectKind),
    Tunable,
}

/// Returns the variable of a component of a pattern; `None` for a constant component.
fn variable(path: &str, component: &str) -> Option<Variable> {
    match (component, path.split('/').next()) {
        ("TUNABLE", _) => Some(Variable::Tunable),
        ("NAME", Some("devices")) => Some(Variable::Object(ObjectKind::Devices)),
        ("NAME", Some("exports")) => Some(Variable::Object(ObjectKind::Exports)),
        ("NAME", Some("tenants")) => Some(Variable::Object(ObjectKind::Tenants)),
        ("NAME", Some("groups")) => Some(Variable::Object(ObjectKind::Groups)),
        ("ID", _) => Some(Variable::Object(ObjectKind::Clients)),
        _ => None,
    }
}

/// Returns the component of a pattern after those of a directory, if the directory matches.
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

fn directory(inside: &str) -> String {
    if inside.is_empty() { "the root".to_owned() } else { inside.to_owned() }
}

fn hint(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}
