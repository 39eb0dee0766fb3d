//! What a walk found, kept small.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// One name in a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u32);

impl Id {
    /// The first that a tree has.
    pub(crate) const FIRST: Id = Id(0);

    /// Its number: the how manieth was added, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device with blocks.
    BlockDevice,
    /// A device with characters.
    CharacterDevice,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

/// Where the data of a file begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// No data on the disk: an empty file, one of holes alone, what is no regular file; or data within the inode.
    Nowhere,
    /// The first byte on the file system's device.
    At(u64),
    /// The file system does not tell, or nobody has asked.
    Unknown,
}

/// An entry as it is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The directory it was found in; `None` for what was asked for itself.
    pub parent: Option<Id>,
    /// What it is.
    pub kind: Kind,
    /// The number of its inode.
    pub inode: u64,
    /// The number of its file system (`st_dev`).
    pub device: u64,
    /// Where its data begin.
    pub place: Place,
}

/// No more names can be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeFull {
    /// More than 2^32 - 2 names.
    #[error("there are more than 4,294,967,294 names: take a part of the tree at a time")]
    Names,
    /// More than 4 GiB of names.
    #[error("the names are longer than 4 GiB together: take a part of the tree at a time")]
    Bytes,
    /// More than 65,536 file systems.
    #[error("there are more than 65,536 file systems under these paths: take a part of them at a time")]
    Devices,
    /// A name longer than 65,535 bytes: a path that was asked for.
    #[error("a path of {length} bytes: at most 65,535 are kept")]
    Name {
        /// Its length.
        length: usize,
    },
}

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// None: a link is listed as what it is.
    #[default]
    Never,
    /// Those among the paths that were asked for.
    Arguments,
    /// All.
    Always,
}

/// All names under the paths that were asked for: 40 bytes each and the name's own.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    entries: Vec<Kept>,
    /// All names, one behind the other.
    names: Vec<u8>,
    devices: Vec<u64>,
    /// From which name on paths begin where, and links are followed how; rising.
    since: Vec<Since>,
}

/// How names are reached, from one on.
#[derive(Clone, Debug)]
struct Since {
    first: u32,
    base: Option<Arc<OwnedFd>>,
    follow: Follow,
}

/// An entry as it is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    inode: u64,
    /// [`UNKNOWN`], [`NOWHERE`] or the first byte.
    place: u64,
    name_begins: u32,
    parent: u32,
    name_length: u16,
    device: u16,
    kind: Kind,
}

const _: () = assert!(size_of::<Kept>() <= 40, "docs tell that a file takes 40 bytes and its name");

const NO_PARENT: u32 = u32::MAX;
const UNKNOWN: u64 = u64::MAX;
const NOWHERE: u64 = u64::MAX - 1;

