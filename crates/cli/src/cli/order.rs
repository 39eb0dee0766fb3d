//! Arguments of `hoistway order`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hoistway_order::{FileKind, SortKey};

use crate::exit_status;

/// Arguments of `hoistway order`.
#[derive(Args, Debug)]
#[command(after_help = exit_status::appended("\
Examples:
  hoistway order -0 photos | tar --no-recursion --null -T - -cf photos.tar
  hoistway order -0 --type f photos | xargs -0 sha256sum > sums
  hoistway order -0 --type f photos | xargs -0 -n 64 cat > /dev/null      fill the page cache for a program with its own order
  find . -name '*.eml' -print0 | hoistway order -0 --files-from0 - | cpio -0 -o > mail.cpio
  hoistway order --explain photos                                        estimate the gain on a drive like that of the files
  hoistway order --explain photos --drive cmr-8tb --report seeks.html

The list begins with directories, each before its contents. Then come entries without data on the disk (links, empty files, data within inodes) and files with \
an unknown disk offset, both by inode number, and then all other files from the front of the disk to its end. File systems are listed one after the other. \
Hard links are adjacent.

Files that cannot be opened are omitted and reported at the end. docs/order.md has details, and recipes for rsync, borg and restic.", "hoistway-order"))]
pub struct OrderArgs {
    /// Paths to list, directories with their contents [default: the working directory]
    #[arg(value_name = "PATH", conflicts_with_all = ["files_from", "files_from0"])]
    pub paths: Vec<PathBuf>,
    /// End each path with a zero byte instead of a newline, as `find -print0` does
    #[arg(short = '0', long)]
    pub null: bool,
    /// Sort order
    #[arg(long, value_enum, default_value = "auto")]
    pub by: ByChoice,
    /// List only these file types: f files, d directories, l symbolic links, p pipes, s sockets, b
    /// and c devices; separated by commas
    #[arg(short = 't', long = "type", value_name = "KIND,...", value_delimiter = ',', value_enum)]
    pub kinds: Vec<KindChoice>,
    /// List directories on other file systems without their contents
    #[arg(short = 'x', long)]
    pub one_file_system: bool,
    /// Follow symbolic links among the PATHs
    #[arg(short = 'H', long, conflicts_with = "dereference")]
    pub follow_arguments: bool,
    /// Follow all symbolic links
    #[arg(short = 'L', long)]
    pub dereference: bool,
    /// Sort the paths in this file, one per line; - for standard input. Directories are not
    /// entered, and a repeated path is printed once (once per window with --window)
    #[arg(long, value_name = "FILE", conflicts_with = "files_from0")]
    pub files_from: Option<PathBuf>,
    /// Sort the zero-terminated paths in this file; - for standard input
    #[arg(long, value_name = "FILE")]
    pub files_from0: Option<PathBuf>,
    /// Sort N names at a time: prints the first names early and limits memory, except for
    /// directories that are still to be read [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub window: Option<u32>,
    /// Write dirty data to the disk first, so that all files have a disk offset
    #[arg(long)]
    pub sync: bool,
    /// Number of threads that look up disk offsets [default: one per processor, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: Option<u16>,
    /// Print JSON: one object per line and path; with --explain one document
    #[arg(long)]
    pub json: bool,
    /// Print the cost of each order instead of the paths: files, extents, seek distance, and time
    /// on a drive
    #[arg(long, conflicts_with_all = ["null", "window", "kinds", "threads", "by"], help_heading = "Explaining")]
    pub explain: bool,
    /// Drive to simulate: a name from `hoistway drives`, or a drive file [default: the model that
    /// is most like the device of the files; without a device ssd-sata-consumer; cmr-8tb or
    /// cmr-20tb if the files need a larger drive]
    #[arg(long, value_name = "NAME|FILE.toml", requires = "explain", help_heading = "Explaining")]
    pub drive: Option<String>,
    /// Write a self-contained HTML page with the head movement of each order
    #[arg(long, value_name = "FILE.html", requires = "explain", help_heading = "Explaining")]
    pub report: Option<PathBuf>,
}

/// The sort orders of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ByChoice {
    /// First data block; by inode, with a note, on a file system that does not report extents
    Auto,
    /// Like auto, but fail on a file system that does not report extents
    Block,
    /// Inode number: no file is opened
    Inode,
    /// Path, in alphabetical order
    Name,
    /// Directory order
    None,
}

impl ByChoice {
    /// Returns the sort key of the library.
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

/// The file types of `find -type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KindChoice {
    /// Regular files
    F,
    /// Directories (without their contents)
    D,
    /// Symbolic links
    L,
    /// Named pipes
    P,
    /// Unix domain sockets
    S,
    /// Block devices
    B,
    /// Character devices
    C,
}

impl KindChoice {
    /// Returns the file type of the library.
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
