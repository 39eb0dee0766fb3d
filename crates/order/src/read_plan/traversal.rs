//! The orders in which programs read a tree.

use std::collections::BTreeSet;

use super::ReadStep;
use crate::tree::{EntryId, FileKind, Tree};

/// The steps of a program that reads metadata first and data second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TwoPassSteps {
    /// Directories and inodes.
    pub metadata: Vec<ReadStep>,
    /// File data.
    pub data: Vec<ReadStep>,
}

/// Returns the steps of `tar`: directories from the top down, and for each name its inode and its
/// data. Names are in directory order, or sorted by inode (`--sort=inode`).
pub fn tar_steps(tree: &Tree, by_inode: bool) -> Vec<ReadStep> {
    let children = Children::of(tree, by_inode);
    let mut steps = Vec::with_capacity(tree.len() * 2);
    let mut pending: Vec<EntryId> = children.tops.iter().rev().copied().collect();
    while let Some(id) = pending.pop() {
        steps.push(ReadStep::Stat(id));
        match tree.entry(id).kind {
            FileKind::Directory => {
                steps.push(ReadStep::List(id));
                pending.extend(children.below(id).iter().rev());
            }
            FileKind::File => steps.push(ReadStep::Data(id)),
            _ => {}
        }
    }
    steps
}

/// Returns the steps of `tar --no-recursion -T LIST` after `find`: all directories from the top
/// down, then inode and data of each file of the list.
pub fn listed_steps(tree: &Tree, files: impl IntoIterator<Item = EntryId>) -> Vec<ReadStep> {
    let mut steps: Vec<ReadStep> = tar_steps(tree, false);
    let is_directory = |id: EntryId| tree.entry(id).kind == FileKind::Directory;
    steps.retain(|step| matches!(step, ReadStep::Stat(id) | ReadStep::List(id) if is_directory(*id)));
    steps.extend(files.into_iter().flat_map(|id| [ReadStep::Stat(id), ReadStep::Data(id)]));
    steps
}

/// Returns the steps of a two-pass program. The first pass reads directories in one-way sweeps of
/// inode numbers, then all other inodes by number. The second pass reads the data of `files` in the
/// given order.
pub fn two_pass_steps(tree: &Tree, files: impl IntoIterator<Item = EntryId>) -> TwoPassSteps {
    let children = Children::of(tree, true);
    let is_directory = |id: &EntryId| tree.entry(*id).kind == FileKind::Directory;
    let waiting = |ids: &[EntryId]| -> Vec<(u64, EntryId)> {
        ids.iter().filter(|id| is_directory(id)).map(|id| (tree.entry(*id).inode, *id)).collect()
    };
    let mut directories: BTreeSet<(u64, EntryId)> = waiting(&children.tops).into_iter().collect();
    let mut metadata = Vec::with_capacity(tree.len() * 2);
    let mut at = 0;
    while let Some(next) = directories.iter().find(|(inode, _)| *inode >= at).or(directories.first()).copied() {
        directories.remove(&next);
        at = next.0;
        metadata.extend([ReadStep::Stat(next.1), ReadStep::List(next.1)]);
        directories.extend(waiting(children.below(next.1)));
    }
    let mut others: Vec<(u64, EntryId)> =
        tree.ids().filter(|id| !is_directory(id)).map(|id| (tree.entry(id).inode, id)).collect();
    others.sort_unstable();
    metadata.extend(others.into_iter().map(|(_, id)| ReadStep::Stat(id)));
    TwoPassSteps { metadata, data: files.into_iter().map(ReadStep::Data).collect() }
}

/// The contents of all directories.
struct Children {
    /// The roots.
    tops: Vec<EntryId>,
    /// All other entries, grouped by parent.
    ids: Vec<EntryId>,
    /// Start of each directory's group, and the end of the last one.
    begins: Vec<usize>,
}

impl Children {
    fn of(tree: &Tree, by_inode: bool) -> Children {
        let (mut ids, mut tops): (Vec<EntryId>, Vec<EntryId>) =
            tree.ids().partition(|id| tree.entry(*id).parent.is_some());
        // The sort is stable, so that discovery order is kept within a directory.
        let parent = |id: &EntryId| tree.entry(*id).parent;
        if by_inode {
            let inode = |id: &EntryId| tree.entry(*id).inode;
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

    fn below(&self, id: EntryId) -> &[EntryId] {
        &self.ids[self.begins[id.index()]..self.begins[id.index() + 1]]
    }
}
