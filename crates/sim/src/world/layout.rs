//! The placement of all files that the processes of a world read and write.

use std::sync::Arc;

use hoistway_fio::FileSystemKind;

use crate::config::HostConfig;
use crate::error::SimError;
use crate::host::files::{self, File, Layout};
use crate::host::fs::config::FileSystemConfig;
use crate::host::fs::tree::Tree;
use crate::host::fs::{Ageing, FileSystem, SizeLaw, TreeParameters, disk_itself};
use crate::workload::plan::{PlannedTree, WorkloadPlan};
use crate::workload::stream;

/// The files and trees of a world.
pub(crate) struct PlacedFiles {
    /// The files of jobs, then those of all trees; last the disk itself, if there is a tree or a
    /// journal.
    pub files: Vec<File>,
    pub trees: Vec<Arc<Tree>>,
    /// Index of the file that stands for the disk: its pages are metadata blocks. Only valid with a
    /// tree or a journal.
    pub disk: u32,
}

/// Places the files of a plan. Without trees, files are placed by the host's configuration and cost
/// no metadata. With a tree there is a file system, which places all files.
pub(crate) fn lay_out(
    plan: &WorkloadPlan,
    host: &HostConfig,
    capacity_sectors: u64,
    seed: u64,
) -> Result<PlacedFiles, SimError> {
    let Some(first) = plan.trees.first() else {
        let layout = Layout { groups: host.groups, gap_pages: host.file_gap_kib / 4, aged: host.aged };
        let mut files = files::lay_out(&plan.files, capacity_sectors, layout, &mut stream(seed, 0, 7))?;
        if plan.journal.or(host.journal).is_none() {
            return Ok(PlacedFiles { files, trees: Vec::new(), disk: u32::MAX });
        }
        files.push(disk_itself(capacity_sectors));
        let disk = files.len() as u32 - 1;
        return Ok(PlacedFiles { files, trees: Vec::new(), disk });
    };
    let too_small = |wanted: &PlannedTree, needed_bytes: u64| {
        let (file, line) = wanted.declared_at.clone();
        let capacity_bytes = capacity_sectors * 512;
        SimError::DriveTooSmall {
            file: file.to_string(),
            line,
            needed_bytes,
            capacity_bytes,
            largest: "the tree".into(),
        }
    };
    let config = match first.spec.kind {
        Some(FileSystemKind::Ext2) => FileSystemConfig::ext2(),
        Some(FileSystemKind::Ext3) => FileSystemConfig::ext3(),
        Some(FileSystemKind::Ext4) => FileSystemConfig::ext4(),
        None => host.file_system,
    };
    let (rounds, full_percent) = (first.spec.rounds, first.spec.full_percent);
    let ageing = (rounds > 0 || full_percent > 0).then_some(Ageing { rounds, full_percent });
    let system = FileSystem::new(config, capacity_sectors, ageing, seed, stream(seed, 0, 7));
    let mut system = system.ok_or_else(|| too_small(first, needed_bytes(first)))?;
    let of_jobs = system.make_files(&plan.files, capacity_sectors);
    let mut files = of_jobs.ok_or_else(|| files::too_small(&plan.files, capacity_sectors))?;
    let mut trees = Vec::new();
    for wanted in &plan.trees {
        let grown = system.grow(&growth(wanted));
        let (mut tree, of_tree) = grown.ok_or_else(|| too_small(wanted, needed_bytes(wanted)))?;
        tree.first_file = files.len() as u32;
        tree.single = tree.single.map(|single| single + tree.first_file);
        files.extend(of_tree);
        trees.push(Arc::new(tree));
    }
    files.push(disk_itself(capacity_sectors));
    let disk = files.len() as u32 - 1;
    Ok(PlacedFiles { files, trees, disk })
}

fn growth(wanted: &PlannedTree) -> TreeParameters {
    let spec = wanted.spec;
    TreeParameters {
        files: spec.files,
        directories: spec.directories,
        sizes: SizeLaw { median_bytes: spec.median_bytes, mean_bytes: spec.mean_bytes },
        rounds: spec.rounds,
        single: wanted.single,
    }
}

/// Estimates the bytes that a tree needs: its data, and half a block per file for the partial last
/// block.
fn needed_bytes(wanted: &PlannedTree) -> u64 {
    u64::from(wanted.spec.files) * (wanted.spec.mean_bytes + 2048)
}
