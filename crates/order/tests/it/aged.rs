//! The gain of disk order on a file system in use. `testdata/aged.laid.xz` has the layout of 22,500
//! files (`examples/tar-reorder/image.sh aged.img 22500 4G`); drive models read them.

use std::io::Read as _;

use hoistway_drive::{Drive, Profile};
use hoistway_order::read_plan::{
    ReadPattern, ReadPlan, TreeLayout, listed_steps, tar_steps, text::from_text, two_pass_steps,
};
use hoistway_order::read_time::{ReadTime, ReaderModel, simulate};
use hoistway_order::{EntryId, SortKey, sort};

fn layout() -> TreeLayout {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/aged.laid.xz");
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the list of extents");
    liblzma::read::XzDecoder::new(file).read_to_string(&mut text).expect("xz");
    from_text(&text).expect("a list of extents")
}

fn by<K: Ord>(layout: &TreeLayout, key: impl Fn(EntryId) -> K) -> Vec<EntryId> {
    let mut files: Vec<EntryId> = layout.files().collect();
    files.sort_by_key(|id| key(*id));
    files
}

fn by_block(layout: &TreeLayout) -> Vec<EntryId> {
    by(layout, |id| layout.extents(id).first().map(|extent| extent.physical))
}

/// Returns the simulated time for plans one after the other, each with its number of parallel
/// steps.
fn time_for(drive: &str, plans: &[(&ReadPlan, usize)]) -> ReadTime {
    let mut drive = Drive::new(&Profile::builtin(drive).expect("a built-in profile"));
    let mut sum = ReadTime::default();
    for (plan, depth) in plans {
        let reader = ReaderModel { depth: *depth, ..ReaderModel::ONE_AT_A_TIME };
        sum += simulate(&mut drive, sum.ns, plan, &reader).expect("within the drive");
    }
    sum
}

#[test]
fn one_file_is_faster_than_one_sweep_and_block_order_and_those_than_tar() {
    let layout = layout();
    assert_eq!(layout.files().count(), 22_500);
    let tar = layout.plan(&tar_steps(&layout.tree, false), ReadPattern::GNU_TAR);
    let passes = two_pass_steps(&layout.tree, by_block(&layout));
    let (metadata, data) =
        (layout.plan(&passes.metadata, ReadPattern::LARGE), layout.plan(&passes.data, ReadPattern::LARGE));
    let bytes = layout.files().map(|id| layout.bytes(id)).sum();
    let single = ReadPlan::contiguous(layout.lowest(), bytes);
    for drive in ["sata-7200-2006", "cmr-8tb"] {
        let [single, sweep, blocks, tar] =
            [&[(&single, 1)][..], &[(&tar.sweep(), 1)], &[(&metadata, 1), (&data, 1)], &[(&tar, 1)]]
                .map(|plans| time_for(drive, plans).ns as f64 / 1e9);
        // A drive reads on over short gaps: one sweep gains nothing over the order of blocks.
        assert!((sweep / blocks - 1.0).abs() < 0.1, "{drive}: {sweep} {blocks}");
        assert!(1.2 * single < blocks && 5.0 * blocks < tar, "{drive}: {single} {blocks} {tar}");
    }
}

#[test]
fn reading_through_gaps_takes_at_most_three_times_as_long_as_a_contiguous_file() {
    let layout = layout();
    let passes = two_pass_steps(&layout.tree, by_block(&layout));
    let (metadata, data) =
        (layout.plan(&passes.metadata, ReadPattern::LARGE), layout.plan(&passes.data, ReadPattern::LARGE));
    let bytes = layout.files().map(|id| layout.bytes(id)).sum();
    let single = ReadPlan::contiguous(layout.lowest(), bytes);
    for drive in ["sata-7200-2006", "cmr-8tb"] {
        let through = data.read_through(1 << 20, 128 << 10);
        let [single, through] =
            [&[(&single, 1)][..], &[(&metadata, 1), (&through, 1)]].map(|plans| time_for(drive, plans).ns);
        assert!(through < 3 * single, "{drive}: {through} {single}");
    }
}

