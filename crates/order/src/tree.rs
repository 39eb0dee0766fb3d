//! Compact storage for the names that walks of directory trees find.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The index of an entry in a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId(u32);

impl EntryId {
    /// The first entry of a tree.
    pub(crate) const FIRST: EntryId = EntryId(0);

    /// Returns the number of the entry, from 0 in the order of addition.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A block device.
    BlockDevice,
    /// A character device.
    CharacterDevice,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
}

/// Where the data of a file begin on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Placement {
    /// The file has no data on the disk: it is empty, sparse without data, not a regular file, or
    /// its data are in the inode.
    NoData,
    /// Offset of the first data byte on the device of the file system.
    Offset(u64),
    /// The offset was not looked up, or the file system does not report it.
    Unknown,
}

/// The facts about one name of a [`Tree`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The directory that contains the name; `None` for a root.
    pub parent: Option<EntryId>,
    /// The type of the file.
    pub kind: FileKind,
    /// The inode number.
    pub inode: u64,
    /// The device number of the file system (`st_dev`).
    pub device: u64,
    /// Where the data of the file begin.
    pub placement: Placement,
}

/// The reason why a [`Tree`] cannot store another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeFull {
    /// The tree has 2^32 - 1 names.
    #[error("there are more than 4,294,967,295 names: list a part of the tree at a time")]
    Names,
    /// The names in the tree have 4 GiB together.
    #[error("the names are longer than 4 GiB together: list a part of the tree at a time")]
    Bytes,
    /// The tree has 65,536 file systems.
    #[error("there are more than 65,536 file systems below these paths: list a part of them at a time")]
    Devices,
    /// The path of a root is longer than 65,535 bytes.
    #[error("a path of {length} bytes is too long: the limit is 65,535 bytes")]
    Name {
        /// Length of the path in bytes.
        length: usize,
    },
}

/// Which symbolic links a walk follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FollowLinks {
    /// No links: each link is listed as a link.
    #[default]
    Never,
    /// The links among the roots.
    Arguments,
    /// All links.
    Always,
}

/// All names below the roots of one or more walks. A name needs 40 bytes and its own length.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    entries: Vec<PackedEntry>,
    /// All names, concatenated.
    names: Vec<u8>,
    devices: Vec<u64>,
    /// Base directories and followed links of ranges of entries, by ascending first entry.
    bases: Vec<BaseRange>,
}

/// The base directory and the followed links of all entries from `first` to the next range.
#[derive(Clone, Debug)]
struct BaseRange {
    first: u32,
    base: Option<Arc<OwnedFd>>,
    follow: FollowLinks,
}

/// The stored form of an [`Entry`].
#[derive(Clone, Copy, Debug)]
struct PackedEntry {
    inode: u64,
    /// [`UNKNOWN`], [`NO_DATA`] or the disk offset of the first data byte.
    placement: u64,
    name_begins: u32,
    parent: u32,
    name_length: u16,
    device: u16,
    kind: FileKind,
}

const _: () = assert!(size_of::<PackedEntry>() <= 40, "docs/order.md promises 40 bytes a name");

const NO_PARENT: u32 = u32::MAX;
const UNKNOWN: u64 = u64::MAX;
const NO_DATA: u64 = u64::MAX - 1;

