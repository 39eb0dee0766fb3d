//! Paths on standard output, byte for byte.

use anyhow::Result;
use hoistway_order::{Id, Kind, Place, Tree, shown};
use serde::Serialize;

use super::Request;
use super::troubles::Troubles;
use crate::cli::OrderArgs;
use crate::failure::tell;
use crate::output::Out;

/// What prints.
pub struct Printer<'a> {
    request: &'a Request,
    out: &'a mut Out,
    end: u8,
    json: bool,
    /// Whether it has been said that a name has a newline in it.
    warned: bool,
    path: Vec<u8>,
}

/// A path as JSON.
#[derive(Serialize)]
struct Line<'a> {
    /// The path, with U+FFFD for what is no UTF-8.
    path: &'a str,
    /// All bytes of a path that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    kind: &'static str,
    inode: u64,
    /// Major and minor number of the file system's device.
    device: String,
    /// "disk", "none" (no data on the disk), "unknown".
    place: &'static str,
    /// The first byte on the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<u64>,
}

impl<'a> Printer<'a> {
    pub fn new(args: &OrderArgs, request: &'a Request, out: &'a mut Out) -> Printer<'a> {
        let end = if args.null { b'\0' } else { b'\n' };
        Printer { request, out, end, json: args.json, warned: false, path: Vec::new() }
    }

    /// Prints what is asked for of these names.
    pub fn print(&mut self, tree: &Tree, ids: impl Iterator<Item = Id>, troubles: &Troubles) -> Result<()> {
        for id in ids {
            let kind = tree.entry(id).kind;
            if !self.request.lists(kind) || troubles.leaves_out(id, kind) {
                continue;
            }
            tree.path_into(id, &mut self.path);
            if self.json {
                self.print_json(tree, id)?;
                continue;
            }
            if self.end == b'\n' && !self.warned && self.path.contains(&b'\n') {
                self.warned = true;
                tell(&format!(
                    "warning: {}: a newline in a path; whoever reads the list takes it for two: -0 would be right",
                    shown(&self.path)
                ));
            }
            self.path.push(self.end);
            self.out.bytes(&self.path)?;
        }
        Ok(())
    }

    /// Writes out what is still in the buffer.
    pub fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }

    fn print_json(&mut self, tree: &Tree, id: Id) -> Result<()> {
        let entry = tree.entry(id);
        let path = String::from_utf8_lossy(&self.path);
        let is_whole = matches!(path, std::borrow::Cow::Borrowed(_));
        let hex = || self.path.iter().map(|byte| format!("{byte:02x}")).collect();
        let (place, at) = match entry.place {
            Place::At(at) => ("disk", Some(at)),
            Place::Nowhere => ("none", None),
            Place::Unknown => ("unknown", None),
        };
        let line = Line {
            path: &path,
            path_hex: (!is_whole).then(hex),
            kind: kind(entry.kind),
            inode: entry.inode,
            device: device(entry.device),
            place,
            at,
        };
        let text = serde_json::to_string(&line)?;
        Ok(self.out.line(text)?)
    }
}

/// "8:1".
pub fn device(device: u64) -> String {
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Symlink => "symlink",
        Kind::BlockDevice => "block-device",
        Kind::CharacterDevice => "character-device",
        Kind::Fifo => "pipe",
        Kind::Socket => "socket",
    }
}
