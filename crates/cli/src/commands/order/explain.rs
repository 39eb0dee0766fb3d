//! `hoistway order --explain`: what each order costs on a disk.

use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use hoistway_drive::{Access, Command, Drive, Op, Profile, SECTOR_BYTES, closed_loop};
use hoistway_order::plan::{Laid, Plan, Reading, Step};
use hoistway_order::{At, By, Extent, Id, Kind, Tree, Trouble, order, place, walk};
use serde::Serialize;

use super::print::device;
use super::source::Source;
use super::troubles::Troubles;
use super::{Request, page, tell};
use crate::cli::{ByChoice, OrderArgs};
use crate::commands::compare::WholeFile;
use crate::drive_choice;
use crate::failure::{Exit, UsageError};
use crate::output::Out;
use crate::progress::Bar;

/// Drives that are taken when none is named, the first on which everything has room.
const DRIVES: [&str; 3] = [drive_choice::DEFAULT, "cmr-8tb", "cmr-20tb"];

/// The orders, with what they are called.
const ORDERS: [(By, &str); 4] = [(By::None, "readdir"), (By::Name, "name"), (By::Inode, "inode"), (By::Block, "block")];

/// The JSON document of `hoistway order --explain --json`.
#[derive(Serialize)]
pub struct Document {
    /// The version of this form: 1.
    pub schema: u32,
    /// The file systems.
    pub file_systems: Vec<FileSystem>,
}

/// What is told of one file system.
#[derive(Serialize)]
pub struct FileSystem {
    /// Major and minor number of its device.
    pub device: String,
    /// A path on it: the first that was asked for.
    pub path: String,
    /// Regular files, each inode once.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
    /// Extents that are on the disk.
    pub extents: u64,
    /// Files without data there: empty, of holes alone, or within their inodes.
    pub without_data: u64,
    /// Files of which a part is in memory alone, or is where the file system does not tell.
    pub not_placed: u64,
    /// The drive that was timed; none if the file system does not tell where data lie.
    pub drive: Option<String>,
    /// What each order costs.
    pub orders: Vec<Cost>,
}

/// What an order costs.
#[derive(Serialize)]
pub struct Cost {
    /// "readdir", "name", "inode" or "block".
    pub order: &'static str,
    /// Reads of at most 128 KiB.
    pub reads: u64,
    /// From the end of each to the beginning of the next, in bytes, together.
    pub distance_bytes: u64,
    /// How many do not begin where the one before ended.
    pub seeks: u64,
    /// How many of those lead back.
    pub backward: u64,
    /// How long the drive takes.
    pub seconds: f64,
    /// When the head was where: seconds, bytes.
    #[serde(skip)]
    pub head: Vec<(f64, f64)>,
}

/// Finds everything, asks for all extents, and times the orders.
pub fn run(args: &OrderArgs, out: &mut Out) -> Result<Exit> {
    let request = Request::new(args);
    let profile = args.drive.as_deref().map(drive_choice::load).transpose()?;
    let report = args.report.as_deref().map(WholeFile::new).transpose()?;
    let mut troubles = Troubles::new(args.by == ByChoice::Block);
    let tree = find(args, &request, &mut troubles)?;
    let surveyed = Survey::new(tree, request.sync, &mut troubles);
    let mut file_systems = Vec::new();
    for number in surveyed.laid.tree.devices() {
        file_systems.extend(surveyed.explain(*number, profile.as_ref())?);
    }
    let document = Document { schema: 1, file_systems };
    if let Some(report) = report {
        report.write(&page::page(&document)?, &AtomicBool::new(false))?;
    }
    if args.json {
        out.json(&document)?;
    } else {
        tell::tell(&document, out)?;
        if let Some(path) = &args.report {
            out.line(format_args!("\nThe page is in {}.", path.display()))?;
        }
    }
    out.flush()?;
    Ok(troubles.tell())
}

fn find(args: &OrderArgs, request: &Request, troubles: &mut Troubles) -> Result<Tree> {
    let mut tree = Tree::new();
    let bar = Bar::counter("names found");
    let found = |names: usize| bar.set(names as u64);
    let options: walk::Options<'_> = request.walk_options(&found);
    let mut source = Source::new(args, &options, &mut tree, troubles)?;
    while source.more(usize::MAX, &mut tree, troubles)? {}
    source.tell();
    Ok(tree)
}

/// All files with all their extents.
struct Survey {
    laid: Laid,
    /// What is known of each name.
    states: Vec<State>,
}

/// What is known of a file's data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is no file, cannot be opened, or is another name of one that is known.
    Passed,
    /// Nothing of it is on the disk.
    WithoutData,
    /// All of it is.
    Placed,
    /// A part is not.
    NotPlaced,
    /// The file system does not tell.
    Silent,
}

impl Survey {
    fn new(tree: Tree, sync: bool, troubles: &mut Troubles) -> Survey {
        let mut files: Vec<Id> = tree.ids().filter(|id| tree.entry(*id).kind == Kind::File).collect();
        // In the order of inodes they are asked for in one sweep, and names of one file come together.
        let identity = |id: &Id| (tree.entry(*id).device, tree.entry(*id).inode);
        files.sort_by_key(identity);
        files.dedup_by_key(|id| identity(id));
        let bar = Bar::new(files.len() as u64, "asking where they lie");
        let mut survey = Survey { states: vec![State::Passed; tree.len()], laid: Laid::new(tree, None) };
        for (done, id) in files.into_iter().enumerate() {
            survey.ask(id, sync, troubles);
            bar.set(done as u64);
        }
        survey
    }

