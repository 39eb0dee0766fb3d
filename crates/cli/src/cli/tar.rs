//! `hoistway tar`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use clap::{ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};

/// `hoistway tar`.
#[derive(Args, Clone, Debug)]
#[command(
    disable_help_flag = true,
    after_help = "\
Examples:
  hoistway tar -cf mail.tar /srv/mail            the files in the order in which they lie on the disk
  hoistway tar -czvf src.tar.gz --exclude='*.o' src
  hoistway tar -caf home.tar.zst -C /home anna berta
  hoistway tar -c --xattrs --acls / --one-file-system | ssh there 'cat > root.tar'
  find . -newer stamp -print0 | hoistway tar -cf new.tar --no-recursion --null -T -

Archives are POSIX.1-2001 (pax): GNU tar, bsdtar, Python's tarfile and others extract them, as in `tar -xf mail.tar`, with --xattrs --acls what was \
archived with these. Options mean what they mean to GNU tar, and so do the first letters without a dash (`hoistway tar cvf x.tar dir`). A directory with \
something in it stands in the archive twice, before its files and behind them all (docs/tar.md says why); with --sort=name and --sort=none once.

The archive is written beside its name and gets it when it is whole and on the disk.

Exit codes: 0 all is well, 1 some files changed, shrank or vanished while they were read, 2 something is not in the archive, or there is none; 129, 130, 141 \
and 143 a hang-up, Ctrl-C, nobody who reads and SIGTERM."
)]
pub struct TarArgs {
    /// Write a new archive; the only thing that `hoistway tar` does, and to be said all the same
    #[arg(short, long)]
    pub create: bool,
    /// What it does not do: extract, list, append, update, compare, concatenate
    #[arg(short = 'x', long = "extract", visible_alias = "get", short_aliases = ['t', 'r', 'u', 'd', 'A'],
          aliases = ["list", "append", "update", "diff", "compare", "delete", "concatenate", "catenate"], hide = true)]
    pub other: bool,
    /// The archive; `-` is standard output, as it is without this, unless that is a terminal
    #[arg(short, long, value_name = "ARCHIVE")]
    pub file: Option<PathBuf>,
    /// Print the names of what is archived; on standard error if the archive goes to standard output
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
    /// What is archived, and where it lies.
    #[command(flatten)]
    pub sources: Sources,
    /// Names in files of names end with a zero byte, not with a newline
    #[arg(long)]
    pub null: bool,
    /// Archive directories without what is in them
    #[arg(long)]
    pub no_recursion: bool,
    /// Do not go into directories on other file systems
    #[arg(long)]
    pub one_file_system: bool,
    /// Follow symbolic links: archive what they lead to
    #[arg(short = 'h', long)]
    pub dereference: bool,
    /// Leave out what matches this, and all in it: `*` matches slashes too, a pattern may begin behind any slash, and one that ends with a slash
    /// means directories
    #[arg(long, value_name = "PATTERN", help_heading = "Leaving out")]
    pub exclude: Vec<OsString>,
    /// Leave out what matches the patterns in this file, one a line
    #[arg(short = 'X', long, value_name = "FILE", help_heading = "Leaving out")]
    pub exclude_from: Vec<PathBuf>,
    /// The order of the archive: where data lie on the disk, inode numbers, names, or as directories have them [default: block, or inode
    /// where the file system does not tell where data lie]
    #[arg(long, value_name = "ORDER", help_heading = "Order and reading ahead")]
    pub sort: Option<SortBy>,
    /// How many files are read ahead
    #[arg(long, value_name = "FILES", default_value_t = hoistway_order::archive::READ_AHEAD_FILES as u32,
          value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Order and reading ahead")]
    pub read_ahead: u32,
    /// How many bytes are read ahead, as in 64M
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = bytes, help_heading = "Order and reading ahead")]
    pub read_ahead_bytes: u64,
    /// How many threads read
    #[arg(long, value_name = "N", default_value_t = hoistway_order::archive::READERS as u16,
          value_parser = clap::value_parser!(u16).range(1..=1024), help_heading = "Order and reading ahead")]
    pub readers: u16,
    /// Archive extended attributes
    #[arg(long, help_heading = "What is stored of a file")]
    pub xattrs: bool,
    /// Archive access control lists
    #[arg(long, help_heading = "What is stored of a file")]
    pub acls: bool,
    /// Archive SELinux' labels
    #[arg(long, help_heading = "What is stored of a file")]
    pub selinux: bool,
    /// Archive the numbers of owners and groups alone
    #[arg(long, help_heading = "What is stored of a file")]
    pub numeric_owner: bool,
    /// Archive paths as they are, with leading slashes and `..`
    #[arg(short = 'P', long, help_heading = "What is stored of a file")]
    pub absolute_names: bool,
    /// Archive holes as holes, as it is without this
    #[arg(short = 'S', long, overrides_with = "no_sparse", help_heading = "What is stored of a file")]
    pub sparse: bool,
    /// Archive holes as zeros
    #[arg(long, help_heading = "What is stored of a file")]
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
    /// Compress as the end of the archive's name says: .gz, .tgz, .xz, .txz, .zst, .tzst
    #[arg(short = 'a', long, group = "compression", help_heading = "The archive")]
    pub auto_compress: bool,
    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,
}

/// What members are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortBy {
    /// Where their data begin on the disk
    Block,
    /// The number of their inode
    Inode,
    /// Their names, what is in a directory right after it
    Name,
    /// As directories have them
    None,
}

/// The format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatChoice {
    /// POSIX.1-2001
    #[value(alias = "posix")]
    Pax,
    /// GNU tar's: no nanoseconds, no attributes
    Gnu,
    /// POSIX.1-1988: short names, no nanoseconds, no attributes, no holes
    Ustar,
}

/// What is archived, in the order in which the command line says it: a directory counts for what stands behind it.
#[derive(Clone, Debug, Default)]
pub struct Sources(pub Vec<Source>);

/// One word about what is archived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Paths that follow begin here.
    Directory(PathBuf),
    /// A path.
    Path(PathBuf),
    /// A file of paths.
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
            .arg(argument(PATHS).num_args(0..).help("What is archived, directories with all that is in them"))
            .arg(
                argument(DIRECTORIES)
                    .short('C')
                    .long("directory")
                    .help("Paths that stand behind this, and lists, begin in this directory"),
            )
            .arg(
                argument(LISTS)
                    .short('T')
                    .long("files-from")
                    .value_name("FILE")
                    .help("Archive the paths in this file as well, one a line, as they are; `-` is standard input"),
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

/// Letters that take an argument each.
const WITH_ARGUMENT: &[u8] = b"fCTXH";

/// A command line of `hoistway tar` whose first argument is letters without a dash, as tar always had them, with dashes: the letters that take arguments take
/// those that follow, in order. Any other command line as it is.
pub fn with_dashes(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_tar = arguments.get(1).is_some_and(|command| command == "tar");
    let Some(letters) = arguments.get(2).filter(|_| is_tar).map(|first| first.as_bytes().to_vec()) else {
        return arguments;
    };
    // A path has other letters, or stands behind options.
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

/// Whether a path is standard input or output.
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
        let Some(cli::Command::Tar(args)) = cli::Cli::try_parse_from(words).expect("it is right").command else {
            panic!("tar was asked for");
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
    fn a_directory_counts_for_what_stands_behind_it() {
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
