//! Where the names come from: walks and lists, all at once or in windows.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use hoistway_order::walk::{self, Options, Walk};
use hoistway_order::{Problem, Tree, TreeFull, shown};

use super::troubles::{Troubles, counted};
use crate::cli::OrderArgs;
use crate::failure::tell;

/// What hands out names.
pub enum Source<'a> {
    /// Directories and what is in them.
    Walk(Walk<'a>),
    /// Somebody's list.
    List(Box<List<'a>>),
}

impl<'a> Source<'a> {
    pub fn new(
        args: &OrderArgs,
        options: &'a Options<'a>,
        tree: &mut Tree,
        troubles: &mut Troubles,
    ) -> Result<Source<'a>> {
        let list = match (&args.files_from, &args.files_from0) {
            (Some(file), _) => Some((file, b'\n')),
            (None, Some(file)) => Some((file, b'\0')),
            (None, None) => None,
        };
        if let Some((file, end)) = list {
            return Ok(Source::List(Box::new(List::open(file, end, options)?)));
        }
        let here = [Path::new(".").to_owned()];
        let roots = if args.paths.is_empty() { here.as_slice() } else { &args.paths };
        Ok(Source::Walk(Walk::new(roots, options, tree, &mut |problem| troubles.take(problem))?))
    }

    /// Adds about so many names to the tree, and answers whether there are more.
    pub fn more(&mut self, names: usize, tree: &mut Tree, troubles: &mut Troubles) -> Result<bool> {
        match self {
            Source::Walk(walk) => Ok(walk.more(names, tree, &mut |problem| troubles.take(problem))?),
            Source::List(list) => list.more(names, tree, troubles),
        }
    }

    /// Makes the tree forget what has been printed.
    pub fn forget(&mut self, tree: &mut Tree) {
        match self {
            Source::Walk(walk) => walk.forget(tree),
            Source::List(_) => *tree = Tree::new(),
        }
    }

    /// Says what a list had too much of.
    pub fn tell(&self) {
        let Source::List(list) = self else { return };
        if list.twice > 0 {
            let paths = counted(list.twice as usize, "path stands", "paths stand");
            tell(&format!("note: {paths} in {} a second time, and {}", list.name, "left out there"));
        }
    }
}

/// A list of paths that is read bit by bit.
pub struct List<'a> {
    reader: Box<dyn BufRead>,
    /// What messages call it.
    name: String,
    /// What ends a path.
    end: u8,
    /// The number of the path that was read last, from 1.
    line: u64,
    options: &'a Options<'a>,
    twice: u64,
}

impl<'a> List<'a> {
    fn open(path: &Path, end: u8, options: &'a Options<'a>) -> Result<List<'a>> {
        let (reader, name): (Box<dyn BufRead>, String) = if path == Path::new("-") {
            (Box::new(BufReader::new(io::stdin())), "the list on standard input".to_owned())
        } else {
            let name = path.display().to_string();
            let file = File::open(path).with_context(|| format!("{name}: the list cannot be read"))?;
            (Box::new(BufReader::new(file)), name)
        };
        Ok(List { reader, name, end, line: 0, options, twice: 0 })
    }

    fn more(&mut self, names: usize, tree: &mut Tree, troubles: &mut Troubles) -> Result<bool> {
        let mut paths = Paths { list: self, left: names, wrong: Vec::new(), ended: false, failed: None };
        let (options, hint) = (paths.list.options, paths.list.hint());
        let mut problem = |problem: Problem| {
            let hint = if problem.path.contains(&b'\n') { hint } else { "" };
            match hint {
                "" => troubles.take(problem),
                hint => troubles.fail(format!("{problem}; {hint}")),
            }
        };
        let listed: Result<walk::Listed, TreeFull> = walk::list(&mut paths, options, tree, &mut problem);
        let (ended, failed) = (paths.ended, paths.failed.take());
        for text in std::mem::take(&mut paths.wrong) {
            troubles.fail(text);
        }
        self.twice += listed?.twice;
        if let Some(error) = failed {
            return Err(error).with_context(|| format!("{}: the list cannot be read", self.name));
        }
        Ok(!ended)
    }

    /// What may be wrong with a list whose paths have newlines in them and are not there.
    fn hint(&self) -> &'static str {
        if self.end == 0 { "if the list has a path a line, --files-from would be right" } else { "" }
    }
}

/// Some of a list.
struct Paths<'l, 'a> {
    list: &'l mut List<'a>,
    left: usize,
    /// Lines that are no paths.
    wrong: Vec<String>,
    ended: bool,
    failed: Option<io::Error>,
}

impl Iterator for Paths<'_, '_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        while self.left > 0 {
            let mut path = Vec::new();
            match self.list.reader.read_until(self.list.end, &mut path) {
                Ok(0) => {
                    self.ended = true;
                    return None;
                }
                Ok(_) => {}
                Err(error) => {
                    (self.ended, self.failed) = (true, Some(error));
                    return None;
                }
            }
            self.list.line += 1;
            if path.last() == Some(&self.list.end) {
                path.pop();
            }
            let wrong = match path.as_slice() {
                b"" => "an empty path",
                path if path.contains(&0) => "a zero byte in a path: --files-from0 would be right for such a list",
                _ => {
                    self.left -= 1;
                    return Some(path);
                }
            };
            let start: String = shown(&path).chars().take(60).collect();
            let value = if start.is_empty() { String::new() } else { format!(" (`{start}`)") };
            self.wrong.push(format!("{}: path {}: {wrong}{value}", self.list.name, self.list.line));
        }
        None
    }
}
