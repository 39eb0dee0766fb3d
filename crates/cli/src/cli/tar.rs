//! Arguments of `hoistway tar`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};

use crate::exit_status;

/// Arguments of `hoistway tar`.
#[derive(Args, Clone, Debug)]
#[command(
    disable_help_flag = true,
    after_help = exit_status::appended("\
Examples:
  hoistway tar -cf mail.tar /srv/mail            files in physical disk order
  hoistway tar -czvf src.tar.gz --exclude='*.o' src
  hoistway tar -caf home.tar.zst -C /home anna berta
  hoistway tar -c --xattrs --acls / --one-file-system | ssh there 'cat > root.tar'
  find . -newer stamp -print0 | hoistway tar -cf new.tar --no-recursion --null -T -

Archives have the format of POSIX.1-2001 (pax). GNU tar, bsdtar, Python's tarfile and others extract them, as in `tar -xf mail.tar`; what was archived with \
--xattrs or --acls is extracted with the same options. Options have the meaning of GNU tar, also as letters without a dash (`hoistway tar cvf x.tar dir`). A \
directory with contents is stored twice, before its files and after all files (docs/tar.md has the reason); with --sort=name and --sort=none once.

The archive is written to a temporary file, which is synced and renamed at the end.", "hoistway-tar")
)]
pub struct TarArgs {
    /// Write a new archive; required, as in GNU tar
    #[arg(short, long)]
    pub create: bool,
    /// Unsupported modes: extract, list, append, update, compare, concatenate
    #[arg(short = 'x', long = "extract", visible_alias = "get", short_aliases = ['t', 'r', 'u', 'd', 'A'],
          aliases = ["list", "append", "update", "diff", "compare", "delete", "concatenate", "catenate"], hide = true)]
    pub other: bool,
    /// The archive; `-` is standard output, the default unless that is a terminal
    #[arg(short, long, value_name = "ARCHIVE")]
    pub file: Option<PathBuf>,
    /// Print the names of all members; on standard error if the archive is on standard output
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// The paths to archive and their directories.
    #[command(flatten)]
    pub sources: Sources,
    /// Lists of -T are zero-terminated, not one path per line
    #[arg(long)]
    pub null: bool,
    /// Archive directories without their contents
    #[arg(long)]
    pub no_recursion: bool,
    /// Do not enter directories on other file systems
    #[arg(long)]
    pub one_file_system: bool,
    /// Follow symbolic links: archive their targets
    #[arg(short = 'h', long)]
    pub dereference: bool,
    /// Exclude matching files, and directories with their contents: `*` also matches slashes, a
    /// pattern may start after any slash, and a final slash restricts it to directories
    #[arg(long, value_name = "PATTERN", help_heading = "Exclusion")]
    pub exclude: Vec<OsString>,
    /// Exclude files that match the patterns in this file, one per line
    #[arg(short = 'X', long, value_name = "FILE", help_heading = "Exclusion")]
    pub exclude_from: Vec<PathBuf>,
    /// The order of the archive: first data block, inode number, name, or directory order [default:
    /// block, or inode if the file system does not report extents]
    #[arg(long, value_name = "ORDER", help_heading = "Order and read-ahead")]
    pub sort: Option<SortBy>,
    /// Read-ahead in files
    #[arg(long, value_name = "FILES", default_value_t = hoistway_order::archive::READ_AHEAD_FILES as u32,
          value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Order and read-ahead")]
    pub read_ahead: u32,
    /// Read-ahead in bytes, as in 64M
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = bytes, help_heading = "Order and read-ahead")]
    pub read_ahead_bytes: u64,
    /// Number of reader threads
    #[arg(long, value_name = "N", default_value_t = hoistway_order::archive::READERS as u16,
          value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Order and read-ahead")]
    pub readers: u16,
    /// Archive extended attributes
    #[arg(long, help_heading = "Stored attributes")]
    pub xattrs: bool,
    /// Archive access control lists
    #[arg(long, help_heading = "Stored attributes")]
    pub acls: bool,
    /// Archive SELinux labels
    #[arg(long, help_heading = "Stored attributes")]
    pub selinux: bool,
    /// Archive owner and group numbers without names
    #[arg(long, help_heading = "Stored attributes")]
    pub numeric_owner: bool,
    /// Keep leading slashes and `..` in member names
    #[arg(short = 'P', long, help_heading = "Stored attributes")]
    pub absolute_names: bool,
    /// Archive holes as holes (the default)
    #[arg(short = 'S', long, overrides_with = "no_sparse", help_heading = "Stored attributes")]
    pub sparse: bool,
    /// Archive holes as zeros
    #[arg(long, help_heading = "Stored attributes")]
    pub no_sparse: bool,
    /// The format of the archive
    #[arg(short = 'H', long, value_name = "FORMAT", default_value = "pax", help_heading = "The archive")]
    pub format: FormatChoice,
    /// Compress with gzip
    #[arg(short = 'z', long, group = "compression", help_heading = "The archive")]
    pub gzip: bool,
    /// Compress with xz
    #[arg(short = 'J', long, group = "compression", help_heading = "The archive")]
    pub xz: bool,
    /// Compress with zstd
    #[arg(long, group = "compression", help_heading = "The archive")]
    pub zstd: bool,
    /// Choose the compression by the suffix of the archive's name: .gz, .tgz, .xz, .txz, .zst,
    /// .tzst
    #[arg(short = 'a', long, group = "compression", help_heading = "The archive")]
    pub auto_compress: bool,
    /// Write to a device even if it is in use, for example mounted
    #[arg(long, help_heading = "The archive")]
    pub force_in_use: bool,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// The sort orders of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// First data block on the disk
    Block,
    /// Inode number
    Inode,
    /// Name; a directory precedes its contents
    Name,
    /// Directory order
    None,
}

