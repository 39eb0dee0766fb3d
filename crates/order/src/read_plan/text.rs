//! The text form of a [`TreeLayout`], for storage and for machines without the disk.
//!
//! One line per item, words separated by blanks:
//!
//! ```text
//! hoistway-laid 1
//! ext4 4096 256 8192                       block size, inode size, inodes per group
//! table 1057 512                           per group: first block of the table, used blocks
//! d - 2 4096 9249:1                        a directory: line of its parent, inode, bytes, extents
//! f 0 1312 10240 33792:2 40+34816:1        a file in the directory of line 0
//! o 0 1313                                 a file of another type
//! ```
//!
//! Lines of names are numbered from 0. An extent is its first device block and its length in
//! blocks. A prefix `B+` is the first block within the file if the extent does not follow the
//! previous one. The line `ext4` sets the block size; the default is 4096. Names are not stored.

use std::ffi::OsStr;
use std::fmt::Write;

use super::{PAGE_BYTES, TreeLayout};
use crate::ext4::{InodeTable, InodeTables};
use crate::fiemap::{Extent, ExtentState};
use crate::tree::{EntryId, FileKind, Tree};

const HEAD: &str = "hoistway-laid 1";

/// A syntax error in the text form of a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct LayoutParseError {
    /// Line number, from 1.
    pub line: usize,
    /// The error and the expected form.
    pub message: String,
}

/// Returns the text form of a layout, without names and unwritten extents. Offsets are rounded down
/// to whole blocks.
pub fn to_text(layout: &TreeLayout) -> String {
    let mut text = String::from(HEAD);
    let block_bytes = layout.inodes.as_ref().map_or(PAGE_BYTES, |tables| tables.block_bytes);
    // Writing to a string cannot fail.
    if let Some(tables) = &layout.inodes {
        let _ = write!(text, "\next4 {} {} {}", tables.block_bytes, tables.inode_bytes, tables.inodes_per_group);
        for table in &tables.tables {
            let _ = write!(text, "\ntable {} {}", table.first_block, table.used_blocks);
        }
    }
    for id in layout.tree.ids() {
        let entry = layout.tree.entry(id);
        let letter = match entry.kind {
            FileKind::Directory => 'd',
            FileKind::File => 'f',
            _ => 'o',
        };
        let parent = entry.parent.map_or("-".to_owned(), |parent| parent.index().to_string());
        let _ = write!(text, "\n{letter} {parent} {}", entry.inode);
        if letter != 'o' {
            let _ = write!(text, " {}", layout.bytes(id));
            let mut end = 0;
            for extent in layout.extents(id).iter().filter(|extent| extent.state == ExtentState::Written) {
                let [logical, physical, blocks] =
                    [extent.logical, extent.physical, extent.bytes].map(|at| at / block_bytes);
                let hole = if logical == end { String::new() } else { format!("{logical}+") };
                let _ = write!(text, " {hole}{physical}:{blocks}");
                end = logical + blocks;
            }
        }
    }
    text.push('\n');
    text
}

/// Parses the text form of a layout. The names of the tree are numbers.
///
/// # Errors
/// [`LayoutParseError`] for the first invalid line.
pub fn from_text(text: &str) -> Result<TreeLayout, LayoutParseError> {
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    if lines.next().map(|(_, line)| line.trim_end()) != Some(HEAD) {
        return Err(LayoutParseError { line: 1, message: format!("expected first line `{HEAD}`") });
    }
    let mut reader =
        Reader { tree: Tree::new(), ids: Vec::new(), data: Vec::new(), inodes: None, block_bytes: PAGE_BYTES };
    for (line, words) in lines {
        reader.line(words).map_err(|message| LayoutParseError { line, message })?;
    }
    let Reader { tree, ids, data, inodes, .. } = reader;
    let mut layout = TreeLayout::new(tree, inodes);
    for (id, (bytes, extents)) in ids.into_iter().zip(data) {
        layout.set(id, bytes, &extents);
    }
    Ok(layout)
}

