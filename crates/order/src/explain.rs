//! The answer of `hoistway order --explain`: what reading the same files costs in four orders.
//!
//! [`FileSurvey`] collects the extents of all files of a tree. [`FileSurvey::report`] compares the
//! orders per file system, with the timing model of [`crate::read_time`].

use std::os::unix::ffi::OsStringExt;

use hoistway_drive::{AccessError, DEFAULT_DRIVE, Drive, Profile, SECTOR_BYTES};
use hoistway_units::printable;
use serde::Serialize;

use crate::error::{PathError, WalkError};
use crate::fiemap::{Extent, ExtentState};
use crate::listing::device_text;
use crate::locate;
use crate::read_plan::{ReadPattern, ReadPlan, ReadStep, TreeLayout};
use crate::read_time::{ReaderModel, simulate_observed};
use crate::sort::{SortKey, sort};
use crate::tree::{EntryId, FileKind, Placement, Tree};

/// The built-in drives for file systems whose device has no model that is large enough, by
/// ascending capacity.
pub const DEFAULT_DRIVES: [&str; 3] = [DEFAULT_DRIVE, "cmr-8tb", "cmr-20tb"];

/// The compared orders and their names.
const ORDERS: [(SortKey, &str); 4] =
    [(SortKey::Readdir, "readdir"), (SortKey::Name, "name"), (SortKey::Inode, "inode"), (SortKey::Block, "block")];

/// The JSON document of `hoistway order --explain --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostReport {
    /// Version of this format: 1.
    pub schema: u32,
    /// One entry per file system with regular files.
    pub file_systems: Vec<FileSystemCost>,
}

/// The files of one file system and the cost of each order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileSystemCost {
    /// Major and minor number of the device, as in "8:1".
    pub device: String,
    /// The first root on this file system.
    pub path: String,
    /// Number of regular files; hard links count once.
    pub files: u64,
    /// Sum of all file lengths in bytes.
    pub bytes: u64,
    /// Number of written extents.
    pub extents: u64,
    /// Files without data on the disk: empty, sparse without data, or inline in the inode.
    pub without_data: u64,
    /// Files with data that are not on the disk yet, or whose location is not reported.
    pub not_placed: u64,
    /// Name of the simulated drive; `None` if the file system does not report extents.
    pub drive: Option<String>,
    /// The reason for the drive, a clause; `None` if the drive was given or there is none.
    pub why_drive: Option<String>,
    /// The cost of each order.
    pub orders: Vec<OrderCost>,
}

/// The cost of reading the files in one order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderCost {
    /// "readdir", "name", "inode" or "block".
    pub order: &'static str,
    /// Number of reads of at most 128 KiB.
    pub reads: u64,
    /// Sum of all seek distances in bytes.
    pub distance_bytes: u64,
    /// Reads that do not start at the end of the previous read.
    pub seeks: u64,
    /// Seeks towards lower offsets.
    pub backward: u64,
    /// Simulated time on the drive.
    pub seconds: f64,
    /// Position of the head over time: seconds, offset in bytes. Only for the HTML page.
    #[serde(skip)]
    pub head: Vec<(f64, f64)>,
}

/// Returns the name of the built-in drive that stands for a device, which is given by its number as
/// in "8:1", and the reason, a clause; or the reason why there is none.
pub type DriveOfDevice<'a> = &'a dyn Fn(&str) -> Result<(&'static str, String), String>;

/// The drives to simulate.
#[derive(Clone, Copy)]
pub enum DriveChoice<'a> {
    /// One drive for all file systems.
    Given(&'a Profile),
    /// The drive that stands for the device of each file system.
    OfDevice(DriveOfDevice<'a>),
}

/// Why the costs cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The given drive is smaller than the file system.
    #[error(
        "--drive {drive}: the drive has {capacity_gb:.0} GB, but files extend up to {end_gb:.1} GB; choose a larger drive, such as cmr-20tb"
    )]
    DriveTooSmall {
        /// Name of the drive.
        drive: String,
        /// Capacity of the drive in GB.
        capacity_gb: f64,
        /// End of the last file in GB.
        end_gb: f64,
    },
    /// No built-in drive is as large as the file system.
    #[error("files extend up to {end_gb:.0} GB, and no built-in drive is that large; --drive accepts a profile file")]
    NoDrive {
        /// End of the last file in GB.
        end_gb: f64,
    },
    /// The simulated drive failed.
    #[error(transparent)]
    Access(#[from] AccessError),
}

