//! Prints paths to standard output: byte for byte for other programs, escaped on a terminal, or as
//! JSON.

use anyhow::Result;
use hoistway_order::{EntryId, FileRecord, Tree};
use hoistway_units::printable::bytes;

use super::Request;
use super::errors::ErrorLog;
use crate::cli::OrderArgs;
use crate::failure::print_message;
use crate::output::Out;

/// Prints the names of a list.
pub struct Printer<'a> {
    request: &'a Request,
    out: &'a mut Out,
    end: u8,
    json: bool,
    /// True after the warning about a newline in a path.
    warned: bool,
    path: Vec<u8>,
}

impl<'a> Printer<'a> {
    pub fn new(args: &OrderArgs, request: &'a Request, out: &'a mut Out) -> Printer<'a> {
        let end = if args.null { b'\0' } else { b'\n' };
        Printer { request, out, end, json: args.json, warned: false, path: Vec::new() }
    }

    /// Prints the given names, except unlisted types and unreadable files.
    pub fn print(&mut self, tree: &Tree, ids: impl Iterator<Item = EntryId>, errors: &ErrorLog) -> Result<()> {
        for id in ids {
            let kind = tree.entry(id).kind;
            if !self.request.lists(kind) || errors.omits(id, kind) {
                continue;
            }
            tree.path_into(id, &mut self.path);
            if self.json {
                self.out.json_line(&FileRecord::new(tree, id, &self.path))?;
                continue;
            }
            if self.out.is_terminal() {
                self.out.line(bytes(&self.path))?;
                continue;
            }
            if self.end == b'\n' && !self.warned && self.path.contains(&b'\n') {
                self.warned = true;
                print_message(&format!(
                    "warning: {}: the path contains a newline; a program that reads the list sees two paths: use -0",
                    bytes(&self.path)
                ));
            }
            self.path.push(self.end);
            self.out.bytes(&self.path)?;
        }
        Ok(())
    }

    /// Writes out the buffer.
    pub fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}