    fn ask(&mut self, id: Id, sync: bool, troubles: &mut Troubles) {
        let tree = &mut self.laid.tree;
        let state = match place::extents(tree, id, sync) {
            Ok(data) => {
                let on_disk: Vec<Extent> =
                    data.extents.iter().filter(|extent| extent.at == At::Disk).copied().collect();
                let first = on_disk.first().map(|extent| extent.physical);
                tree.set_place(id, first.map_or(hoistway_order::Place::Nowhere, hoistway_order::Place::At));
                self.laid.set(id, data.bytes, &on_disk);
                if data.extents.iter().any(|extent| extent.at == At::Unknown) {
                    State::NotPlaced
                } else if on_disk.is_empty() {
                    State::WithoutData
                } else {
                    State::Placed
                }
            }
            Err(Trouble::NoPlaces) => State::Silent,
            Err(trouble) => {
                troubles.fail_at(tree, id, trouble);
                State::Passed
            }
        };
        self.states[id.index()] = state;
    }

    /// What is to be said of one file system; nothing if there is no file on it.
    fn explain(&self, number: u64, profile: Option<&Profile>) -> Result<Option<FileSystem>> {
        let tree = &self.laid.tree;
        let known = |id: &Id| tree.entry(*id).device == number && self.states[id.index()] != State::Passed;
        let files: Vec<Id> = tree.ids().filter(known).collect();
        let Some(first) = files.first() else { return Ok(None) };
        let count = |state: State| files.iter().filter(|id| self.states[id.index()] == state).count() as u64;
        let mut root = *first;
        while let Some(parent) = tree.parent(root) {
            root = parent;
        }
        let mut path = Vec::new();
        tree.path_into(root, &mut path);
        if path == b"." {
            path = std::env::current_dir().map_or(path, |here| here.into_os_string().into_vec());
        }
        let mut told = FileSystem {
            device: device(number),
            path: hoistway_order::shown(&path),
            files: files.len() as u64,
            bytes: files.iter().map(|id| self.laid.bytes(*id)).sum(),
            extents: files.iter().map(|id| self.laid.extents(*id).len() as u64).sum(),
            without_data: count(State::WithoutData),
            not_placed: count(State::NotPlaced),
            drive: None,
            orders: Vec::new(),
        };
        if count(State::Silent) > 0 {
            return Ok(Some(told));
        }
        let ends = files.iter().flat_map(|id| self.laid.extents(*id)).map(|extent| extent.physical + extent.bytes);
        let profile = on_which(profile, ends.max().unwrap_or(0))?;
        told.drive = Some(profile.name().to_owned());
        for (by, name) in ORDERS {
            let steps: Vec<Step> = order(tree, by).into_iter().filter(known).map(Step::Data).collect();
            told.orders.push(cost(name, &self.laid.plan(&steps, Reading::LARGE), &profile)?);
        }
        Ok(Some(told))
    }
}

/// The drive that is timed: what was asked for, or the first on which everything has room.
fn on_which(asked_for: Option<&Profile>, end: u64) -> Result<Profile> {
    let has_room = |profile: &Profile| profile.capacity_sectors().saturating_mul(SECTOR_BYTES) >= end;
    let gigabytes = end as f64 / 1e9;
    if let Some(profile) = asked_for {
        let held = profile.capacity_sectors().saturating_mul(SECTOR_BYTES) as f64 / 1e9;
        let text = || {
            format!(
                "--drive {}: it has {held:.0} GB, and files lie up to {gigabytes:.1} GB; a larger drive would be right, as cmr-20tb",
                profile.name()
            )
        };
        return if has_room(profile) { Ok(profile.clone()) } else { Err(UsageError(text()).into()) };
    }
    let found = DRIVES.iter().filter_map(|name| Profile::builtin(name)).find(|profile| has_room(profile));
    found.with_context(|| {
        format!("files lie up to {gigabytes:.0} GB: no drive is that large; --drive takes a profile of your own")
    })
}

/// One read at a time, as a program that waits for each has it.
fn cost(order: &'static str, plan: &Plan, profile: &Profile) -> Result<Cost> {
    let reads = plan.reads();
    let commands = reads.iter().map(|read| {
        let sector = read.at / SECTOR_BYTES;
        let sectors = (read.at + read.bytes).div_ceil(SECTOR_BYTES) - sector;
        Command::from(Access { op: Op::Read, sector, sectors: u32::try_from(sectors).unwrap_or(u32::MAX) })
    });
    let mut head = Vec::with_capacity(reads.len());
    let ns = closed_loop(&mut Drive::new(profile), 0, 1, commands, |_, completion| {
        let at = reads.get(completion.tag as usize).map_or(0, |read| read.at);
        head.push((completion.service.finish_ns as f64 / 1e9, at as f64));
    })?;
    let distance = plan.distance();
    Ok(Cost {
        order,
        reads: reads.len() as u64,
        distance_bytes: distance.bytes,
        seeks: distance.seeks,
        backward: distance.backward,
        seconds: ns as f64 / 1e9,
        head,
    })
}
