//! From the paths that files name to the modules that define what is named.

use std::collections::{BTreeMap, BTreeSet};

use super::ModulePath;
use super::scan::{Import, Scan, scan};
use hoistway_workspace::repository::File;

/// A module uses an item of another one.
pub(super) struct Reference {
    pub(super) from: ModulePath,
    pub(super) to: ModulePath,
    /// The path as it is written.
    pub(super) path: String,
    pub(super) file: String,
    pub(super) line: usize,
}

/// The modules of a crate and what was found in each.
pub(super) struct Crate {
    modules: BTreeMap<ModulePath, (String, Scan)>,
}

/// The target of a path.
enum Target {
    Module(ModulePath),
    /// An item that this module defines.
    Item(ModulePath),
}

impl Crate {
    /// Reads the files of a crate; tests and further programs (`bin/`) are left out.
    pub(super) fn read(files: &[File], source: &str) -> Crate {
        let mut modules = BTreeMap::new();
        for file in files {
            if let Some(path) = file.path.strip_prefix(source).and_then(module_path) {
                modules.insert(path, (file.path.clone(), scan(&file.text)));
            }
        }
        Crate { modules }
    }

    /// All modules.
    pub(super) fn modules(&self) -> impl Iterator<Item = &ModulePath> {
        self.modules.keys()
    }

    /// All references between different modules.
    pub(super) fn references(&self) -> Vec<Reference> {
        let mut found = Vec::new();
        for (module, (file, scan)) in &self.modules {
            let mut add = |to: ModulePath, path: &[String], line: usize| {
                if to != *module {
                    found.push(Reference { from: module.clone(), to, path: path.join("::"), file: file.clone(), line });
                }
            };
            for import in &scan.imports {
                if let Some(to) = self.imported(module, import) {
                    add(to, &import.path, import.line);
                }
            }
            for (path, line) in &scan.paths {
                if let Some(Target::Item(to)) = self.resolve(module, path, &mut BTreeSet::new()) {
                    add(to, path, *line);
                }
            }
        }
        found
    }

    /// The module that an import depends on: none for a module, whose items count where they are
    /// named, and none for a re-export of a descendant.
    fn imported(&self, module: &ModulePath, import: &Import) -> Option<ModulePath> {
        let to = match self.resolve(module, &import.path, &mut BTreeSet::new())? {
            Target::Item(to) => to,
            Target::Module(to) if import.name == "*" => to,
            Target::Module(_) => return None,
        };
        (!(import.is_public && to.starts_with(module))).then_some(to)
    }

    /// Follows a path that is written in a module. None: it leads out of the crate.
    fn resolve(
        &self,
        module: &ModulePath,
        path: &[String],
        seen: &mut BTreeSet<(ModulePath, String)>,
    ) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Target::Module(Vec::new()),
            "self" => Target::Module(module.clone()),
            "super" => Target::Module(parent(module)),
            // The first word of a path is a name of this module, or another crate.
            name => self.name_in(module, name, seen)?,
        };
        while let (Target::Module(here), Some((next, after))) = (&at, rest.split_first()) {
            let found = match next.as_str() {
                "super" => Target::Module(parent(here)),
                "self" => Target::Module(here.clone()),
                // A name that no scan knows, for example one that a macro defines, belongs to the
                // module that is named.
                name => self.name_in(here, name, seen).unwrap_or_else(|| Target::Item(here.clone())),
            };
            (at, rest) = (found, after);
        }
        Some(at)
    }

    /// What a name is in a module: a child, an item, or an import.
    fn name_in(&self, module: &ModulePath, name: &str, seen: &mut BTreeSet<(ModulePath, String)>) -> Option<Target> {
        if !seen.insert((module.clone(), name.to_owned())) {
            return None;
        }
        let mut child = module.clone();
        child.push(name.to_owned());
        if self.modules.contains_key(&child) {
            return Some(Target::Module(child));
        }
        let (_, scan) = self.modules.get(module)?;
        if scan.items.iter().any(|item| item == name) {
            return Some(Target::Item(module.clone()));
        }
        if let Some(import) = scan.imports.iter().find(|import| import.name == name) {
            return self.resolve(module, &import.path, seen);
        }
        let globs = scan.imports.iter().filter(|import| import.name == "*");
        globs.filter(|import| import.path.first().is_some_and(|first| first != name)).find_map(|import| {
            match self.resolve(module, &import.path, seen)? {
                Target::Module(below) => self.name_in(&below, name, seen),
                Target::Item(_) => None,
            }
        })
    }
}

fn parent(module: &ModulePath) -> ModulePath {
    module.split_last().map_or_else(Vec::new, |(_, above)| above.to_vec())
}

/// The module of a file by its path below `src`; None for tests and further programs.
fn module_path(file: &str) -> Option<ModulePath> {
    let mut words: Vec<String> = file.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    let is_test = words.iter().any(|word| word == "tests");
    if is_test || words.first().is_some_and(|word| word == "bin") {
        return None;
    }
    if words.last().is_some_and(|word| word == "mod")
        || words.len() == 1 && ["lib", "main"].contains(&words[0].as_str())
    {
        words.pop();
    }
    Some(words)
}
