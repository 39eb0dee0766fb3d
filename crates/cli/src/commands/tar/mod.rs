//! `hoistway tar`: an archive in the order of the disk.

mod output;
mod sources;
mod tell;

use std::ffi::OsStr;
use std::io;

use anyhow::{Error, Result};
use hoistway_order::archive::{self, Attributes, Excludes, Format, Told, Trouble, WriteError};
use hoistway_order::walk::Once;
use hoistway_order::{By, Follow, Kind, Tree, place};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cli::{FormatChoice, SortBy, Source, TarArgs};
use crate::failure::{Exit, UsageError, tell as say};
use crate::output::Out;
use crate::progress::Bar;
use output::Output;
use tell::Teller;

/// What GNU tar ends with when there is no archive.
const FATAL: Exit = Exit::Code(2);
/// What shells have for a program that wrote where nobody reads: 128 and the signal's number.
const NOBODY_READS: Exit = Exit::Code(141);

/// Writes the archive.
pub fn run(args: &TarArgs, out: &mut Out) -> Result<Exit> {
    check(args)?;
    let run = Run { args, teller: Teller::new(args, out) };
    match run.run() {
        Ok(exit) => Ok(exit),
        Err(error) if error.is::<UsageError>() => Err(error),
        Err(error) => {
            let write = error.downcast_ref::<io::Error>();
            if write.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                return Ok(NOBODY_READS);
            }
            say(&format!("hoistway tar: {}", words(&error)));
            Ok(FATAL)
        }
    }
}

/// An error and its causes; the system's in its words, without a number and without the paths that a library adds.
fn words(error: &Error) -> String {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        let text = cause.to_string();
        let ends = if cause.is::<io::Error>() { text.find(" (os error") } else { None };
        text[..ends.unwrap_or(text.len())].to_owned()
    };
    error.chain().map(of).collect::<Vec<_>>().join(": ")
}

/// What can be told to be wrong before anything is done.
fn check(args: &TarArgs) -> Result<()> {
    let wrong = |what: &str| Err(UsageError(what.to_owned()).into());
    if args.other {
        return wrong(
            "hoistway tar writes archives and does nothing else: `tar -xf ARCHIVE` extracts them, `tar -tf ARCHIVE` lists them",
        );
    }
    if !args.create {
        return wrong("say that an archive is to be written, as in `hoistway tar -cf x.tar DIR`");
    }
    if args.sources.0.iter().all(|source| matches!(source, Source::Directory(_))) {
        return wrong("no archive of nothing is written: name files and directories, or a list of them with -T");
    }
    let has_attributes = args.xattrs || args.acls || args.selinux;
    if has_attributes && args.format != FormatChoice::Pax {
        return wrong("--xattrs, --acls and --selinux need the format pax");
    }
    Ok(())
}

struct Run<'a> {
    args: &'a TarArgs,
    teller: Teller<'a>,
}

impl Run<'_> {
    fn run(mut self) -> Result<Exit> {
        let args = self.args;
        allow_open_files();
        let excludes = self.excludes()?;
        let mut output = Output::open(args)?;
        let mut tree = Tree::new();
        self.find(&excludes, &mut tree)?;
        let by = self.place(&mut tree);
        let own = output.own();
        let temporary = output.temporary();
        let bar = Bar::new(tree.len() as u64, "files archived");
        let progress = |members| bar.set(members);
        let options = archive::Options {
            format: match args.format {
                FormatChoice::Pax => Format::Pax,
                FormatChoice::Gnu => Format::Gnu,
                FormatChoice::Ustar => Format::Ustar,
            },
            by,
            is_list: args.no_recursion,
            follow: follow(args),
            numeric_owner: args.numeric_owner,
            absolute_names: args.absolute_names,
            sparse: !args.no_sparse && args.format != FormatChoice::Ustar,
            attributes: Attributes { xattrs: args.xattrs, acls: args.acls, selinux: args.selinux },
            archive: &own,
            tell_members: args.verbose > 0,
            readers: usize::from(args.readers),
            read_ahead_files: args.read_ahead as usize,
            read_ahead_bytes: usize::try_from(args.read_ahead_bytes).unwrap_or(usize::MAX),
            progress: Some(&progress),
            hook: None,
        };
        let teller = &mut self.teller;
        let written = archive::write(&tree, &options, &mut output, &mut |told| {
            if !is_about(&told, &temporary) {
                bar.suspend(|| teller.told(&told));
            }
        });
        bar.clear();
        match written {
            Ok(written) => {
                output.keep()?;
                self.teller.replaced(written.replaced);
            }
            Err(WriteError::Output(error)) => return Err(output.failed(error)),
            Err(error) => return Err(error.into()),
        }
        Ok(self.teller.end())
    }

    fn excludes(&self) -> Result<Excludes> {
        let mut excludes = Excludes::new();
        for pattern in &self.args.exclude {
            excludes.add(pattern.as_encoded_bytes());
        }
        for file in &self.args.exclude_from {
            for line in sources::lines(file, false)? {
                excludes.add(&line);
            }
        }
        Ok(excludes)
    }

    /// Finds all that is to be archived.
    fn find(&mut self, excludes: &Excludes, tree: &mut Tree) -> Result<()> {
        let bar = Bar::counter("files found");
        let count = |names| bar.set(names as u64);
        let keep = |path: &[u8], kind: Kind| !excludes.matches(path, kind);
        let options = hoistway_order::walk::Options {
            one_file_system: self.args.one_file_system,
            follow: follow(self.args),
            // What has two names is archived under both.
            once: Once::Path,
            base: None,
            keep: if excludes.is_empty() { None } else { Some(&keep) },
            progress: Some(&count),
        };
        let teller = &mut self.teller;
        sources::find(self.args, options, tree, teller)
    }

    /// Asks where files lie if that is what they are sorted by.
    fn place(&mut self, tree: &mut Tree) -> By {
        let by = match self.args.sort {
            None => By::Auto,
            Some(SortBy::Block) => By::Block,
            Some(SortBy::Inode) => return By::Inode,
            Some(SortBy::Name) => return By::Name,
            Some(SortBy::None) => return By::None,
        };
        let files: Vec<_> = tree.ids().filter(|id| tree.entry(*id).kind == Kind::File).collect();
        let bar = Bar::new(files.len() as u64, "files asked for their place");
        let count = |asked| bar.set(asked as u64);
        let options = place::Options { progress: Some(&count), ..place::Options::default() };
        let teller = &mut self.teller;
        place::place(tree, &files, &options, &mut |problem| {
            // A file that cannot be opened is told when it is to be archived.
            if problem.is_note() && by == By::Block {
                bar.suspend(|| teller.problem(&problem));
            }
        });
        by
    }
}

/// Lets as many files be open at once as the system allows: reading ahead is worth more with them. With fewer it reads less far ahead.
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn follow(args: &TarArgs) -> Follow {
    if args.dereference { Follow::Always } else { Follow::Never }
}

/// Whether it is told of the file that the archive is in until it is whole, which nobody asked for.
fn is_about(told: &Told, temporary: &OsStr) -> bool {
    let Told::Trouble(path, Trouble::Itself) = told else { return false };
    !temporary.is_empty() && path.ends_with(temporary.as_encoded_bytes())
}
