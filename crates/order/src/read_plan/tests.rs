//! Plans of small trees, compared with results that were computed by hand.

use std::ffi::OsStr;

use super::text::{from_text, to_text};
use super::*;

const KIB: u64 = 1024;

fn extent(logical: u64, physical: u64, bytes: u64) -> Extent {
    Extent::on_disk(logical * KIB, physical * KIB, bytes * KIB)
}

fn reads_of(bytes: u64, extents: &[Extent], piece: u64) -> Vec<(u64, u64)> {
    let mut reads = Vec::new();
    file_reads(bytes, extents, piece * KIB, &mut reads);
    reads.iter().map(|read| (read.at / KIB, read.bytes / KIB)).collect()
}

#[test]
fn a_file_is_read_in_windows_that_double_up_to_128_kib() {
    let whole = [extent(0, 1000, 400)];
    // 3 pages are wanted: the next power of two is 4, and the window is twice that.
    let wanted = [(1000, 32), (1032, 64), (1096, 128), (1224, 128), (1352, 48)];
    assert_eq!(reads_of(400 * KIB, &whole, 10), wanted);
    assert_eq!(reads_of(400 * KIB, &whole, 128), [(1000, 128), (1128, 128), (1256, 128), (1384, 16)]);
    // The last page counts whole. The extent beyond the end of the file is not read.
    assert_eq!(reads_of(5000, &[extent(0, 1000, 64)], 10), [(1000, 8)]);
}

#[test]
fn a_window_is_cut_where_extents_end_and_holes_are_not_read() {
    let pieces = [extent(0, 1000, 8), extent(8, 5000, 16), extent(100, 200, 40)];
    assert_eq!(reads_of(140 * KIB, &pieces, 128), [(1000, 8), (5000, 16), (200, 28), (228, 12)]);
    assert_eq!(reads_of(140 * KIB, &[], 128), []);
    let unwritten = Extent { state: ExtentState::Unwritten, ..extent(0, 1000, 8) };
    assert_eq!(reads_of(16 * KIB, &[unwritten, extent(8, 5000, 8)], 128), [(5000, 8)]);
}

/// Creates a directory (inode 12) with a file (inode 40, far away on the disk), another directory
/// (inode 11) with a file (inode 13), and a symlink (inode 14).
fn tree() -> (Tree, [EntryId; 5]) {
    let mut tree = Tree::new();
    let mut add = |parent, name: &str, kind, inode| tree.add(parent, OsStr::new(name), kind, inode, 1).unwrap();
    let top = add(None, "top", FileKind::Directory, 12);
    let far = add(Some(top), "far", FileKind::File, 40);
    let link = add(Some(top), "link", FileKind::Symlink, 14);
    let low = add(Some(top), "low", FileKind::Directory, 11);
    let near = add(Some(low), "near", FileKind::File, 13);
    (tree, [top, far, link, low, near])
}

fn layout() -> (TreeLayout, [EntryId; 5]) {
    let (tree, ids) = tree();
    let [top, far, _, low, near] = ids;
    let tables = vec![crate::ext4::InodeTable { first_block: 64, used_blocks: 16 }];
    let inodes = InodeTables { block_bytes: 4096, inode_bytes: 256, inodes_per_group: 256, tables };
    let mut layout = TreeLayout::new(tree, Some(inodes));
    layout.set(top, 4096, &[extent(0, 4000, 4)]);
    layout.set(low, 4096, &[extent(0, 3000, 4)]);
    layout.set(far, 6000, &[extent(0, 9000, 8)]);
    layout.set(near, 4096, &[extent(0, 800, 4)]);
    (layout, ids)
}

#[test]
fn tar_reads_the_inode_and_data_of_each_name_from_the_top_down() {
    let (tree, [top, far, link, low, near]) = tree();
    let (stat, list, data) = (ReadStep::Stat, ReadStep::List, ReadStep::Data);
    let below = [stat(low), list(low), stat(near), data(near)];
    let head = [stat(top), list(top)];
    let wanted = [&head[..], &[stat(far), data(far), stat(link)], &below].concat();
    assert_eq!(tar_steps(&tree, false), wanted);
    let sorted = [&head[..], &below, &[stat(link), stat(far), data(far)]].concat();
    assert_eq!(tar_steps(&tree, true), sorted);
}

#[test]
fn a_list_is_read_after_the_directories_that_find_has_read() {
    let (tree, [top, far, _, low, near]) = tree();
    let (stat, list, data) = (ReadStep::Stat, ReadStep::List, ReadStep::Data);
    let wanted = [stat(top), list(top), stat(low), list(low), stat(near), data(near), stat(far), data(far)];
    assert_eq!(listed_steps(&tree, [near, far]), wanted);
}

#[test]
fn two_passes_sweep_over_directories_and_then_over_all_other_inodes() {
    let (tree, [top, far, link, low, near]) = tree();
    let (stat, list, data) = (ReadStep::Stat, ReadStep::List, ReadStep::Data);
    let passes = two_pass_steps(&tree, [far, near]);
    // Inode 11 is discovered after inode 12 and belongs to the next sweep.
    let wanted = [stat(top), list(top), stat(low), list(low), stat(near), stat(link), stat(far)];
    assert_eq!(passes.metadata, wanted);
    assert_eq!(passes.data, [data(far), data(near)]);
}

