//! What the file system has promised to the processes, and what must hold therefore.

use std::collections::BTreeMap;
use std::ops::Range;

use super::file_system::{Image, Key, Names};
use super::inode::Pages;

/// A file system and a file on it.
pub(super) type FileId = (u64, Key);

/// The promises of all file systems.
#[derive(Debug, Default)]
pub(super) struct Judge {
    files: BTreeMap<FileId, Promises>,
    directories: BTreeMap<u64, History>,
}

/// The promises about a file.
#[derive(Debug, Default)]
struct Promises {
    /// For each page the oldest write that may be there after a power failure.
    durable: Vec<u64>,
    /// For each page the oldest write that may be in the page cache.
    acknowledged: Vec<u64>,
    /// For each page whose write-back has failed the last write that is lost. A sync promises later
    /// writes only, even if one of them reaches the disk while the sync runs.
    lost: BTreeMap<usize, u64>,
    /// Pages that are there once the file has replaced another: the number of the change of names,
    /// and the write.
    replacing: BTreeMap<usize, (usize, u64)>,
    /// The number of errors when a handle last reported one by a sync, and by any request.
    reported: usize,
    excused: usize,
}

/// The names of a directory since the last power failure.
#[derive(Debug, Default)]
struct History {
    first: Names,
    changes: Vec<NameChange>,
    /// The number of changes that are durable.
    durable: usize,
}

/// A change of a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum NameChange {
    /// A file was created.
    Added(u64, Key),
    /// The file of the first name got the second name.
    Renamed(u64, u64, Key),
    /// A name was removed from its file.
    Removed(u64, Key),
}

/// What a sync that begins now has to make durable.
pub(super) struct SyncScope {
    pages: Pages,
    /// The number of changes of names.
    names: usize,
}

fn raise(numbers: &mut Vec<u64>, page: usize, number: u64) {
    if numbers.len() <= page {
        numbers.resize(page + 1, 0);
    }
    numbers[page] = numbers[page].max(number);
}

impl Judge {
    /// Begins with the names of a directory.
    pub fn add_directory(&mut self, device: u64, names: Names) {
        self.directories.insert(device, History { first: names, ..History::default() });
    }

    fn file(&mut self, file: FileId) -> &mut Promises {
        self.files.entry(file).or_default()
    }

    /// Records a write that was acknowledged.
    pub fn note_acknowledged(&mut self, file: FileId, pages: Range<usize>, number: u64) {
        let promises = self.file(file);
        pages.for_each(|page| raise(&mut promises.acknowledged, page, number));
    }

    /// Records a synchronous write that was acknowledged.
    pub fn note_durable(&mut self, file: FileId, pages: Range<usize>, number: u64) {
        let promises = self.file(file);
        pages.for_each(|page| raise(&mut promises.durable, page, number));
    }

    /// Records that a write of pages has failed.
    pub fn note_lost(&mut self, file: FileId, pages: &[(usize, u64)]) {
        let promises = self.file(file);
        for (page, number) in pages {
            promises.lost.insert(*page, *number);
            promises.replacing.remove(page);
            if let Some(durable) = promises.durable.get_mut(*page) {
                *durable = 0;
            }
        }
    }

    /// Records a change of a name.
    pub fn note_name(&mut self, device: u64, change: NameChange) {
        if let Some(history) = self.directories.get_mut(&device) {
            history.changes.push(change);
        }
    }

    /// Records that a file replaces another while it has these unwritten pages.
    pub fn note_replacing(&mut self, file: FileId, unwritten: Vec<(usize, u64)>) {
        let change = self.name_changes(file.0);
        self.file(file).replacing.extend(unwritten.into_iter().map(|(page, number)| (page, (change, number))));
    }

    /// Returns what a sync of a file that begins now has to make durable.
    pub fn scope(&self, file: FileId, pages: Pages) -> SyncScope {
        let changes = self.directories.get(&file.0).map_or(&[][..], |history| &history.changes);
        let names = changes.iter().rposition(|change| change.file() == file.1).map_or(0, |at| at + 1);
        SyncScope { pages, names }
    }

    /// Records the success of a sync; `only_data`: of fdatasync(2).
    pub fn note_synced(&mut self, file: FileId, scope: &SyncScope, only_data: bool) {
        let promises = self.file(file);
        for page in 0..scope.pages.len().max(promises.durable.len()) {
            let number = scope.pages.at(page);
            if promises.lost.get(&page).is_none_or(|lost| *lost < number) {
                raise(&mut promises.durable, page, number);
            }
        }
        if !only_data {
            self.note_names_synced(file.0, scope.names);
        }
    }