impl Tree {
    /// Creates an empty tree.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if the tree has no names.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns all entries in the order of addition.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = EntryId> + ExactSizeIterator + use<> {
        (0..self.entries.len() as u32).map(EntryId)
    }

    /// Returns the memory use of the tree in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<PackedEntry>() + self.names.capacity()
    }

    /// Returns the device numbers of all file systems in the order of discovery.
    pub fn devices(&self) -> &[u64] {
        &self.devices
    }

    /// Sets the base directory and the followed links of all names that are added from now on.
    /// Relative paths start in `base`, or in the working directory if `base` is `None`. Each walk
    /// calls this once.
    pub fn set_base(&mut self, base: Option<Arc<OwnedFd>>, follow: FollowLinks) {
        self.bases.push(BaseRange { first: self.entries.len() as u32, base, follow });
    }

    /// Returns the directory in which the path of `id` starts; `None` for the working directory.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn base(&self, id: EntryId) -> Option<BorrowedFd<'_>> {
        self.base_range(id)?.base.as_deref().map(AsFd::as_fd)
    }

    /// Returns true if the walk follows the entry, should it be a symbolic link. The entry then
    /// represents the target of the link.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn is_followed(&self, id: EntryId) -> bool {
        match self.base_range(id).map_or(FollowLinks::Never, |range| range.follow) {
            FollowLinks::Never => false,
            FollowLinks::Arguments => self.entries[id.index()].parent == NO_PARENT,
            FollowLinks::Always => true,
        }
    }

    fn base_range(&self, id: EntryId) -> Option<&BaseRange> {
        let after = self.bases.partition_point(|range| range.first <= id.0);
        self.bases.get(after.checked_sub(1)?)
    }

    /// Adds a name. `parent` is the directory that contains the name; `None` makes the name a root.
    /// The placement becomes [`Placement::Unknown`] for a regular file and [`Placement::NoData`]
    /// for all other types.
    ///
    /// # Errors
    /// [`TreeFull`]; the tree is then unchanged.
    pub fn add(
        &mut self,
        parent: Option<EntryId>,
        name: &OsStr,
        kind: FileKind,
        inode: u64,
        device: u64,
    ) -> Result<EntryId, TreeFull> {
        let length = name.len();
        let name_length = u16::try_from(length).map_err(|_| TreeFull::Name { length })?;
        let name_begins = u32::try_from(self.names.len()).map_err(|_| TreeFull::Bytes)?;
        let id = u32::try_from(self.entries.len()).ok().filter(|id| *id < NO_PARENT).ok_or(TreeFull::Names)?;
        let device = self.intern_device(device)?;
        let placement = if kind == FileKind::File { UNKNOWN } else { NO_DATA };
        self.names.extend_from_slice(name.as_bytes());
        let parent = parent.map_or(NO_PARENT, |parent| parent.0);
        self.entries.push(PackedEntry { inode, placement, name_begins, parent, name_length, device, kind });
        Ok(EntryId(id))
    }

    /// Returns the facts about an entry.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn entry(&self, id: EntryId) -> Entry {
        let packed = &self.entries[id.index()];
        Entry {
            parent: (packed.parent != NO_PARENT).then_some(EntryId(packed.parent)),
            kind: packed.kind,
            inode: packed.inode,
            device: self.devices[packed.device as usize],
            placement: match packed.placement {
                UNKNOWN => Placement::Unknown,
                NO_DATA => Placement::NoData,
                at => Placement::Offset(at),
            },
        }
    }

    /// Replaces inode and device number of an entry. Needed for mount points, whose directory entry
    /// has the inode number of the covered directory.
    ///
    /// # Errors
    /// [`TreeFull::Devices`]; the tree is then unchanged.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn set_identity(&mut self, id: EntryId, inode: u64, device: u64) -> Result<(), TreeFull> {
        let device = self.intern_device(device)?;
        let packed = &mut self.entries[id.index()];
        (packed.inode, packed.device) = (inode, device);
        Ok(())
    }

    /// Sets where the data of a file begin.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn set_placement(&mut self, id: EntryId, placement: Placement) {
        self.entries[id.index()].placement = match placement {
            Placement::Unknown => UNKNOWN,
            Placement::NoData => NO_DATA,
            Placement::Offset(at) => at.min(NO_DATA - 1),
        };
    }

    /// Returns the last component of the path, or the whole path of a root.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn name(&self, id: EntryId) -> &OsStr {
        let packed = &self.entries[id.index()];
        let begins = packed.name_begins as usize;
        OsStr::from_bytes(&self.names[begins..begins + packed.name_length as usize])
    }

    /// Writes the path of an entry into `path`, starting with the path of its root, as `find`
    /// prints it.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn path_into(&self, id: EntryId, path: &mut Vec<u8>) {
        path.clear();
        self.append_path(id, path);
    }

    /// Removes all names except `keep` and the directories above them. Returns the new ids of
    /// `keep`. `keep` must be in ascending order. Directories still precede their contents.
    ///
    /// # Panics
    /// If one of `keep` belongs to another tree.
    pub fn retain(&mut self, keep: &[EntryId]) -> Vec<EntryId> {
        let mut kept_ids: Vec<u32> = Vec::with_capacity(keep.len());
        let mut is_kept = rustc_hash::FxHashSet::default();
        for id in keep {
            let mut at = id.0;
            while at != NO_PARENT && is_kept.insert(at) {
                kept_ids.push(at);
                at = self.entries[at as usize].parent;
            }
        }
        kept_ids.sort_unstable();
        let new_id = |old: u32| kept_ids.binary_search(&old).map_or(NO_PARENT, |index| index as u32);
        let mut names = Vec::new();
        let mut entries = Vec::with_capacity(kept_ids.len());
        for old in &kept_ids {
            let mut packed = self.entries[*old as usize];
            let name = self.name(EntryId(*old)).as_bytes();
            packed.name_begins = names.len() as u32;
            names.extend_from_slice(name);
            if packed.parent != NO_PARENT {
                packed.parent = new_id(packed.parent);
            }
            entries.push(packed);
        }
        for range in &mut self.bases {
            range.first = kept_ids.partition_point(|old| *old < range.first) as u32;
        }
        let new_ids = keep.iter().map(|id| EntryId(new_id(id.0))).collect();
        (self.entries, self.names) = (entries, names);
        new_ids
    }

    /// Appends a path, written from its end to its start into space of the right size, so that only
    /// one allocation is needed.
    fn append_path(&self, id: EntryId, path: &mut Vec<u8>) {
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

    fn path_length(&self, id: EntryId) -> usize {
        let mut at = id;
        let mut length = self.name(at).len();
        while let Some(parent) = self.parent(at) {
            let name = self.name(parent).as_bytes();
            length += name.len() + usize::from(name.last() != Some(&b'/'));
            at = parent;
        }
        length
    }

    /// Returns the directory that contains the name; `None` for a root.
    ///
    /// # Panics
    /// If `id` belongs to another tree.
    pub fn parent(&self, id: EntryId) -> Option<EntryId> {
        let parent = self.entries[id.index()].parent;
        (parent != NO_PARENT).then_some(EntryId(parent))
    }

    /// Returns the index of the entry's device in [`Tree::devices`].
    pub(crate) fn device_index(&self, id: EntryId) -> u16 {
        self.entries[id.index()].device
    }

    fn intern_device(&mut self, device: u64) -> Result<u16, TreeFull> {
        // The last device is the right one for nearly all names.
        let known = self.devices.iter().rposition(|known| *known == device);
        let index = known.unwrap_or(self.devices.len());
        let number = u16::try_from(index).map_err(|_| TreeFull::Devices)?;
        if index == self.devices.len() {
            self.devices.push(device);
        }
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_root_and_all_names_below() {
        let mut tree = Tree::new();
        let top = tree.add(None, OsStr::new("a/b/"), FileKind::Directory, 2, 7).unwrap();
        let folder = tree.add(Some(top), OsStr::new("c"), FileKind::Directory, 11, 7).unwrap();
        let file = tree.add(Some(folder), OsStr::from_bytes(b"\xff"), FileKind::File, 12, 7).unwrap();
        let mut path = Vec::new();
        tree.path_into(file, &mut path);
        assert_eq!(path, b"a/b/c/\xff");
        tree.path_into(top, &mut path);
        assert_eq!(path, b"a/b/");
        assert_eq!(tree.name(folder), "c");
    }

    #[test]
    fn the_slash_of_a_root_is_not_doubled() {
        let mut tree = Tree::new();
        let top = tree.add(None, OsStr::new("/"), FileKind::Directory, 2, 7).unwrap();
        let file = tree.add(Some(top), OsStr::new("vmlinuz"), FileKind::File, 12, 7).unwrap();
        let mut path = Vec::new();
        tree.path_into(file, &mut path);
        assert_eq!(path, b"/vmlinuz");
    }

    #[test]
    fn placements_and_devices_are_stored() {
        let mut tree = Tree::new();
        let one = tree.add(None, OsStr::new("one"), FileKind::File, 3, 100).unwrap();
        let two = tree.add(None, OsStr::new("two"), FileKind::Fifo, 4, 200).unwrap();
        assert_eq!(tree.entry(one).placement, Placement::Unknown);
        assert_eq!(tree.entry(two).placement, Placement::NoData);
        tree.set_placement(one, Placement::Offset(4096));
        assert_eq!((tree.entry(one).placement, tree.entry(one).device), (Placement::Offset(4096), 100));
        assert_eq!((tree.entry(two).inode, tree.entry(two).device), (4, 200));
    }

    #[test]
    fn retained_names_have_the_same_paths_and_placements() {
        let mut tree = Tree::new();
        tree.set_base(None, FollowLinks::Always);
        let top = tree.add(None, OsStr::new("top"), FileKind::Directory, 2, 7).unwrap();
        tree.add(Some(top), OsStr::new("gone"), FileKind::File, 3, 7).unwrap();
        let folder = tree.add(Some(top), OsStr::new("folder"), FileKind::Directory, 4, 7).unwrap();
        tree.add(Some(folder), OsStr::new("also gone"), FileKind::File, 5, 7).unwrap();
        let file = tree.add(Some(folder), OsStr::new("file"), FileKind::File, 6, 8).unwrap();
        tree.set_placement(file, Placement::Offset(512));
        let now = tree.retain(&[folder, file]);
        let mut path = Vec::new();
        tree.path_into(now[1], &mut path);
        assert_eq!((tree.len(), path.as_slice()), (3, b"top/folder/file".as_slice()));
        let entry = tree.entry(now[1]);
        assert_eq!((entry.parent, entry.placement, entry.device), (Some(now[0]), Placement::Offset(512), 8));
        assert!(tree.is_followed(now[1]));
    }

    #[test]
    fn a_name_that_is_too_long_is_refused() {
        let mut tree = Tree::new();
        let name = "x".repeat(65_536);
        assert_eq!(tree.add(None, OsStr::new(&name), FileKind::File, 1, 1), Err(TreeFull::Name { length: 65_536 }));
        assert!(tree.is_empty());
    }
}