#[test]
fn metadata_is_read_once_and_inodes_are_read_with_their_neighbours() {
    let (layout, _) = layout();
    let plan = layout.plan(&tar_steps(&layout.tree, false), ReadPattern::Chunks(10 * KIB));
    let reads: Vec<(u64, u64)> = plan.reads().iter().map(|read| (read.at / KIB, read.bytes / KIB)).collect();
    // Blocks 64 to 79 contain all 256 inodes: one read.
    assert_eq!(reads, [(256, 64), (4000, 4), (9000, 8), (3000, 4), (800, 4)]);
    let counts: Vec<usize> = plan.steps().map(<[DiskRead]>::len).collect();
    assert_eq!(counts, [1, 1, 0, 1, 0, 0, 1, 0, 1]);
    // From 320 up to 4000, 4004 to 9000, 9008 back to 3000, 3004 back to 800.
    assert_eq!(plan.distance(), Distance { bytes: (3680 + 4996 + 6008 + 2204) * KIB, seeks: 4, backward: 2 });
}

#[test]
fn the_first_chunk_of_tar_fills_the_current_record() {
    let mut tree = Tree::new();
    let mut add = |name: &str, inode| tree.add(None, OsStr::new(name), FileKind::File, inode, 1).unwrap();
    let (first, second) = (add("first", 11), add("second", 12));
    let mut layout = TreeLayout::new(tree, None);
    layout.set(first, 4000, &[extent(0, 400, 4)]);
    layout.set(second, 40_000, &[extent(0, 800, 40)]);
    let steps = tar_steps(&layout.tree, false);
    // 512 + 4096 + 512 bytes precede the second file: 5120 of 10,240 bytes are left, two pages, so
    // that four are read; then eight.
    let reads = |reading| layout.plan(&steps, reading).reads().iter().map(|read| read.bytes / KIB).collect::<Vec<_>>();
    assert_eq!(reads(ReadPattern::GNU_TAR), [4, 16, 24]);
    assert_eq!(reads(ReadPattern::LARGE), [4, 40]);
}

#[test]
fn a_read_through_reads_each_range_once_and_small_gaps() {
    let read = |at, bytes| DiskRead { at: at * KIB, bytes: bytes * KIB };
    let plan = ReadPlan::of(vec![read(100, 8), read(40, 4), read(44, 8), read(112, 4), read(40, 4)]);
    let swept = |gap: u64| plan.read_through(8 * KIB, gap * KIB).reads().to_vec();
    assert_eq!(plan.sweep().reads(), [read(40, 4), read(40, 4), read(44, 8), read(100, 8), read(112, 4)]);
    assert_eq!(swept(0), [read(40, 8), read(48, 4), read(100, 8), read(112, 4)]);
    assert_eq!(swept(4), [read(40, 8), read(48, 4), read(100, 8), read(108, 8)]);
}

#[test]
fn a_contiguous_file_is_read_without_a_seek() {
    let plan = ReadPlan::contiguous(1 << 20, 300 * KIB + 1);
    assert_eq!((plan.reads().len(), plan.distance().seeks), (3, 0));
    assert_eq!(plan.reads().iter().map(|read| read.bytes).sum::<u64>(), 304 * KIB);
}

#[test]
fn a_layout_can_be_stored_as_text() {
    let (mut layout, [_, far, ..]) = layout();
    layout.set(far, 50_000, &[extent(0, 9000, 8), extent(16, 400, 4), extent(20, 9008, 4)]);
    let text = to_text(&layout);
    let wanted = "hoistway-laid 1\next4 4096 256 256\ntable 64 16\nd - 12 4096 1000:1\nf 0 40 50000 2250:2 4+100:1 2252:1\no 0 14\n\
                  d 0 11 4096 750:1\nf 3 13 4096 200:1\n";
    assert_eq!(text, wanted);
    let read = from_text(&text).unwrap();
    assert_eq!(to_text(&read), text);
    assert_eq!((read.extents(far), read.bytes(far)), (layout.extents(far), 50_000));
}

#[test]
fn a_parse_error_names_the_line() {
    let parse_error = |lines: &str| from_text(&format!("hoistway-laid 1\n{lines}")).unwrap_err().to_string();
    assert_eq!(from_text("what").unwrap_err().to_string(), "line 1: expected first line `hoistway-laid 1`");
    assert_eq!(parse_error("d - 2 4096\nf 1 3 5"), "line 3: the name of line 1 is not a directory of an earlier line");
    assert_eq!(parse_error("q"), "line 2: `q`: a line begins with ext4, table, d, f or o");
    assert_eq!(parse_error("d - two"), "line 2: inode is `two`: a number is needed");
    assert_eq!(parse_error("d -"), "line 2: inode: a number is missing");
    let extent = "is not an extent: expected FIRST:BLOCKS or IN_FILE+FIRST:BLOCKS";
    assert_eq!(parse_error("d - 2 9 5:0"), format!("line 2: `5:0` {extent}"));
    assert_eq!(
        parse_error("d - 2 9 5:2 1+9:1"),
        format!("line 2: `1+9:1` {extent}"),
        "it begins within the one before"
    );
    assert_eq!(parse_error("d - 2 9 99999999999999999999:1"), format!("line 2: `99999999999999999999:1` {extent}"));
    assert_eq!(parse_error("table 1 1"), "line 2: a table before the line `ext4`");
    assert_eq!(
        parse_error("ext4 4095 256 8"),
        "line 2: blocks of 4095 bytes: a power of two from 512 to 65536 is needed"
    );
    assert_eq!(
        parse_error("ext4 4096 256 0"),
        "line 2: 0 inodes of 256 bytes: at least 1, and none longer than a block"
    );
}
