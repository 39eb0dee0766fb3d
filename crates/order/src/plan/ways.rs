//! In which order programs come by files.

use std::collections::BTreeSet;

use super::Step;
use crate::tree::{Id, Kind, Tree};

/// What is done in two passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passes {
    /// Directories and inodes.
    pub metadata: Vec<Step>,
    /// What is in the files.
    pub data: Vec<Step>,
}

/// As `tar` does: directory by directory from the top down, and for each name in it the inode and what is in it; names in the order in which the directory
/// has them, or (`--sort=inode`) by inode.
pub fn as_tar(tree: &Tree, by_inode: bool) -> Vec<Step> {
    let children = Children::of(tree, by_inode);
    let mut steps = Vec::with_capacity(tree.len() * 2);
    let mut left: Vec<Id> = children.tops.iter().rev().copied().collect();
    while let Some(id) = left.pop() {
        steps.push(Step::Stat(id));
        match tree.entry(id).kind {
            Kind::Directory => {
                steps.push(Step::List(id));
                left.extend(children.below(id).iter().rev());
            }
            Kind::File => steps.push(Step::Data(id)),
            _ => {}
        }
    }
    steps
}

/// As `tar --no-recursion -T LIST` does, with a list of files that `find` and `sort` have made: first the directories from the top down, then each file's inode and what is
/// in it, in the order of the list.
pub fn as_listed(tree: &Tree, files: impl IntoIterator<Item = Id>) -> Vec<Step> {
    let mut steps: Vec<Step> = as_tar(tree, false);
    let is_directory = |id: Id| tree.entry(id).kind == Kind::Directory;
    steps.retain(|step| matches!(step, Step::Stat(id) | Step::List(id) if is_directory(*id)));
    steps.extend(files.into_iter().flat_map(|id| [Step::Stat(id), Step::Data(id)]));
    steps
}

/// In two passes: directories by inode number in one-way sweeps, those that are discovered on the way among them, then all other inodes by number; then what is in the
/// files, in the order of `files`.
pub fn in_passes(tree: &Tree, files: impl IntoIterator<Item = Id>) -> Passes {
    let children = Children::of(tree, true);
    let is_directory = |id: &Id| tree.entry(*id).kind == Kind::Directory;
    let waiting = |ids: &[Id]| -> Vec<(u64, Id)> {
        ids.iter().filter(|id| is_directory(id)).map(|id| (tree.entry(*id).inode, *id)).collect()
    };
    let mut directories: BTreeSet<(u64, Id)> = waiting(&children.tops).into_iter().collect();
    let mut metadata = Vec::with_capacity(tree.len() * 2);
    let mut at = 0;
    while let Some(next) = directories.iter().find(|(inode, _)| *inode >= at).or(directories.first()).copied() {
        directories.remove(&next);
        at = next.0;
        metadata.extend([Step::Stat(next.1), Step::List(next.1)]);
        directories.extend(waiting(children.below(next.1)));
    }
    let mut others: Vec<(u64, Id)> =
        tree.ids().filter(|id| !is_directory(id)).map(|id| (tree.entry(id).inode, id)).collect();
    others.sort_unstable();
    metadata.extend(others.into_iter().map(|(_, id)| Step::Stat(id)));
    Passes { metadata, data: files.into_iter().map(Step::Data).collect() }
}

/// What lies in each directory.
struct Children {
    /// What lies in none: the paths that were asked for.
    tops: Vec<Id>,
    /// All others, those of a directory together.
    ids: Vec<Id>,
    /// Where those of each directory begin, and one more.
    begins: Vec<usize>,
}

impl Children {
    fn of(tree: &Tree, by_inode: bool) -> Children {
        let (mut ids, mut tops): (Vec<Id>, Vec<Id>) = tree.ids().partition(|id| tree.entry(*id).parent.is_some());
        // Sorting is stable: what is found first stays first.
        let parent = |id: &Id| tree.entry(*id).parent;
        if by_inode {
            let inode = |id: &Id| tree.entry(*id).inode;
            tops.sort_by_key(inode);
            ids.sort_by_key(|id| (parent(id), inode(id)));
        } else {
            ids.sort_by_key(parent);
        }
        let mut begins = Vec::with_capacity(tree.len() + 1);
        for id in tree.ids() {
            let from = begins.last().copied().unwrap_or(0);
            begins.push(from + ids[from..].iter().take_while(|child| parent(child) < Some(id)).count());
        }
        begins.push(ids.len());
        Children { tops, ids, begins }
    }

    fn below(&self, id: Id) -> &[Id] {
        &self.ids[self.begins[id.index()]..self.begins[id.index() + 1]]
    }
}
