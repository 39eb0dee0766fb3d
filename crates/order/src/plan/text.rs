//! Where a tree lies, as text: so that it can be kept, compressed, and read where the disk is not.
//!
//! One line each, words with blanks between them:
//!
//! ```text
//! hoistway-laid 1
//! ext4 4096 256 8192                       bytes of a block and of an inode, inodes of a group
//! table 1057 512                           of each group: the first block, and how many were ever used
//! d - 2 4096 9249:1                        a directory: in which line it lies, its inode, bytes, extents
//! f 0 1312 10240 33792:2 40+34816:1        a file in the first line's directory
//! o 0 1313                                 anything else
//! ```
//!
//! Lines of names are counted from 0. An extent is its first block on the disk and how many; `B+` before it is its first block in the file where that is not the end of the one
//! before. Blocks have the bytes that the line `ext4` tells, or 4096. Names are not kept.

use std::ffi::OsStr;
use std::fmt::Write;

use super::{Laid, PAGE_BYTES};
use crate::ext4::{InodeTable, InodeTables};
use crate::fiemap::{At, Extent};
use crate::tree::{Id, Kind, Tree};

const HEAD: &str = "hoistway-laid 1";

/// Why a text does not tell where a tree lies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TextError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

/// The text of `laid`, without names and without what is not on the disk. Places are rounded down to whole blocks.
pub fn to_text(laid: &Laid) -> String {
    let mut text = String::from(HEAD);
    let block_bytes = laid.inodes.as_ref().map_or(PAGE_BYTES, |tables| tables.block_bytes);
    // Writing to a string cannot fail.
    if let Some(tables) = &laid.inodes {
        let _ = write!(text, "\next4 {} {} {}", tables.block_bytes, tables.inode_bytes, tables.inodes_per_group);
        for table in &tables.tables {
            let _ = write!(text, "\ntable {} {}", table.first_block, table.used_blocks);
        }
    }
    for id in laid.tree.ids() {
        let entry = laid.tree.entry(id);
        let letter = match entry.kind {
            Kind::Directory => 'd',
            Kind::File => 'f',
            _ => 'o',
        };
        let parent = entry.parent.map_or("-".to_owned(), |parent| parent.index().to_string());
        let _ = write!(text, "\n{letter} {parent} {}", entry.inode);
        if letter != 'o' {
            let _ = write!(text, " {}", laid.bytes(id));
            let mut end = 0;
            for extent in laid.extents(id).iter().filter(|extent| extent.at == At::Disk) {
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

/// The tree that `text` tells of; names are numbers.
///
/// # Errors
/// [`TextError`] for the first line that is wrong.
pub fn from_text(text: &str) -> Result<Laid, TextError> {
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    if lines.next().map(|(_, line)| line.trim_end()) != Some(HEAD) {
        return Err(TextError { line: 1, what: format!("it would begin with `{HEAD}`") });
    }
    let mut reader =
        Reader { tree: Tree::new(), ids: Vec::new(), data: Vec::new(), inodes: None, block_bytes: PAGE_BYTES };
    for (line, words) in lines {
        reader.line(words).map_err(|what| TextError { line, what })?;
    }
    let Reader { tree, ids, data, inodes, .. } = reader;
    let mut laid = Laid::new(tree, inodes);
    for (id, (bytes, extents)) in ids.into_iter().zip(data) {
        laid.set(id, bytes, &extents);
    }
    Ok(laid)
}

struct Reader {
    tree: Tree,
    ids: Vec<Id>,
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
            Some("d") => self.name(Kind::Directory, words),
            Some("f") => self.name(Kind::File, words),
            Some("o") => self.name(Kind::Symlink, words),
            Some(other) => Err(format!("`{other}`: a line begins with ext4, table, d, f or o")),
        }
    }

    fn ext4<'t>(&mut self, mut words: impl Iterator<Item = &'t str>) -> Result<(), String> {
        let mut next = |what| number(words.next(), what);
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

    fn name<'t>(&mut self, kind: Kind, mut words: impl Iterator<Item = &'t str>) -> Result<(), String> {
        let parent = match words.next() {
            Some("-") => None,
            word => Some(self.directory(number(word, "directory")?)?),
        };
        let inode = number(words.next(), "inode")?;
        let bytes = if kind == Kind::Symlink { 0 } else { number(words.next(), "bytes")? };
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

    fn directory(&self, number: u64) -> Result<Id, String> {
        let id = usize::try_from(number).ok().and_then(|number| self.ids.get(number)).copied();
        let id = id.filter(|id| self.tree.entry(*id).kind == Kind::Directory);
        id.ok_or_else(|| format!("line of names {number} is no directory that stands before"))
    }
}

/// `[B+]B:COUNT`.
fn extent(word: &str, end: u64, block_bytes: u64) -> Result<Extent, String> {
    let wrong = || format!("`{word}` is no extent: FIRST:BLOCKS, or IN_FILE+FIRST:BLOCKS, is");
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

fn number(word: Option<&str>, what: &str) -> Result<u64, String> {
    let word = word.ok_or_else(|| format!("{what}: a number is missing"))?;
    word.parse().map_err(|_| format!("{what} is `{word}`: a number is needed"))
}
