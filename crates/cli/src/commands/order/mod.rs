//! `hoistway order`: lists paths in physical disk order.

mod errors;
mod explain;
mod page;
mod print;
mod render;
mod source;

use anyhow::Result;
use hoistway_order::{EntryId, FileKind, FollowLinks, SortKey, Tree, locate, sort, walk};

use crate::cli::{ByChoice, OrderArgs};
use crate::failure::Exit;
use crate::output::Out;
use crate::progress::Bar;
use errors::ErrorLog;
use print::Printer;
use source::NameSource;

/// Finds, locates, sorts and prints all names.
pub fn run(args: &OrderArgs, out: &mut Out) -> Result<Exit> {
    if args.explain {
        return explain::run(args, out);
    }
    let request = Request::new(args);
    let mut errors = ErrorLog::new(args.by == ByChoice::Block);
    let mut tree = Tree::new();
    let bar = Bar::counter("names found");
    let found = |names: usize| bar.set(names as u64);
    let options = request.walk_options(&found);
    let mut source = NameSource::new(args, &options, &mut tree, &mut errors)?;
    let mut printer = Printer::new(args, &request, out);
    // Entries below this index are printed.
    let mut before = 0;
    loop {
        let more = source.read_batch(request.window, &mut tree, &mut errors)?;
        bar.clear();
        request.locate(&mut tree, before, &mut errors);
        let sorted = sort(&tree, request.by);
        printer.print(&tree, sorted.into_iter().filter(|id| id.index() >= before), &errors)?;
        if !more {
            break;
        }
        printer.flush()?;
        source.discard_printed(&mut tree);
        errors.forget_entries();
        before = tree.len();
    }
    printer.flush()?;
    source.report_duplicates();
    Ok(errors.finish())
}

/// The options of a list.
pub struct Request {
    pub by: SortKey,
    kinds: Vec<FileKind>,
    window: usize,
    sync: bool,
    threads: usize,
    one_file_system: bool,
    follow: FollowLinks,
}

impl Request {
    pub fn new(args: &OrderArgs) -> Request {
        let follow = match (args.dereference, args.follow_arguments) {
            (true, _) => FollowLinks::Always,
            (false, true) => FollowLinks::Arguments,
            (false, false) => FollowLinks::Never,
        };
        Request {
            by: args.by.by(),
            kinds: args.kinds.iter().map(|kind| kind.kind()).collect(),
            window: args.window.map_or(usize::MAX, |names| names as usize),
            sync: args.sync,
            threads: args.threads.map_or(0, usize::from),
            one_file_system: args.one_file_system,
            follow,
        }
    }

    /// Returns true if this file type is listed.
    pub fn lists(&self, kind: FileKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    pub fn walk_options<'a>(&self, found: &'a dyn Fn(usize)) -> walk::Options<'a> {
        walk::Options {
            one_file_system: self.one_file_system,
            follow: self.follow,
            progress: Some(found),
            ..walk::Options::default()
        }
    }

    /// Looks up the disk offsets of all files from index `from` on, if the order depends on them.
    fn locate(&self, tree: &mut Tree, from: usize, errors: &mut ErrorLog) {
        if !self.by.needs_placement() || !self.lists(FileKind::File) {
            return;
        }
        let ids: Vec<EntryId> = tree.ids().skip(from).filter(|id| tree.entry(*id).kind == FileKind::File).collect();
        let bar = Bar::new(ids.len() as u64, "reading extents");
        let done = |files: usize| bar.set(files as u64);
        let options = locate::Options {
            threads: self.threads,
            sync: self.sync,
            progress: Some(&done),
            ..locate::Options::default()
        };
        let summary = locate::locate(tree, &ids, &options, &mut |error| errors.add(error));
        bar.clear();
        errors.not_written += summary.not_written;
    }
}
