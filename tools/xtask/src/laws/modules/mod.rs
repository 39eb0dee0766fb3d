//! No circles of modules.
//!
//! A module is a file. Module A depends on module B if code in A, tests excepted, names an item
//! that B defines; re-exports are followed to the definition, and a re-export (`pub use`) of a
//! descendant is no dependency.
//!
//! Modules may depend on one another in a circle only if one of them, the parent, contains all the
//! others, and no circle is left when the parent is taken out. The rule applies again to what is
//! left. So a parent and its children may share private items, but siblings may not form a circle,
//! not even through re-exports of their parent.

mod references;
mod scan;

use std::collections::BTreeMap;

use anyhow::Result;

use super::packages::Package;
use crate::graph;
use crate::repository::File;
use references::Crate;

/// The path of a module in its crate, for example `["queue", "plug"]`; empty for the root.
pub(super) type ModulePath = Vec<String>;

/// Lists the forbidden circles of all crates.
pub fn violations(packages: &[Package]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for package in packages {
        let circles = forbidden_circles(&package.sources()?, &format!("{}/src/", package.directory));
        found.extend(circles.iter().map(|circle| circle.message(&package.name)));
    }
    Ok(found)
}

/// A forbidden circle.
struct Circle {
    modules: Vec<String>,
    /// Some of its arrows, as `file:line uses path`.
    examples: Vec<String>,
}

impl Circle {
    fn message(&self, name: &str) -> String {
        let names = self.modules.join(", ");
        let examples: String = self.examples.iter().map(|example| format!("\n      {example}")).collect();
        format!("{name}: {} modules depend on one another in a circle: {names}{examples}", self.modules.len())
    }
}

/// Finds the forbidden circles of the files of a crate, whose paths begin with `source`, for
/// example `crates/core/src/`.
fn forbidden_circles(files: &[File], source: &str) -> Vec<Circle> {
    let krate = Crate::read(files, source);
    let references = krate.references();
    let mut arrows: BTreeMap<&ModulePath, Vec<&ModulePath>> = BTreeMap::new();
    for module in krate.modules() {
        arrows.insert(module, Vec::new());
    }
    for reference in &references {
        if let Some(targets) = arrows.get_mut(&reference.from) {
            targets.push(&reference.to);
        }
    }
    let mut circles = Vec::new();
    let mut open = graph::circles(&arrows);
    while let Some(component) = open.pop() {
        let Some(parent) = component.iter().copied().find(|parent| component.iter().all(|one| one.starts_with(parent)))
        else {
            let inside = |module: &ModulePath| component.contains(&module);
            let examples = references.iter().filter(|one| inside(&one.from) && inside(&one.to));
            let examples = examples.map(|one| format!("{}:{} uses {}", one.file, one.line, one.path)).take(8).collect();
            let modules = component.iter().map(|module| name(module)).collect();
            circles.push(Circle { modules, examples });
            continue;
        };
        let inside = |module: &&ModulePath| *module != parent && component.contains(module);
        let rest = arrows.iter().filter(|(module, _)| inside(module));
        let rest = rest.map(|(module, to)| (*module, to.iter().copied().filter(inside).collect())).collect();
        open.extend(graph::circles(&rest));
    }
    circles.sort_by(|a, b| a.modules.cmp(&b.modules));
    circles
}

/// A module as it is shown: `queue::plug`, or `(root)`.
fn name(module: &ModulePath) -> String {
    if module.is_empty() { "(root)".to_owned() } else { module.join("::") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles of a crate made of files by their names below `src`.
    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let file = |(path, text): &(&str, &str)| File { path: format!("src/{path}"), text: (*text).to_owned() };
        let files: Vec<File> = files.iter().map(file).collect();
        forbidden_circles(&files, "src/").into_iter().map(|circle| circle.modules).collect()
    }

    const NONE: [Vec<String>; 0] = [];

    #[test]
    fn two_modules_that_use_one_another_are_a_circle() {
        let a = "use crate::b::B; pub struct A(B);";
        let b = "pub struct B; fn f(a: &crate::a::A) {}";
        assert_eq!(circles(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]), [["a", "b"]]);
        assert_eq!(circles(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "pub struct B;")]), NONE);
    }

    #[test]
    fn a_parent_and_its_children_may_form_a_circle() {
        let parent = "mod child; pub use child::Child; pub struct Shared; fn f() { child::g() }";
        let child = "use super::Shared; pub struct Child(Shared); pub fn g() {}";
        assert_eq!(circles(&[("lib.rs", "mod a;"), ("a/mod.rs", parent), ("a/child.rs", child)]), NONE);
    }

    #[test]
    fn siblings_may_not_form_a_circle_through_re_exports_of_their_parent() {
        let parent = "mod x; mod y; pub use x::X; pub use y::*;";
        let files =
            [("a.rs", parent), ("a/x.rs", "use super::Y; pub struct X;"), ("a/y.rs", "pub struct Y(super::X);")];
        assert_eq!(circles(&[&[("lib.rs", "mod a;")][..], &files].concat()), [["a::x", "a::y"]]);
    }

    #[test]
    fn an_import_from_the_parent_that_is_private_is_followed() {
        let parent = "mod x; mod y; use x::X;";
        let files =
            [("a.rs", parent), ("a/x.rs", "use super::y::Y; pub struct X;"), ("a/y.rs", "pub struct Y(super::X);")];
        assert_eq!(circles(&[&[("lib.rs", "mod a;")][..], &files].concat()), [["a::x", "a::y"]]);
    }

    #[test]
    fn a_child_that_an_outside_module_uses_and_that_uses_it_is_a_circle() {
        let files = [("lib.rs", "mod a; mod b;"), ("a.rs", "pub mod x;"), ("a/x.rs", "pub struct X(crate::b::B);")];
        let b = ("b.rs", "pub struct B; use crate::a::x; fn f() -> x::X { todo!() }");
        assert_eq!(circles(&[&files[..], &[b]].concat()), [["a::x", "b"]]);
    }

    #[test]
    fn tests_comments_strings_and_visibilities_do_not_count() {
        let a = "use crate::b::B; pub(in crate::b) struct A; // crate::b::B";
        let b = "pub struct B; const S: &str = \"crate::a::A\"; #[cfg(test)] mod tests { use crate::a::A; }";
        assert_eq!(circles(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]), NONE);
        let tests = ("b/tests.rs", "use crate::a::A;");
        assert_eq!(circles(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "pub struct B;"), tests]), NONE);
    }

    #[test]
    fn groups_and_other_names_in_imports_are_followed() {
        let a = "use crate::{b::{self as bee, B as Renamed}, c}; pub struct A; fn f() { c::g() }";
        let c = "use super::a::{A}; pub fn g() {}";
        let files = [("lib.rs", "mod a; mod b; mod c;"), ("a.rs", a), ("b.rs", "pub struct B;"), ("c.rs", c)];
        assert_eq!(circles(&files), [["a", "c"]]);
    }
}
