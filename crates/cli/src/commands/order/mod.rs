//! `hoistway order`: paths in the order in which they lie on the disk.

mod explain;
mod page;
mod print;
mod source;
mod tell;
mod troubles;

use anyhow::Result;
use hoistway_order::{By, Follow, Id, Kind, Tree, order, place, walk};

use crate::cli::{ByChoice, OrderArgs};
use crate::failure::Exit;
use crate::output::Out;
use crate::progress::Bar;
use print::Printer;
use source::Source;
use troubles::Troubles;

/// Finds, places, sorts and prints.
pub fn run(args: &OrderArgs, out: &mut Out) -> Result<Exit> {
    if args.explain {
        return explain::run(args, out);
    }
    let request = Request::new(args);
    let mut troubles = Troubles::new(args.by == ByChoice::Block);
    let mut tree = Tree::new();
    let bar = Bar::counter("names found");
    let found = |names: usize| bar.set(names as u64);
    let options = request.walk_options(&found);
    let mut source = Source::new(args, &options, &mut tree, &mut troubles)?;
    let mut printer = Printer::new(args, &request, out);
    // What comes before this has been printed.
    let mut before = 0;
    loop {
        let more = source.more(request.window, &mut tree, &mut troubles)?;
        bar.clear();
        request.place(&mut tree, before, &mut troubles);
        let sorted = order(&tree, request.by);
        printer.print(&tree, sorted.into_iter().filter(|id| id.index() >= before), &troubles)?;
        if !more {
            break;
        }
        printer.flush()?;
        source.forget(&mut tree);
        troubles.forget();
        before = tree.len();
    }
    printer.flush()?;
    source.tell();
    Ok(troubles.tell())
}

/// What is asked for.
pub struct Request {
    pub by: By,
    kinds: Vec<Kind>,
    window: usize,
    sync: bool,
    threads: usize,
    one_file_system: bool,
    follow: Follow,
}

impl Request {
    pub fn new(args: &OrderArgs) -> Request {
        let follow = match (args.dereference, args.follow_arguments) {
            (true, _) => Follow::Always,
            (false, true) => Follow::Arguments,
            (false, false) => Follow::Never,
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

    /// Whether this kind of file is listed.
    pub fn lists(&self, kind: Kind) -> bool {
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

    /// Asks where the files from a name on lie, if anything hangs on that.
    fn place(&self, tree: &mut Tree, from: usize, troubles: &mut Troubles) {
        if !matches!(self.by, By::Auto | By::Block) || !self.lists(Kind::File) {
            return;
        }
        let ids: Vec<Id> = tree.ids().skip(from).filter(|id| tree.entry(*id).kind == Kind::File).collect();
        let bar = Bar::new(ids.len() as u64, "asking where they lie");
        let asked = |files: usize| bar.set(files as u64);
        let options = place::Options {
            threads: self.threads,
            sync: self.sync,
            progress: Some(&asked),
            ..place::Options::default()
        };
        let placed = place::place(tree, &ids, &options, &mut |problem| troubles.take(problem));
        bar.clear();
        troubles.not_written += placed.not_written;
    }
}