    /// Returns the number of changes of names so far.
    pub fn name_changes(&self, device: u64) -> usize {
        self.directories.get(&device).map_or(0, |history| history.changes.len())
    }

    /// Records that the first changes of names are durable.
    pub fn note_names_synced(&mut self, device: u64, changes: usize) {
        if let Some(history) = self.directories.get_mut(&device) {
            history.durable = history.durable.max(changes);
        }
    }

    /// Returns the numbers of errors of a file that a new handle must not, and need not, report.
    pub fn reported(&self, file: FileId) -> (usize, usize) {
        self.files.get(&file).map_or((0, 0), |promises| (promises.reported, promises.excused))
    }

    /// Records that a handle reports the last of these errors, by a sync or another request.
    pub fn note_reported(&mut self, file: FileId, errors: usize, is_sync: bool) {
        let promises = self.file(file);
        promises.excused = errors;
        promises.reported = if is_sync { errors } else { promises.reported };
    }

    /// Checks what a power failure leaves.
    pub fn check(&self, device: u64, image: &Image) -> Result<(), String> {
        let changes = self.directories.get(&device).map_or(Ok(0), |history| history.check(&image.names))?;
        for (key, found) in &image.files {
            let Some(promises) = self.files.get(&(device, *key)) else { continue };
            let replacing = promises.replacing.iter().filter(|(_, (change, _))| *change <= changes);
            let replacing = replacing.map(|(page, (_, number))| (*page, *number, "replaced a file with"));
            let synced = promises.durable.iter().enumerate().map(|(page, number)| (page, *number, "synced"));
            for (page, number, what) in synced.chain(replacing) {
                if found.at(page) < number {
                    return Err(format!(
                        "after a power failure page {page} of file {device}:{key} is of write {}; it {what} write {number}",
                        found.at(page)
                    ));
                }
            }
        }
        Ok(())
    }

    /// Continues after a power failure.
    pub fn restart(&mut self, device: u64, image: &Image) {
        self.add_directory(device, image.names.clone());
        self.files.retain(|file, _| file.0 != device || image.files.contains_key(&file.1));
        for (_, promises) in self.files.iter_mut().filter(|(file, _)| file.0 == device) {
            let durable = std::mem::take(&mut promises.durable);
            *promises = Promises { durable, ..Promises::default() };
        }
    }

    /// Checks that the page cache has every write that was acknowledged.
    pub fn check_cache(&self, file: FileId, pages: &Pages) -> Result<(), String> {
        let acknowledged = self.files.get(&file).map_or(&[][..], |promises| &promises.acknowledged);
        match acknowledged.iter().enumerate().find(|(page, number)| pages.at(*page) < **number) {
            Some((page, number)) => Err(format!(
                "page {page} of file {}:{} is of write {} in the page cache; write {number} was acknowledged",
                file.0,
                file.1,
                pages.at(page)
            )),
            None => Ok(()),
        }
    }
}

impl NameChange {
    /// Returns the file that has or had the name.
    fn file(self) -> Key {
        let (NameChange::Added(_, key) | NameChange::Renamed(_, _, key) | NameChange::Removed(_, key)) = self;
        key
    }

    fn apply(self, names: &mut Names) {
        match self {
            NameChange::Added(name, key) => drop(names.insert(name, key)),
            NameChange::Renamed(from, to, key) => {
                names.remove(&from);
                names.insert(to, key);
            }
            NameChange::Removed(name, _) => drop(names.remove(&name)),
        }
    }
}

impl History {
    /// Checks that the names are those after one of the changes that are not yet durable. Returns
    /// the number of changes.
    fn check(&self, found: &Names) -> Result<usize, String> {
        let mut names = self.first.clone();
        for (at, change) in self.changes.iter().enumerate() {
            if at >= self.durable && names == *found {
                return Ok(at);
            }
            change.apply(&mut names);
        }
        if names == *found {
            return Ok(self.changes.len());
        }
        Err(format!(
            "after a power failure the names are {found:?}: not a state after {} or more of {:?} from {:?}",
            self.durable, self.changes, self.first
        ))
    }
}