impl Tree {
    /// A tree of nothing.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All names, in the order in which they were found.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = Id> + ExactSizeIterator + use<> {
        (0..self.entries.len() as u32).map(Id)
    }

    /// How many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Kept>() + self.names.capacity()
    }

    /// The file systems, in the order in which they were met.
    pub fn devices(&self) -> &[u64] {
        &self.devices
    }

    /// From the next name on, relative paths begin in the directory `base` (`None`: in the working directory), and links are followed like
    /// this. A walk calls it.
    pub fn reach(&mut self, base: Option<Arc<OwnedFd>>, follow: Follow) {
        self.since.push(Since { first: self.entries.len() as u32, base, follow });
    }

    /// The directory in which the path of `id` begins, if it is not the working directory.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn base(&self, id: Id) -> Option<BorrowedFd<'_>> {
        self.reached(id)?.base.as_deref().map(AsFd::as_fd)
    }

    /// Whether `id`, if it is a symbolic link, stands for what it leads to.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn is_followed(&self, id: Id) -> bool {
        match self.reached(id).map_or(Follow::Never, |since| since.follow) {
            Follow::Never => false,
            Follow::Arguments => self.entries[id.index()].parent == NO_PARENT,
            Follow::Always => true,
        }
    }

    fn reached(&self, id: Id) -> Option<&Since> {
        let after = self.since.partition_point(|since| since.first <= id.0);
        self.since.get(after.checked_sub(1)?)
    }

    /// Adds a name; `parent` is the directory it lies in, and `None` stands before a path that was asked for. Its place is
    /// [`Place::Unknown`] for a regular file and [`Place::Nowhere`] for everything else.
    ///
    /// # Errors
    /// [`TreeFull`]; the tree is as it was.
    pub fn add(
        &mut self,
        parent: Option<Id>,
        name: &OsStr,
        kind: Kind,
        inode: u64,
        device: u64,
    ) -> Result<Id, TreeFull> {
        let length = name.len();
        let name_length = u16::try_from(length).map_err(|_| TreeFull::Name { length })?;
        let name_begins = u32::try_from(self.names.len()).map_err(|_| TreeFull::Bytes)?;
        let id = u32::try_from(self.entries.len()).ok().filter(|id| *id < NO_PARENT).ok_or(TreeFull::Names)?;
        let device = self.device_number(device)?;
        let place = if kind == Kind::File { UNKNOWN } else { NOWHERE };
        self.names.extend_from_slice(name.as_bytes());
        let parent = parent.map_or(NO_PARENT, |parent| parent.0);
        self.entries.push(Kept { inode, place, name_begins, parent, name_length, device, kind });
        Ok(Id(id))
    }

    /// What is known of a name.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn entry(&self, id: Id) -> Entry {
        let kept = &self.entries[id.index()];
        Entry {
            parent: (kept.parent != NO_PARENT).then_some(Id(kept.parent)),
            kind: kept.kind,
            inode: kept.inode,
            device: self.devices[kept.device as usize],
            place: match kept.place {
                UNKNOWN => Place::Unknown,
                NOWHERE => Place::Nowhere,
                at => Place::At(at),
            },
        }
    }

    /// Tells which file it really is, where a directory did not: what a directory says of a mounted one is the number of what lies under it.
    ///
    /// # Errors
    /// [`TreeFull::Devices`]; the tree is as it was.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn set_identity(&mut self, id: Id, inode: u64, device: u64) -> Result<(), TreeFull> {
        let device = self.device_number(device)?;
        let kept = &mut self.entries[id.index()];
        (kept.inode, kept.device) = (inode, device);
        Ok(())
    }

    /// Sets where its data begin.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn set_place(&mut self, id: Id, place: Place) {
        self.entries[id.index()].place = match place {
            Place::Unknown => UNKNOWN,
            Place::Nowhere => NOWHERE,
            Place::At(at) => at.min(NOWHERE - 1),
        };
    }

    /// The last part of its path; the path itself for what was asked for.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn name(&self, id: Id) -> &OsStr {
        let kept = &self.entries[id.index()];
        let begins = kept.name_begins as usize;
        OsStr::from_bytes(&self.names[begins..begins + kept.name_length as usize])
    }

    /// Puts its path into `path`, from the path that was asked for down: as `find` would print it.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn path_into(&self, id: Id, path: &mut Vec<u8>) {
        path.clear();
        self.append_path(id, path);
    }

    /// Forgets all names but these and the directories above them, and answers what these are now called. `keep` rises, as [`Tree::ids`]
    /// does. Directories come before what is in them, as before.
    ///
    /// # Panics
    /// If one of `keep` is another tree's.
    pub fn retain(&mut self, keep: &[Id]) -> Vec<Id> {
        let mut line: Vec<u32> = Vec::with_capacity(keep.len());
        let mut is_kept = rustc_hash::FxHashSet::default();
        for id in keep {
            let mut at = id.0;
            while at != NO_PARENT && is_kept.insert(at) {
                line.push(at);
                at = self.entries[at as usize].parent;
            }
        }
        line.sort_unstable();
        let now = |old: u32| line.binary_search(&old).map_or(NO_PARENT, |place| place as u32);
        let mut names = Vec::new();
        let mut entries = Vec::with_capacity(line.len());
        for old in &line {
            let mut kept = self.entries[*old as usize];
            let name = self.name(Id(*old)).as_bytes();
            kept.name_begins = names.len() as u32;
            names.extend_from_slice(name);
            if kept.parent != NO_PARENT {
                kept.parent = now(kept.parent);
            }
            entries.push(kept);
        }
        for since in &mut self.since {
            since.first = line.partition_point(|old| *old < since.first) as u32;
        }
        let called = keep.iter().map(|id| Id(now(id.0))).collect();
        (self.entries, self.names) = (entries, names);
        called
    }

    /// Writes a path from its end towards its beginning, into room of its length: nothing else is allocated.
    fn append_path(&self, id: Id, path: &mut Vec<u8>) {
        let begins = path.len();
        path.resize(begins + self.path_length(id), 0);
        let mut end = path.len();
        let mut at = id;
        loop {
            let name = self.name(at).as_bytes();
            path[end - name.len()..end].copy_from_slice(name);
            end -= name.len();
            let Some(parent) = self.parent(at) else { return };
            if self.name(parent).as_bytes().last() != Some(&b'/') {
                end -= 1;
                path[end] = b'/';
            }
            at = parent;
        }
    }

    fn path_length(&self, id: Id) -> usize {
        let mut at = id;
        let mut length = self.name(at).len();
        while let Some(parent) = self.parent(at) {
            let name = self.name(parent).as_bytes();
            length += name.len() + usize::from(name.last() != Some(&b'/'));
            at = parent;
        }
        length
    }

    /// The directory that it was found in; `None` for what was asked for itself.
    ///
    /// # Panics
    /// If `id` is another tree's.
    pub fn parent(&self, id: Id) -> Option<Id> {
        let parent = self.entries[id.index()].parent;
        (parent != NO_PARENT).then_some(Id(parent))
    }

    /// Its place among [`Tree::devices`].
    pub(crate) fn device_index(&self, id: Id) -> u16 {
        self.entries[id.index()].device
    }

    fn device_number(&mut self, device: u64) -> Result<u16, TreeFull> {
        // What was added last is nearly always on the same file system.
        let place = self.devices.iter().rposition(|known| *known == device);
        let place = place.unwrap_or(self.devices.len());
        let number = u16::try_from(place).map_err(|_| TreeFull::Devices)?;
        if place == self.devices.len() {
            self.devices.push(device);
        }
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_what_was_asked_for_and_all_names_below() {
        let mut tree = Tree::new();
        let top = tree.add(None, OsStr::new("a/b/"), Kind::Directory, 2, 7).unwrap();
        let folder = tree.add(Some(top), OsStr::new("c"), Kind::Directory, 11, 7).unwrap();
        let file = tree.add(Some(folder), OsStr::from_bytes(b"\xff"), Kind::File, 12, 7).unwrap();
        let mut path = Vec::new();
        tree.path_into(file, &mut path);
        assert_eq!(path, b"a/b/c/\xff");
        tree.path_into(top, &mut path);
        assert_eq!(path, b"a/b/");
        assert_eq!(tree.name(folder), "c");
    }

    #[test]
    fn a_root_of_a_slash_is_not_doubled() {
        let mut tree = Tree::new();
        let top = tree.add(None, OsStr::new("/"), Kind::Directory, 2, 7).unwrap();
        let file = tree.add(Some(top), OsStr::new("vmlinuz"), Kind::File, 12, 7).unwrap();
        let mut path = Vec::new();
        tree.path_into(file, &mut path);
        assert_eq!(path, b"/vmlinuz");
    }

    #[test]
    fn places_and_devices_are_kept() {
        let mut tree = Tree::new();
        let one = tree.add(None, OsStr::new("one"), Kind::File, 3, 100).unwrap();
        let two = tree.add(None, OsStr::new("two"), Kind::Fifo, 4, 200).unwrap();
        assert_eq!(tree.entry(one).place, Place::Unknown);
        assert_eq!(tree.entry(two).place, Place::Nowhere);
        tree.set_place(one, Place::At(4096));
        assert_eq!((tree.entry(one).place, tree.entry(one).device), (Place::At(4096), 100));
        assert_eq!((tree.entry(two).inode, tree.entry(two).device), (4, 200));
    }

    #[test]
    fn what_is_retained_keeps_its_path_and_its_place() {
        let mut tree = Tree::new();
        tree.reach(None, Follow::Always);
        let top = tree.add(None, OsStr::new("top"), Kind::Directory, 2, 7).unwrap();
        tree.add(Some(top), OsStr::new("gone"), Kind::File, 3, 7).unwrap();
        let folder = tree.add(Some(top), OsStr::new("folder"), Kind::Directory, 4, 7).unwrap();
        tree.add(Some(folder), OsStr::new("also gone"), Kind::File, 5, 7).unwrap();
        let file = tree.add(Some(folder), OsStr::new("file"), Kind::File, 6, 8).unwrap();
        tree.set_place(file, Place::At(512));
        let now = tree.retain(&[folder, file]);
        let mut path = Vec::new();
        tree.path_into(now[1], &mut path);
        assert_eq!((tree.len(), path.as_slice()), (3, b"top/folder/file".as_slice()));
        let entry = tree.entry(now[1]);
        assert_eq!((entry.parent, entry.place, entry.device), (Some(now[0]), Place::At(512), 8));
        assert!(tree.is_followed(now[1]));
    }

    #[test]
    fn a_name_that_is_too_long_is_refused() {
        let mut tree = Tree::new();
        let name = "x".repeat(65_536);
        assert_eq!(tree.add(None, OsStr::new(&name), Kind::File, 1, 1), Err(TreeFull::Name { length: 65_536 }));
        assert!(tree.is_empty());
    }
}
