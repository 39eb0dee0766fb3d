//! `hoistway tar`: writes an archive in physical disk order.

mod messages;
mod output;
mod sources;
mod temporary_file;

use std::ffi::OsStr;
use std::io;

use anyhow::{Error, Result};
use hoistway_order::archive::{
    self, ArchiveError, ArchiveEvent, ArchiveWarning, AttributeSelection, ExcludePatterns, Format,
};
use hoistway_order::walk::DedupBy;
use hoistway_order::{FileKind, FollowLinks, SortKey, Tree, locate};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::cli::{FormatChoice, SortBy, Source, TarArgs};
use crate::failure::{Exit, UsageError, print_message};
use crate::output::Out;
use crate::progress::Bar;
use messages::Reporter;
use output::Output;

/// Exit code without an archive, as for GNU tar.
const FATAL: Exit = Exit::Code(2);
/// Exit code after a closed pipe: 128 and the number of SIGPIPE, as in shells.
const CLOSED_PIPE: Exit = Exit::Code(141);

/// Checks the arguments and writes the archive.
pub fn run(args: &TarArgs, out: &mut Out) -> Result<Exit> {
    check(args)?;
    let run = Run { args, reporter: Reporter::new(args, out) };
    match run.run() {
        Ok(exit) => Ok(exit),
        Err(error) if error.is::<UsageError>() => Err(error),
        Err(error) => {
            let write = error.downcast_ref::<io::Error>();
            if write.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
                return Ok(CLOSED_PIPE);
            }
            print_message(&format!("hoistway tar: {}", error_chain(&error)));
            Ok(FATAL)
        }
    }
}

/// Formats an error and its causes. System errors appear without number and path.
fn error_chain(error: &Error) -> String {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        let text = cause.to_string();
        let ends = if cause.is::<io::Error>() { text.find(" (os error") } else { None };
        text[..ends.unwrap_or(text.len())].to_owned()
    };
    error.chain().map(of).collect::<Vec<_>>().join(": ")
}

/// Rejects invalid arguments before any work is done.
fn check(args: &TarArgs) -> Result<()> {
    let wrong = |what: &str| Err(UsageError(what.to_owned()).into());
    if args.other {
        return wrong(
            "hoistway tar writes archives and does nothing else: `tar -xf ARCHIVE` extracts them, `tar -tf ARCHIVE` lists them",
        );
    }
    if !args.create {
        return wrong("-c is missing, as in `hoistway tar -cf x.tar DIR`");
    }
    if args.sources.0.iter().all(|source| matches!(source, Source::Directory(_))) {
        return wrong("cannot create an empty archive: name files and directories, or a list of them with -T");
    }
    let has_attributes = args.xattrs || args.acls || args.selinux;
    if has_attributes && args.format != FormatChoice::Pax {
        return wrong("--xattrs, --acls and --selinux need the format pax");
    }
    Ok(())
}

struct Run<'a> {
    args: &'a TarArgs,
    reporter: Reporter<'a>,
}

impl Run<'_> {
    fn run(mut self) -> Result<Exit> {
        let args = self.args;
        allow_open_files();
        let excludes = self.excludes()?;
        let mut output = Output::open(args)?;
        let mut tree = Tree::new();
        self.find(&excludes, &mut tree)?;
        let by = self.locate(&mut tree);
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
            attributes: AttributeSelection { xattrs: args.xattrs, acls: args.acls, selinux: args.selinux },
            archive: &own,
            report_members: args.verbose > 0,
            readers: usize::from(args.readers),
            read_ahead_files: args.read_ahead as usize,
            read_ahead_bytes: usize::try_from(args.read_ahead_bytes).unwrap_or(usize::MAX),
            progress: Some(&progress),
            hook: None,
        };
        let reporter = &mut self.reporter;
        let written = archive::write(&tree, &options, &mut output, &mut |event| {
            if !concerns_temporary(&event, &temporary) {
                bar.suspend(|| reporter.event(&event));
            }
        });
        bar.clear();
        match written {
            Ok(written) => {
                output.keep()?;
                self.reporter.replaced(written.replaced);
            }
            Err(ArchiveError::Output(error)) => return Err(output.failed(error)),
            Err(error) => return Err(error.into()),
        }
        Ok(self.reporter.finish())
    }

    fn excludes(&self) -> Result<ExcludePatterns> {
        let mut excludes = ExcludePatterns::new();
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

    /// Finds all names to archive.
    fn find(&mut self, excludes: &ExcludePatterns, tree: &mut Tree) -> Result<()> {
        let bar = Bar::counter("files found");
        let count = |names| bar.set(names as u64);
        let filter = |path: &[u8], kind: FileKind| !excludes.matches(path, kind);
        let options = hoistway_order::walk::Options {
            one_file_system: self.args.one_file_system,
            follow: follow(self.args),
            // A file with two paths is archived under both.
            once: DedupBy::Path,
            base: None,
            filter: if excludes.is_empty() { None } else { Some(&filter) },
            progress: Some(&count),
        };
        let reporter = &mut self.reporter;
        sources::find(self.args, options, tree, reporter)
    }

    /// Looks up the disk offsets of all files if the order depends on them.
    fn locate(&mut self, tree: &mut Tree) -> SortKey {
        let by = match self.args.sort {
            None => SortKey::Auto,
            Some(SortBy::Block) => SortKey::Block,
            Some(SortBy::Inode) => return SortKey::Inode,
            Some(SortBy::Name) => return SortKey::Name,
            Some(SortBy::None) => return SortKey::Readdir,
        };
        let files: Vec<_> = tree.ids().filter(|id| tree.entry(*id).kind == FileKind::File).collect();
        let bar = Bar::new(files.len() as u64, "files located");
        let count = |files| bar.set(files as u64);
        let options = locate::Options { progress: Some(&count), ..locate::Options::default() };
        let reporter = &mut self.reporter;
        locate::locate(tree, &files, &options, &mut |error| {
            // A file that cannot be opened is reported when it is archived.
            if error.is_note() && by == SortKey::Block {
                bar.suspend(|| reporter.walk_error(&error));
            }
        });
        by
    }
}

/// Raises the limit of open files to the hard limit. The read-ahead distance depends on it.
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn follow(args: &TarArgs) -> FollowLinks {
    if args.dereference { FollowLinks::Always } else { FollowLinks::Never }
}

/// Returns true if the event concerns the temporary file of the archive.
fn concerns_temporary(event: &ArchiveEvent, temporary: &OsStr) -> bool {
    let ArchiveEvent::Warning(path, ArchiveWarning::Itself) = event else { return false };
    !temporary.is_empty() && path.ends_with(temporary.as_encoded_bytes())
}