#[test]
fn a_drive_reads_through_gaps_by_itself_with_a_full_queue_and_without() {
    let layout = layout();
    let passes = two_pass_steps(&layout.tree, by_block(&layout));
    let (metadata, data) =
        (layout.plan(&passes.metadata, ReadPattern::LARGE), layout.plan(&passes.data, ReadPattern::LARGE));
    let at = |depth| time_for("cmr-8tb", &[(&metadata, 1), (&data, depth)]).ns as f64 / 1e9;
    let (one, eight) = (at(1), at(8));
    assert!(eight <= one && one < 1.2 * eight, "{one} {eight}");
}

#[test]
fn inode_order_needs_nearly_the_seek_distance_of_directory_order() {
    let layout = layout();
    let tree = &layout.tree;
    let distance = |files: Vec<EntryId>| {
        let steps: Vec<_> = files.into_iter().map(hoistway_order::read_plan::ReadStep::Data).collect();
        layout.plan(&steps, ReadPattern::LARGE).distance()
    };
    let found = distance(layout.files().collect());
    let inodes = distance(by(&layout, |id| tree.entry(id).inode));
    let blocks = distance(by_block(&layout));
    // 4.2 TB, 3.9 TB and 0.3 GB.
    assert!(inodes.bytes < found.bytes && found.bytes < inodes.bytes * 5 / 4, "{found:?} {inodes:?}");
    assert!(blocks.bytes * 10_000 < found.bytes && blocks.backward == 0, "{blocks:?}");
    assert_eq!(listed_steps(tree, by_block(&layout)).len(), 2 * (151 + 22_500));
}

#[test]
fn the_reads_of_tar_are_those_of_a_recording() {
    // Recorded at the server that exported the image while GNU tar 1.34 read it on Linux 6.18:
    // 27,306 reads of files, 298,983,424 bytes.
    let layout = layout();
    let tar = layout.plan(&tar_steps(&layout.tree, false), ReadPattern::GNU_TAR);
    let lowest = layout.lowest();
    let files: Vec<_> = tar.reads().iter().filter(|read| read.at >= lowest).collect();
    assert_eq!(files.iter().map(|read| read.bytes).sum::<u64>(), 298_983_424);
    assert!((26_500..28_000).contains(&files.len()), "{}", files.len());
}

/// The timing model with one read at a time is the same as a closed loop with depth 1.
#[test]
fn one_read_at_a_time_takes_as_long_as_a_closed_loop() {
    use hoistway_drive::{Access, Command, Op, SECTOR_BYTES, closed_loop};
    use hoistway_order::read_plan::ReadStep;
    let layout = layout();
    for name in ["sata-7200-2006", "cmr-8tb"] {
        let profile = Profile::builtin(name).unwrap();
        for key in [SortKey::Readdir, SortKey::Block] {
            let ids = sort(&layout.tree, key).into_iter();
            let files = ids.filter(|id| layout.bytes(*id) > 0);
            let steps: Vec<_> = files.take(3000).map(ReadStep::Data).collect();
            let plan = layout.plan(&steps, ReadPattern::LARGE);
            let commands = plan.reads().iter().map(|read| {
                let sector = read.at / SECTOR_BYTES;
                let sectors = ((read.at + read.bytes).div_ceil(SECTOR_BYTES) - sector) as u32;
                Command::from(Access { op: Op::Read, sector, sectors })
            });
            let expected = closed_loop(&mut Drive::new(&profile), 0, 1, commands, |_, _| {}).unwrap();
            let time = simulate(&mut Drive::new(&profile), 0, &plan, &ReaderModel::ONE_AT_A_TIME).unwrap();
            assert_eq!(time.ns, expected, "{name} {key:?}");
        }
    }
}
