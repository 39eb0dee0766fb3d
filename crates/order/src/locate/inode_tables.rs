//! Reads data offsets from the inode tables of mounted ext4 file systems, without opening the
//! files.
//!
//! Linux keeps inodes in the page cache of the device, so that a read of the device sees the
//! current inodes. If an inode does not have the answer, the extents of the file are read.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};

use hoistway_machine::{DeviceNumber, Root, SysfsDevice};
use rustix::fs::{OFlags, syncfs};
use rustix::process::geteuid;

use crate::ext4::{InodeTables, first_block};
use crate::mounts;
use crate::tree::{EntryId, Tree};

/// Smallest number of files of a file system for which its inode tables are read.
const FILES_MIN: usize = 256;
/// Largest read of an inode table, in bytes.
const WINDOW_BYTES: u64 = 64 << 10;

/// The inode tables of each file system of a tree; `None` for those that cannot be read.
pub struct MountedTables(Vec<Option<Device>>);

struct Device {
    file: File,
    tables: InodeTables,
}

impl MountedTables {
    /// Creates an empty set: the extents of each file are read.
    pub fn none() -> MountedTables {
        MountedTables(Vec::new())
    }

    /// Opens the tables of all file systems that have enough of `files`. `sync` writes the dirty
    /// data of these file systems first.
    ///
    /// Only for root: another user may not open each file, and this lookup would not notice.
    pub fn of(tree: &Tree, files: &[EntryId], sync: bool) -> MountedTables {
        if !geteuid().is_root() {
            return MountedTables::none();
        }
        let mut counts = vec![0; tree.devices().len()];
        let mut one_of = vec![None; tree.devices().len()];
        for id in files {
            let device = usize::from(tree.device_index(*id));
            counts[device] += 1;
            one_of[device] = Some(*id);
        }
        let devices = tree.devices().iter().zip(counts.iter().zip(one_of));
        let opened = |(device, (files, one)): (&u64, (&usize, Option<EntryId>))| {
            if *files < FILES_MIN || sync && !is_synced(tree, one?) {
                return None;
            }
            Device::open(*device)
        };
        MountedTables(devices.map(opened).collect())
    }

    /// Looks up the data offsets of `files`, given in inode order. `offsets` receives one value per
    /// file, `None` where the extents of the file must be read.
    pub fn lookup(&self, tree: &Tree, files: &[EntryId], window: &mut Vec<u8>, offsets: &mut Vec<Option<u64>>) {
        offsets.clear();
        let byte = |id: EntryId| {
            let device = self.0.get(usize::from(tree.device_index(id)))?.as_ref()?;
            Some((device, device.tables.byte(tree.entry(id).inode)?))
        };
        let mut rest = files;
        while let Some((first, behind)) = rest.split_first() {
            let Some((device, from)) = byte(*first) else {
                offsets.push(None);
                rest = behind;
                continue;
            };
            let near = |id: &&EntryId| {
                byte(**id).is_some_and(|(of, at)| {
                    std::ptr::eq(of, device) && (from..from + WINDOW_BYTES - device.tables.inode_bytes).contains(&at)
                })
            };
            let count = 1 + behind.iter().take_while(near).count();
            let (these, others) = rest.split_at(count);
            let positions = these.iter().filter_map(|id| Some(byte(*id)?.1 - from));
            let bytes = positions.clone().max().unwrap_or_default() + device.tables.inode_bytes;
            window.resize(bytes as usize, 0);
            // If the read fails, the extents of the files are read instead.
            let is_read = device.file.read_exact_at(window, from).is_ok();
            offsets.extend(positions.map(|at| {
                let block = window.get(at as usize..).filter(|_| is_read).and_then(first_block)?;
                block.checked_mul(device.tables.block_bytes)
            }));
            rest = others;
        }
    }
}

/// Writes all dirty data of a file's file system. Returns true on success.
fn is_synced(tree: &Tree, id: EntryId) -> bool {
    tree.open(id, OFlags::empty()).is_ok_and(|opened| syncfs(&opened.fd).is_ok())
}

impl Device {
    /// Reads the tables of a mounted ext4. `None` for other file systems and for devices that may
    /// not be read.
    fn open(device: u64) -> Option<Device> {
        if !mounts::kind(device)?.starts_with("ext") {
            return None;
        }
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
        let node = SysfsDevice::of(&Root::machine(), DeviceNumber::from_stat(device))?.node();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(node).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.file_type().is_block_device() || metadata.rdev() != device {
            return None;
        }
        let tables = InodeTables::read(&file).ok()?;
        Some(Device { file, tables })
    }
}