/// The extents of all regular files of a tree.
#[derive(Clone, Debug)]
pub struct FileSurvey {
    layout: TreeLayout,
    /// One state per entry of the tree.
    states: Vec<FileState>,
}

/// What is known about the data of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    /// Not a regular file, not readable, or a hard link of a file that counts already.
    Ignored,
    /// No data on the disk.
    WithoutData,
    /// All data are on the disk.
    Located,
    /// Some data are not on the disk.
    PartlyLocated,
    /// The file system does not report extents.
    Unsupported,
}

impl FileSurvey {
    /// Reads the extents of all regular files of a tree, in inode order. `sync` writes dirty data
    /// of each file first. `progress` receives the number of files to read and of finished files.
    pub fn new(
        tree: Tree,
        sync: bool,
        progress: &dyn Fn(usize, usize),
        on_error: &mut dyn FnMut(PathError),
    ) -> FileSurvey {
        let mut files: Vec<EntryId> = tree.ids().filter(|id| tree.entry(*id).kind == FileKind::File).collect();
        // Inode order makes one sweep, and hard links of one file are adjacent.
        let identity = |id: &EntryId| (tree.entry(*id).device, tree.entry(*id).inode);
        files.sort_by_key(identity);
        files.dedup_by_key(|id| identity(id));
        let total = files.len();
        let mut survey =
            FileSurvey { states: vec![FileState::Ignored; tree.len()], layout: TreeLayout::new(tree, None) };
        for (done, id) in files.into_iter().enumerate() {
            progress(total, done);
            survey.read_extents(id, sync, on_error);
        }
        survey
    }

    fn read_extents(&mut self, id: EntryId, sync: bool, on_error: &mut dyn FnMut(PathError)) {
        let tree = &mut self.layout.tree;
        let state = match locate::extents(tree, id, sync) {
            Ok(data) => {
                let written = |extent: &&Extent| extent.state == ExtentState::Written;
                let on_disk: Vec<Extent> = data.extents.iter().filter(written).copied().collect();
                let first = on_disk.first().map(|extent| extent.physical);
                tree.set_placement(id, first.map_or(Placement::NoData, Placement::Offset));
                self.layout.set(id, data.bytes, &on_disk);
                if data.extents.iter().any(|extent| extent.state == ExtentState::Unknown) {
                    FileState::PartlyLocated
                } else if on_disk.is_empty() {
                    FileState::WithoutData
                } else {
                    FileState::Located
                }
            }
            Err(WalkError::NoExtentMap) => FileState::Unsupported,
            Err(error) => {
                let mut path = Vec::new();
                tree.path_into(id, &mut path);
                on_error(PathError { path, id: Some(id), error });
                FileState::Ignored
            }
        };
        self.states[id.index()] = state;
    }

    /// Computes the cost of each order per file system. If the drive that stands for a device is
    /// too small for the files, or there is none, the first of [`DEFAULT_DRIVES`] that is large
    /// enough is simulated.
    ///
    /// # Errors
    /// [`CostError`] if no drive is large enough, or if the drive fails.
    pub fn report(&self, drives: DriveChoice<'_>) -> Result<CostReport, CostError> {
        let mut file_systems = Vec::new();
        for device in self.layout.tree.devices() {
            file_systems.extend(self.file_system_cost(*device, drives)?);
        }
        Ok(CostReport { schema: 1, file_systems })
    }

