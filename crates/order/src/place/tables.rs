//! Places read from the inode tables of an ext4: whoever may read its device need not open a file to know where its data begin.
//!
//! Linux keeps inodes in the memory that reading the device shows, so that what is read is what the file system knows; where an inode does not tell,
//! the file system is asked.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};

use hoistway_machine::{DeviceNumber, Root, SysfsDevice};
use rustix::fs::{OFlags, syncfs};
use rustix::process::geteuid;

use crate::ext4::{InodeTables, first_block};
use crate::mounts;
use crate::tree::{Id, Tree};

/// File systems with fewer files to place are asked about each of them.
const FILES_MIN: usize = 256;
/// So much of a table is read at once, at most.
const WINDOW_BYTES: u64 = 64 << 10;

/// For each file system of a tree its inode tables, if they can be read.
pub struct Tables(Vec<Option<Device>>);

struct Device {
    file: File,
    tables: InodeTables,
}

impl Tables {
    /// None of them: each file is asked about.
    pub fn none() -> Tables {
        Tables(Vec::new())
    }

    /// Those of the file systems on which enough of `files` lie; with `sync` what is in memory alone of these is written out first.
    ///
    /// Only root may open every file, so that its place can be told without trying.
    pub fn of(tree: &Tree, files: &[Id], sync: bool) -> Tables {
        if !geteuid().is_root() {
            return Tables::none();
        }
        let mut counts = vec![0; tree.devices().len()];
        let mut one_of = vec![None; tree.devices().len()];
        for id in files {
            let device = usize::from(tree.device_index(*id));
            counts[device] += 1;
            one_of[device] = Some(*id);
        }
        let devices = tree.devices().iter().zip(counts.iter().zip(one_of));
        let opened = |(device, (files, one)): (&u64, (&usize, Option<Id>))| {
            if *files < FILES_MIN || sync && !is_synced(tree, one?) {
                return None;
            }
            Device::open(*device)
        };
        Tables(devices.map(opened).collect())
    }

    /// In which byte of their device the data of some files, by number, begin; as many answers as files, `None` where the file system must be asked.
    pub fn tell(&self, tree: &Tree, files: &[Id], window: &mut Vec<u8>, told: &mut Vec<Option<u64>>) {
        told.clear();
        let byte = |id: Id| {
            let device = self.0.get(usize::from(tree.device_index(id)))?.as_ref()?;
            Some((device, device.tables.byte(tree.entry(id).inode)?))
        };
        let mut rest = files;
        while let Some((first, behind)) = rest.split_first() {
            let Some((device, from)) = byte(*first) else {
                told.push(None);
                rest = behind;
                continue;
            };
            let near = |id: &&Id| {
                byte(**id).is_some_and(|(of, at)| {
                    std::ptr::eq(of, device) && (from..from + WINDOW_BYTES - device.tables.inode_bytes).contains(&at)
                })
            };
            let count = 1 + behind.iter().take_while(near).count();
            let (these, others) = rest.split_at(count);
            let places = these.iter().filter_map(|id| Some(byte(*id)?.1 - from));
            let bytes = places.clone().max().unwrap_or_default() + device.tables.inode_bytes;
            window.resize(bytes as usize, 0);
            // What cannot be read is the file system's to tell of.
            let is_read = device.file.read_exact_at(window, from).is_ok();
            told.extend(places.map(|at| {
                let block = window.get(at as usize..).filter(|_| is_read).and_then(first_block)?;
                block.checked_mul(device.tables.block_bytes)
            }));
            rest = others;
        }
    }
}

/// Writes out what is in memory alone of a file's file system.
fn is_synced(tree: &Tree, id: Id) -> bool {
    tree.open(id, OFlags::empty()).is_ok_and(|opened| syncfs(&opened.fd).is_ok())
}

impl Device {
    /// The tables of a mounted ext4; `None` if it is none, or if its device may not be read.
    fn open(device: u64) -> Option<Device> {
        if !mounts::kind(device)?.starts_with("ext") {
            return None;
        }
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
        let node = SysfsDevice::of(&Root::machine(), DeviceNumber::from_stat(device))?.node();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(node).ok()?;
        let is = file.metadata().ok()?;
        if !is.file_type().is_block_device() || is.rdev() != device {
            return None;
        }
        let tables = InodeTables::read(&file).ok()?;
        Some(Device { file, tables })
    }
}
