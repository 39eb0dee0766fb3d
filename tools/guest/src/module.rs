//! Insertion of modules with those that they need.

use std::collections::BTreeMap;
use std::io;

use crate::plan::ModuleFile;
use crate::{Outcome, system};

/// The modules of the initial RAM disk.
#[derive(Clone, Debug, Default)]
pub struct Modules {
    files: BTreeMap<String, ModuleFile>,
}

impl Modules {
    /// Creates the table from the files of a plan.
    pub fn new(files: BTreeMap<String, ModuleFile>) -> Modules {
        Modules { files }
    }

    /// Returns true if the initial RAM disk has the module.
    pub fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Inserts a module after those that it needs. A module without a file is part of the kernel's
    /// image, or the kernel lacks it: the caller finds out by its device.
    pub fn insert(&self, name: &str, parameters: &str) -> Outcome<()> {
        for needed in self.order(name) {
            let Some(file) = self.files.get(&needed) else { continue };
            system::insert_module(&file.path, if needed == name { parameters } else { "" })?;
        }
        Ok(())
    }

    /// Inserts a module that needs no others, and returns the error of the kernel. One that is
    /// present already, and one without a file, are errors.
    pub fn try_insert(&self, name: &str, parameters: &str) -> io::Result<()> {
        let file = self.files.get(name).ok_or(io::ErrorKind::NotFound)?;
        system::try_insert_module(&file.path, parameters)
    }

    /// A module and those that it needs, each after those that it needs itself.
    fn order(&self, name: &str) -> Vec<String> {
        let mut order = Vec::new();
        self.visit(name, &mut Vec::new(), &mut order);
        order
    }

    fn visit(&self, name: &str, path: &mut Vec<String>, order: &mut Vec<String>) {
        if order.iter().any(|known| known == name) || path.iter().any(|known| known == name) {
            return;
        }
        path.push(name.to_owned());
        for needed in self.files.get(name).into_iter().flat_map(|file| &file.needs) {
            self.visit(needed, path, order);
        }
        path.pop();
        order.push(name.to_owned());
    }
}

/// Returns true if a module is inserted.
pub fn is_inserted(name: &str) -> bool {
    system::read("/proc/modules").is_ok_and(|text| text.lines().any(|line| line.split(' ').next() == Some(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_inserted_after_those_that_it_needs() {
        let file = |needs: &[&str]| ModuleFile {
            path: String::new(),
            needs: needs.iter().map(|name| (*name).to_owned()).collect(),
        };
        let files = [("blk", file(&["virtio", "ring"])), ("virtio", file(&["ring"])), ("ring", file(&[]))];
        let modules = Modules::new(files.into_iter().map(|(name, file)| (name.to_owned(), file)).collect());
        assert_eq!(modules.order("blk"), ["ring", "virtio", "blk"]);
        assert_eq!(modules.order("absent"), ["absent"]);
    }
}