/// The format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatChoice {
    /// The format of POSIX.1-2001
    #[value(alias = "posix")]
    Pax,
    /// GNU tar's: no nanoseconds, no attributes
    Gnu,
    /// POSIX.1-1988: short names, no nanoseconds, no attributes, no holes
    Ustar,
}

/// The sources of an archive in command line order. A directory applies to the sources behind it.
#[derive(Clone, Debug, Default)]
pub struct Sources(pub Vec<Source>);

/// One source argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Base directory of the following paths.
    Directory(PathBuf),
    /// A path.
    Path(PathBuf),
    /// A file with a list of paths.
    List(PathBuf),
}

const PATHS: &str = "PATH";
const DIRECTORIES: &str = "DIR";
const LISTS: &str = "LIST";

impl Args for Sources {
    fn augment_args(command: Command) -> Command {
        let argument = |id: &'static str| {
            clap::Arg::new(id).action(ArgAction::Append).value_parser(clap::value_parser!(PathBuf)).value_name(id)
        };
        command
            .arg(argument(PATHS).num_args(0..).help("Paths to archive, directories with their contents"))
            .arg(
                argument(DIRECTORIES)
                    .short('C')
                    .long("directory")
                    .help("Base directory of the following paths and lists"),
            )
            .arg(
                argument(LISTS)
                    .short('T')
                    .long("files-from")
                    .value_name("FILE")
                    .help("Also archive the paths in this file, one per line, taken literally; `-` is standard input"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Sources {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut found: Vec<(usize, Source)> = Vec::new();
        let of = |id, make: fn(PathBuf) -> Source| {
            let values = matches.get_many::<PathBuf>(id).into_iter().flatten();
            let places = matches.indices_of(id).into_iter().flatten();
            places.zip(values).map(move |(place, value)| (place, make(value.clone()))).collect::<Vec<_>>()
        };
        found.extend(of(PATHS, Source::Path));
        found.extend(of(DIRECTORIES, Source::Directory));
        found.extend(of(LISTS, Source::List));
        found.sort_by_key(|(place, _)| *place);
        Ok(Sources(found.into_iter().map(|(_, source)| source).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    let bytes = hoistway_units::parse_bytes(text).map_err(|error| error.to_string())?;
    if bytes > 1 << 40 { Err("at most 1T".to_owned()) } else { Ok(bytes) }
}

/// Option letters with an argument.
const WITH_ARGUMENT: &[u8] = b"fCTXH";

/// Converts the traditional form of `hoistway tar`, whose first argument has option letters without
/// a dash, into options with dashes. Option letters with an argument take the following arguments
/// in order. Other command lines are unchanged.
pub fn with_dashes(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_tar = arguments.get(1).is_some_and(|command| command == "tar");
    let Some(letters) = arguments.get(2).filter(|_| is_tar).map(|first| first.as_bytes().to_vec()) else {
        return arguments;
    };
    // A path has other characters, or follows an option.
    let is_bundle = !letters.is_empty() && letters.iter().all(u8::is_ascii_alphabetic) && {
        let modes = letters.iter().filter(|letter| b"cxtruAd".contains(letter)).count();
        modes > 0 && !letters.starts_with(b"-")
    };
    if !is_bundle {
        return arguments;
    }
    let mut rest = arguments.split_off(3).into_iter();
    arguments.truncate(2);
    for letter in letters {
        arguments.push(OsString::from_vec(vec![b'-', letter]));
        if WITH_ARGUMENT.contains(&letter) {
            arguments.extend(rest.next());
        }
    }
    arguments.extend(rest);
    arguments
}

/// Returns true if a path means standard input or output.
pub fn is_standard(path: &OsStr) -> bool {
    path == "-"
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli;

    fn parsed(words: &[&str]) -> TarArgs {
        let words = with_dashes(["hoistway", "tar"].iter().chain(words).map(OsString::from));
        let Some(cli::Command::Tar(args)) = cli::Cli::try_parse_from(words).expect("valid arguments").command else {
            panic!("not the tar command");
        };
        *args
    }

    #[test]
    fn letters_without_a_dash_take_their_arguments_in_order() {
        let args = parsed(&["cvCf", "there", "x.tar", "a", "-z"]);
        assert!(args.create && args.verbose == 1 && args.gzip);
        assert_eq!(args.file.as_deref(), Some("x.tar".as_ref()));
        assert_eq!(args.sources.0, [Source::Directory("there".into()), Source::Path("a".into())]);
    }

    #[test]
    fn a_directory_applies_to_the_sources_behind_it() {
        let args = parsed(&["-cf", "x.tar", "a", "-C", "one", "b", "-T", "list", "-C", "two", "c"]);
        let expected = [
            Source::Path("a".into()),
            Source::Directory("one".into()),
            Source::Path("b".into()),
            Source::List("list".into()),
            Source::Directory("two".into()),
            Source::Path("c".into()),
        ];
        assert_eq!(args.sources.0, expected);
    }

    #[test]
    fn other_commands_are_left_as_they_are() {
        let words = ["hoistway", "elevators", "cfq"].map(OsString::from);
        assert_eq!(with_dashes(words.clone()), words);
        let words = ["hoistway", "tar", "-cf", "x"].map(OsString::from);
        assert_eq!(with_dashes(words.clone()), words);
    }
}
