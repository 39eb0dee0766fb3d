//! The names of a list: from a walk or from a file, at once or in windows.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};
use hoistway_order::walk::{self, Options, Walk};
use hoistway_order::{PathError, Tree, TreeFull};
use hoistway_units::printable;

use super::errors::{ErrorLog, counted};
use crate::cli::OrderArgs;
use crate::failure::print_message;

/// A source of names.
pub enum NameSource<'a> {
    /// A walk over directories.
    Walk(Box<Walk<'a>>),
    /// A list of paths.
    List(Box<List<'a>>),
}

impl<'a> NameSource<'a> {
    pub fn new(
        args: &OrderArgs,
        options: &'a Options<'a>,
        tree: &mut Tree,
        errors: &mut ErrorLog,
    ) -> Result<NameSource<'a>> {
        let list = match (&args.files_from, &args.files_from0) {
            (Some(file), _) => Some((file, b'\n')),
            (None, Some(file)) => Some((file, b'\0')),
            (None, None) => None,
        };
        if let Some((file, end)) = list {
            return Ok(NameSource::List(Box::new(List::open(file, end, options)?)));
        }
        let here = [Path::new(".").to_owned()];
        let roots = if args.paths.is_empty() { here.as_slice() } else { &args.paths };
        let walk = Walk::new(roots, options, tree, &mut |error| errors.add(error))?;
        Ok(NameSource::Walk(Box::new(walk)))
    }

    /// Adds about `names` names to the tree. Returns true if names remain.
    pub fn read_batch(&mut self, names: usize, tree: &mut Tree, errors: &mut ErrorLog) -> Result<bool> {
        match self {
            NameSource::Walk(walk) => Ok(walk.read_batch(names, tree, &mut |error| errors.add(error))?),
            NameSource::List(list) => list.read_batch(names, tree, errors),
        }
    }

    /// Removes printed names from the tree.
    pub fn discard_printed(&mut self, tree: &mut Tree) {
        match self {
            NameSource::Walk(walk) => walk.discard_finished(tree),
            NameSource::List(_) => *tree = Tree::new(),
        }
    }

    /// Reports paths that a list contains more than once.
    pub fn report_duplicates(&self) {
        let NameSource::List(list) = self else { return };
        if list.duplicates > 0 {
            let paths = counted(list.duplicates as usize, "path occurs", "paths occur");
            print_message(&format!("note: {paths} more than once in {} and is printed once", list.name));
        }
    }
}

/// A list of paths that is read in windows.
pub struct List<'a> {
    reader: Box<dyn BufRead>,
    /// Name of the list in messages.
    name: String,
    /// The byte that ends a path.
    end: u8,
    /// Number of the last path, from 1.
    line: u64,
    options: &'a Options<'a>,
    duplicates: u64,
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
        Ok(List { reader, name, end, line: 0, options, duplicates: 0 })
    }

    fn read_batch(&mut self, names: usize, tree: &mut Tree, errors: &mut ErrorLog) -> Result<bool> {
        let mut paths = Paths { list: self, left: names, wrong: Vec::new(), ended: false, failed: None };
        let (options, hint) = (paths.list.options, paths.list.hint());
        let mut on_error = |error: PathError| {
            let hint = if error.path.contains(&b'\n') { hint } else { "" };
            match hint {
                "" => errors.add(error),
                hint => errors.add_message(format!("{error}; {hint}")),
            }
        };
        let listed: Result<walk::ListSummary, TreeFull> = walk::list(&mut paths, options, tree, &mut on_error);
        let (ended, failed) = (paths.ended, paths.failed.take());
        for text in std::mem::take(&mut paths.wrong) {
            errors.add_message(text);
        }
        self.duplicates += listed?.duplicates;
        if let Some(error) = failed {
            return Err(error).with_context(|| format!("{}: the list cannot be read", self.name));
        }
        Ok(!ended)
    }

    /// Returns a hint for paths that contain newlines and do not exist.
    fn hint(&self) -> &'static str {
        if self.end == 0 { "if the list has one path per line, use --files-from" } else { "" }
    }
}

/// Iterator over the next paths of a list.
struct Paths<'l, 'a> {
    list: &'l mut List<'a>,
    left: usize,
    /// Messages about invalid lines.
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
                path if path.contains(&0) => "a zero byte in a path: use --files-from0 for such a list",
                _ => {
                    self.left -= 1;
                    return Some(path);
                }
            };
            let start: String = printable::bytes(&path).chars().take(60).collect();
            let value = if start.is_empty() { String::new() } else { format!(" (`{start}`)") };
            self.wrong.push(format!("{}: path {}: {wrong}{value}", self.list.name, self.list.line));
        }
        None
    }
}
