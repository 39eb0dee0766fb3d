//! No dependency cycles of modules.
//!
//! A module is a file. Module A depends on module B if code in A, tests excepted, names an item
//! that B defines; re-exports are followed to the definition, and a re-export (`pub use`) of a
//! descendant is no dependency.
//!
//! A cycle is allowed only if one of its modules, the parent, contains all the others, and the
//! others form no forbidden cycle without it. So a parent and its children may share private
//! items, but siblings may not form a cycle, not even through re-exports of their parent.

mod references;
mod scan;

use std::collections::BTreeMap;

use anyhow::Result;

use crate::graph;
use hoistway_workspace::packages::Package;
use hoistway_workspace::repository::File;
use references::Crate;

/// The path of a module in its crate, for example `["queue", "plug"]`; empty for the root.
pub(super) type ModulePath = Vec<String>;

/// Lists the forbidden cycles of all crates.
pub fn violations(packages: &[Package]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for package in packages {
        let cycles = forbidden_cycles(&package.sources()?, &format!("{}/src/", package.directory));
        found.extend(cycles.iter().map(|cycle| cycle.message(&package.name)));
    }
    Ok(found)
}

/// A forbidden cycle.
struct Cycle {
    modules: Vec<String>,
    /// Some of its dependencies, as `file:line uses path`.
    examples: Vec<String>,
}

impl Cycle {
    fn message(&self, name: &str) -> String {
        let names = self.modules.join(", ");
        let examples: String = self.examples.iter().map(|example| format!("\n      {example}")).collect();
        format!("{name}: {} modules form a dependency cycle: {names}{examples}", self.modules.len())
    }
}

/// Finds the forbidden cycles of the files of a crate, whose paths begin with `source`, for
/// example `crates/core/src/`.
fn forbidden_cycles(files: &[File], source: &str) -> Vec<Cycle> {
    let krate = Crate::read(files, source);
    let references = krate.references();
    let mut edges: BTreeMap<&ModulePath, Vec<&ModulePath>> = BTreeMap::new();
    for module in krate.modules() {
        edges.insert(module, Vec::new());
    }
    for reference in &references {
        if let Some(targets) = edges.get_mut(&reference.from) {
            targets.push(&reference.to);
        }
    }
    let mut cycles = Vec::new();
    let mut open = graph::cycles(&edges);
    while let Some(component) = open.pop() {
        let Some(parent) = component.iter().copied().find(|parent| component.iter().all(|one| one.starts_with(parent)))
        else {
            let inside = |module: &ModulePath| component.contains(&module);
            let examples = references.iter().filter(|one| inside(&one.from) && inside(&one.to));
            let examples = examples.map(|one| format!("{}:{} uses {}", one.file, one.line, one.path)).take(8).collect();
            let modules = component.iter().map(|module| name(module)).collect();
            cycles.push(Cycle { modules, examples });
            continue;
        };
        let inside = |module: &&ModulePath| *module != parent && component.contains(module);
        let rest = edges.iter().filter(|(module, _)| inside(module));
        let rest = rest.map(|(module, to)| (*module, to.iter().copied().filter(inside).collect())).collect();
        open.extend(graph::cycles(&rest));
    }
    cycles.sort_by(|a, b| a.modules.cmp(&b.modules));
    cycles
}

/// A module as it is shown: `queue::plug`, or `(root)`.
fn name(module: &ModulePath) -> String {
    if module.is_empty() { "(root)".to_owned() } else { module.join("::") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycles of a crate made of files by their names below `src`.
    fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let file = |(path, text): &(&str, &str)| File { path: format!("src/{path}"), text: (*text).to_owned() };
        let files: Vec<File> = files.iter().map(file).collect();
        forbidden_cycles(&files, "src/").into_iter().map(|cycle| cycle.modules).collect()
    }

    const NONE: [Vec<String>; 0] = [];

    #[test]
    fn two_modules_that_use_one_another_are_a_cycle() {
        let a = "use crate::b::B; pub struct A(B);";
        let b = "pub struct B; fn f(a: &crate::a::A) {}";
        assert_eq!(cycles(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]), [["a", "b"]]);
        assert_eq!(cycles(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "pub struct B;")]), NONE);
    }

    #[test]
    fn a_parent_and_its_children_may_form_a_cycle() {
        let parent = "mod child; pub use child::Child; pub struct Shared; fn f() { child::g() }";
        let child = "use super::Shared; pub struct Child(Shared); pub fn g() {}";
        assert_eq!(cycles(&[("lib.rs", "mod a;"), ("a/mod.rs", parent), ("a/child.rs", child)]), NONE);
    }

    #[test]
    fn siblings_may_not_form_a_cycle_through_re_exports_of_their_parent() {
        let parent = "mod x; mod y; pub use x::X; pub use y::*;";
        let files =
            [("a.rs", parent), ("a/x.rs", "use super::Y; pub struct X;"), ("a/y.rs", "pub struct Y(super::X);")];
        assert_eq!(cycles(&[&[("lib.rs", "mod a;")][..], &files].concat()), [["a::x", "a::y"]]);
    }

    #[test]
    fn an_import_from_the_parent_that_is_private_is_followed() {
        let parent = "mod x; mod y; use x::X;";
        let files =
            [("a.rs", parent), ("a/x.rs", "use super::y::Y; pub struct X;"), ("a/y.rs", "pub struct Y(super::X);")];
        assert_eq!(cycles(&[&[("lib.rs", "mod a;")][..], &files].concat()), [["a::x", "a::y"]]);
    }

    #[test]
    fn a_child_that_an_outside_module_uses_and_that_uses_it_is_a_cycle() {
        let files = [("lib.rs", "mod a; mod b;"), ("a.rs", "pub mod x;"), ("a/x.rs", "pub struct X(crate::b::B);")];
        let b = ("b.rs", "pub struct B; use crate::a::x; fn f() -> x::X { todo!() }");
        assert_eq!(cycles(&[&files[..], &[b]].concat()), [["a::x", "b"]]);
    }

    #[test]
    fn tests_comments_strings_and_visibilities_do_not_count() {
        let a = "use crate::b::B; pub(in crate::b) struct A; // crate::b::B";
        let b = "pub struct B; const S: &str = \"crate::a::A\"; #[cfg(test)] mod tests { use crate::a::A; }";
        assert_eq!(cycles(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]), NONE);
        let tests = ("b/tests.rs", "use crate::a::A;");
        assert_eq!(cycles(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "pub struct B;"), tests]), NONE);
    }

    #[test]
    fn groups_and_other_names_in_imports_are_followed() {
        let a = "use crate::{b::{self as bee, B as Renamed}, c}; pub struct A; fn f() { c::g() }";
        let c = "use super::a::{A}; pub fn g() {}";
        let files = [("lib.rs", "mod a; mod b; mod c;"), ("a.rs", a), ("b.rs", "pub struct B;"), ("c.rs", c)];
        assert_eq!(cycles(&files), [["a", "c"]]);
    }
}
