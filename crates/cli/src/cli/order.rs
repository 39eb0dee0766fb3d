//! `hoistway order`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hoistway_order::{FileKind, SortKey};

/// `hoistway order`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  hoistway order -0 photos | tar --no-recursion --null -T - -cf photos.tar
  hoistway order -0 --type f photos | xargs -0 sha256sum > sums
  hoistway order -0 --type f photos | xargs -0 -n 64 cat > /dev/null      read it all into the cache, before a program that has an order of its own
  find . -name '*.eml' -print0 | hoistway order -0 --files-from0 - | cpio -0 -o > mail.cpio
  hoistway order --explain photos                                        what it would be worth, on a disk of 2006
  hoistway order --explain photos --drive cmr-8tb --report seeks.html

Directories come first, each before what is in it; then what needs no data read (links, empty files, data within inodes), by inode number; then \
files whose place the file system does not tell, by inode number; then all others from the front of the disk to its end. Several disks come one after the other. \
Hard links stand together.

A file that cannot be opened is left out and told at the end. docs/order.md has more, and recipes for rsync, borg and restic.

Exit codes: 0 all is well, 1 something was left out or could not be done, 2 the command line is wrong.")]
pub struct OrderArgs {
    /// What to list, directories with all that is in them [default: the working directory]
    #[arg(value_name = "PATH", conflicts_with_all = ["files_from", "files_from0"])]
    pub paths: Vec<PathBuf>,
    /// End each path with a zero byte instead of a newline, as `find -print0` does
    #[arg(short = '0', long)]
    pub null: bool,
    /// What to sort by
    #[arg(long, value_enum, default_value = "auto")]
    pub by: ByChoice,
    /// List only these kinds: f files, d directories, l symbolic links, p pipes, s sockets, b and c devices; with commas between them
    #[arg(short = 't', long = "type", value_name = "KIND,...", value_delimiter = ',', value_enum)]
    pub kinds: Vec<KindChoice>,
    /// List the directories on other file systems, but not what is in them
    #[arg(short = 'x', long)]
    pub one_file_system: bool,
    /// Follow the symbolic links among the PATHs
    #[arg(short = 'H', long, conflicts_with = "dereference")]
    pub follow_arguments: bool,
    /// Follow all symbolic links
    #[arg(short = 'L', long)]
    pub dereference: bool,
    /// Order the paths in this file, one a line; - for standard input. Directories are not entered, and what stands there twice (within a window, with --window) is printed once
    #[arg(long, value_name = "FILE", conflicts_with = "files_from0")]
    pub files_from: Option<PathBuf>,
    /// The same with a zero byte after each path
    #[arg(long, value_name = "FILE")]
    pub files_from0: Option<PathBuf>,
    /// Sort so many names at a time: the first are printed early, and no more are kept in memory, but for directories that are still to be read [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub window: Option<u32>,
    /// Have files that are in memory alone written to the disk first, so that they have a place there
    #[arg(long)]
    pub sync: bool,
    /// How many threads ask for places [default: as many as there are processors, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: Option<u16>,
    /// Print JSON: one object a line for each path; with --explain one document
    #[arg(long)]
    pub json: bool,
    /// Print what each order costs instead of the paths: files, extents, how far a disk's arm travels, and how long a drive takes
    #[arg(long, conflicts_with_all = ["null", "window", "kinds", "threads", "by"], help_heading = "Explaining")]
    pub explain: bool,
    /// The drive that is timed: a name that `hoistway drives` lists, or a profile of your own [default: sata-7200-2006; cmr-8tb or cmr-20tb if files lie further out]
    #[arg(long, value_name = "NAME|FILE.toml", requires = "explain", help_heading = "Explaining")]
    pub drive: Option<String>,
    /// Write a page that shows where the arm goes under each order, one HTML file that needs nothing else
    #[arg(long, value_name = "FILE.html", requires = "explain", help_heading = "Explaining")]
    pub report: Option<PathBuf>,
}

/// What to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByChoice {
    /// Where the data begin on the disk; by inode where a file system does not tell, which is said
    Auto,
    /// The same, but a file system that does not tell is a failure
    Block,
    /// Inode number: no file is opened
    Inode,
    /// Path
    Name,
    /// As the directories have them
    None,
}

impl ByChoice {
    /// As the library has it.
    pub fn by(self) -> SortKey {
        match self {
            ByChoice::Auto => SortKey::Auto,
            ByChoice::Block => SortKey::Block,
            ByChoice::Inode => SortKey::Inode,
            ByChoice::Name => SortKey::Name,
            ByChoice::None => SortKey::Readdir,
        }
    }
}

/// A kind of file, as `find -type` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KindChoice {
    /// Regular files
    F,
    /// Directories
    D,
    /// Symbolic links
    L,
    /// Named pipes
    P,
    /// Sockets
    S,
    /// Devices with blocks
    B,
    /// Devices with characters
    C,
}

impl KindChoice {
    /// As the library has it.
    pub fn kind(self) -> FileKind {
        match self {
            KindChoice::F => FileKind::File,
            KindChoice::D => FileKind::Directory,
            KindChoice::L => FileKind::Symlink,
            KindChoice::P => FileKind::Fifo,
            KindChoice::S => FileKind::Socket,
            KindChoice::B => FileKind::BlockDevice,
            KindChoice::C => FileKind::CharacterDevice,
        }
    }
}