struct Reader {
    tree: Tree,
    ids: Vec<EntryId>,
    data: Vec<(u64, Vec<Extent>)>,
    inodes: Option<InodeTables>,
    block_bytes: u64,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        match words.next() {
            None => Ok(()),
            Some("ext4") => self.ext4(words),
            Some("table") => self.table(words),
            Some("d") => self.name(FileKind::Directory, words),
            Some("f") => self.name(FileKind::File, words),
            Some("o") => self.name(FileKind::Symlink, words),
            Some(other) => Err(format!("`{other}`: a line begins with ext4, table, d, f or o")),
        }
    }

    fn ext4<'t>(&mut self, mut words: impl Iterator<Item = &'t str>) -> Result<(), String> {
        let mut next = |message| number(words.next(), message);
        let [block_bytes, inode_bytes, inodes_per_group] =
            [next("bytes of a block")?, next("bytes of an inode")?, next("inodes of a group")?];
        if !block_bytes.is_power_of_two() || !(512..=65_536).contains(&block_bytes) {
            return Err(format!("blocks of {block_bytes} bytes: a power of two from 512 to 65536 is needed"));
        }
        if inodes_per_group == 0 || !(1..=block_bytes).contains(&inode_bytes) {
            return Err(format!(
                "{inodes_per_group} inodes of {inode_bytes} bytes: at least 1, and none longer than a block"
            ));
        }
        self.block_bytes = block_bytes;
        self.inodes = Some(InodeTables { block_bytes, inode_bytes, inodes_per_group, tables: Vec::new() });
        Ok(())
    }

    fn table<'t>(&mut self, mut words: impl Iterator<Item = &'t str>) -> Result<(), String> {
        let tables = self.inodes.as_mut().ok_or("a table before the line `ext4`")?;
        let first_block = self.block_bytes.checked_mul(number(words.next(), "first block")?);
        let first_block = first_block.ok_or("a table beyond 2^64 bytes")? / self.block_bytes;
        tables.tables.push(InodeTable { first_block, used_blocks: number(words.next(), "used blocks")?.min(1 << 32) });
        Ok(())
    }

    fn name<'t>(&mut self, kind: FileKind, mut words: impl Iterator<Item = &'t str>) -> Result<(), String> {
        let parent = match words.next() {
            Some("-") => None,
            word => Some(self.directory(number(word, "directory")?)?),
        };
        let inode = number(words.next(), "inode")?;
        let bytes = if kind == FileKind::Symlink { 0 } else { number(words.next(), "bytes")? };
        let mut extents: Vec<Extent> = Vec::new();
        for word in words {
            let end = extents.last().map_or(0, |last| last.logical + last.bytes);
            extents.push(extent(word, end, self.block_bytes)?);
        }
        let name = self.tree.len().to_string();
        let id = self.tree.add(parent, OsStr::new(&name), kind, inode, 0).map_err(|full| full.to_string())?;
        self.ids.push(id);
        self.data.push((bytes, extents));
        Ok(())
    }

    fn directory(&self, number: u64) -> Result<EntryId, String> {
        let id = usize::try_from(number).ok().and_then(|number| self.ids.get(number)).copied();
        let id = id.filter(|id| self.tree.entry(*id).kind == FileKind::Directory);
        id.ok_or_else(|| format!("the name of line {number} is not a directory of an earlier line"))
    }
}

/// Parses an extent: `[B+]B:COUNT`.
fn extent(word: &str, end: u64, block_bytes: u64) -> Result<Extent, String> {
    let wrong = || format!("`{word}` is not an extent: expected FIRST:BLOCKS or IN_FILE+FIRST:BLOCKS");
    let (logical, place) = match word.split_once('+') {
        Some((logical, place)) => (Some(logical), place),
        None => (None, word),
    };
    let (first, blocks) = place.split_once(':').ok_or_else(wrong)?;
    let bytes = |text: &str| text.parse::<u64>().ok()?.checked_mul(block_bytes).filter(|bytes| *bytes < 1 << 62);
    let logical =
        logical.map_or(Some(end), bytes).filter(|logical| (end..1 << 62).contains(logical)).ok_or_else(wrong)?;
    let (physical, bytes) =
        (bytes(first).ok_or_else(wrong)?, bytes(blocks).filter(|bytes| *bytes > 0).ok_or_else(wrong)?);
    Ok(Extent::on_disk(logical, physical, bytes))
}

fn number(word: Option<&str>, message: &str) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("{message}: a number is missing"))?;
    word.parse().map_err(|_| format!("{message} is `{word}`: a number is needed"))
}