    /// Returns the cost for one file system; `None` if it has no regular file.
    fn file_system_cost(&self, device: u64, drives: DriveChoice<'_>) -> Result<Option<FileSystemCost>, CostError> {
        let tree = &self.layout.tree;
        let is_known = |id: &EntryId| tree.entry(*id).device == device && self.states[id.index()] != FileState::Ignored;
        let files: Vec<EntryId> = tree.ids().filter(is_known).collect();
        let Some(first) = files.first() else { return Ok(None) };
        let count = |state: FileState| files.iter().filter(|id| self.states[id.index()] == state).count() as u64;
        let mut cost = FileSystemCost {
            device: device_text(device),
            path: printable::bytes(&self.root_path(*first)),
            files: files.len() as u64,
            bytes: files.iter().map(|id| self.layout.bytes(*id)).sum(),
            extents: files.iter().map(|id| self.layout.extents(*id).len() as u64).sum(),
            without_data: count(FileState::WithoutData),
            not_placed: count(FileState::PartlyLocated),
            drive: None,
            why_drive: None,
            orders: Vec::new(),
        };
        if count(FileState::Unsupported) > 0 {
            return Ok(Some(cost));
        }
        let extents = files.iter().flat_map(|id| self.layout.extents(*id));
        let end = extents.map(|extent| extent.physical + extent.bytes).max().unwrap_or(0);
        let (profile, why) = choose_drive(drives, &cost.device, end)?;
        (cost.drive, cost.why_drive) = (Some(profile.name().to_owned()), why);
        for (key, name) in ORDERS {
            let files = sort(tree, key).into_iter().filter(is_known);
            let steps: Vec<ReadStep> = files.map(ReadStep::Data).collect();
            let plan = self.layout.plan(&steps, ReadPattern::LARGE);
            cost.orders.push(order_cost(name, &plan, &profile)?);
        }
        Ok(Some(cost))
    }

    /// Returns the path of the root above an entry; the working directory instead of ".".
    fn root_path(&self, id: EntryId) -> Vec<u8> {
        let tree = &self.layout.tree;
        let mut root = id;
        while let Some(parent) = tree.parent(root) {
            root = parent;
        }
        let mut path = Vec::new();
        tree.path_into(root, &mut path);
        if path == b"." {
            path = std::env::current_dir().map_or(path, |here| here.into_os_string().into_vec());
        }
        path
    }
}

/// Returns a drive of at least `end` bytes for a device, and the reason for it.
fn choose_drive(drives: DriveChoice<'_>, device: &str, end: u64) -> Result<(Profile, Option<String>), CostError> {
    let capacity = |profile: &Profile| profile.capacity_sectors().saturating_mul(SECTOR_BYTES);
    let is_large = |profile: &Profile| capacity(profile) >= end;
    let end_gb = end as f64 / 1e9;
    let choose = match drives {
        DriveChoice::Given(profile) if is_large(profile) => return Ok((profile.clone(), None)),
        DriveChoice::Given(profile) => {
            let capacity_gb = capacity(profile) as f64 / 1e9;
            return Err(CostError::DriveTooSmall { drive: profile.name().to_owned(), capacity_gb, end_gb });
        }
        DriveChoice::OfDevice(choose) => choose,
    };
    let why_other = match choose(device) {
        Ok((name, why)) => match Profile::builtin(name) {
            Some(profile) if is_large(&profile) => return Ok((profile, Some(why))),
            _ => format!("{why}; the files need a larger drive than {name}"),
        },
        Err(why) => why,
    };
    let mut others = DEFAULT_DRIVES.iter().filter_map(|name| Profile::builtin(name));
    let profile = others.find(is_large).ok_or(CostError::NoDrive { end_gb })?;
    let why = format!("the first of {} that is large enough: {why_other}", DEFAULT_DRIVES.join(", "));
    Ok((profile, Some(why)))
}

/// Simulates a plan with one read at a time.
fn order_cost(order: &'static str, plan: &ReadPlan, profile: &Profile) -> Result<OrderCost, AccessError> {
    let mut head = Vec::with_capacity(plan.reads().len());
    let mut drive = Drive::new(profile);
    let time = simulate_observed(&mut drive, 0, plan, &ReaderModel::ONE_AT_A_TIME, &mut |done| {
        head.push((done.finish_ns as f64 / 1e9, done.offset as f64));
    })?;
    let distance = plan.distance();
    Ok(OrderCost {
        order,
        reads: plan.reads().len() as u64,
        distance_bytes: distance.bytes,
        seeks: distance.seeks,
        backward: distance.backward,
        seconds: time.ns as f64 / 1e9,
        head,
    })
}
