//! The control protocol, without a socket: bytes in, bytes out.
//!
//! A request is a line, and each line has a reply, an empty one too. A reply is any number of lines
//! that begin with `= `, and one that does not: `ok`, `ok: WARNING`, or `error KIND: TEXT`. A
//! program recognises the end of a reply, and a person can read it with `socat`.
//!
//! ```text
//! get devices/sda/queue/scheduler
//! = linus noop deadline ... fiops [cfq] mq-deadline bfq kyber paternoster
//! ok
//! set devices/sda/queue/scheduler cqf
//! error value: "cqf" is no elevator; did you mean "cfq"?
//! ```

use hoistway_units::printable::one_line;

use crate::leaf::SetError;
use crate::share::Watch;
use crate::target::{AdminTarget, Refused};
use crate::tree::{self, Found, Node, PathError};

/// The longest request, in bytes without its end.
pub const LINE_BYTES_MAX: usize = 4096;
/// The size in bytes at which a reply pauses until its first part is sent.
const OUTPUT_BYTES: usize = 64 << 10;

/// The number of paths after which a reply pauses, if it has any output: paths without output take
/// time as well.
const STEPS: usize = 512;

/// A control connection.
#[derive(Default)]
pub struct Session {
    /// Bytes of requests that are not answered yet.
    pub(super) input: Vec<u8>,
    /// True while the rest of an overlong line, which was answered, is skipped.
    skipping: bool,
    /// The recursive reply in progress.
    walk: Option<Walk>,
}

impl Session {
    /// Creates the session of a new connection.
    pub fn new() -> Session {
        Session::default()
    }

    /// Handles received bytes and appends replies to `out`. If [`has_more`](Self::has_more) is true
    /// afterwards, [`resume`](Self::resume) continues.
    pub fn receive(&mut self, input: &[u8], watch: &Watch, target: &mut dyn AdminTarget, out: &mut Vec<u8>) {
        self.input.extend_from_slice(input);
        self.resume(watch, target, out);
    }

    /// Handles the end of the stream. A last line without a line end is a request.
    pub fn end(&mut self, watch: &Watch, target: &mut dyn AdminTarget, out: &mut Vec<u8>) {
        if !self.input.is_empty() {
            self.input.push(b'\n');
        }
        self.resume(watch, target, out);
    }

    /// Continues after the previous output was sent.
    pub fn resume(&mut self, watch: &Watch, target: &mut dyn AdminTarget, out: &mut Vec<u8>) {
        let (empty, mut steps) = (out.len(), 0);
        while out.len() < empty + OUTPUT_BYTES && (steps < STEPS || out.len() == empty) {
            steps += 1;
            if let Some(walk) = &mut self.walk {
                if !walk.step(watch, target, out) {
                    self.walk = None;
                    ok(out, None);
                }
                continue;
            }
            let Some(line) = self.line(out) else { break };
            match String::from_utf8(line) {
                Ok(line) => self.request(line.trim(), watch, target, out),
                Err(_) => error(out, "request", "the line is not UTF-8"),
            }
        }
    }

    /// Returns true if [`resume`](Self::resume) has work.
    pub fn has_more(&self) -> bool {
        self.walk.is_some() || self.input.contains(&b'\n')
    }

    /// Returns true if bytes are to be received: not while a reply is in progress.
    pub fn wants_input(&self) -> bool {
        !self.has_more()
    }

    /// Returns the next complete line. An overlong line is answered at once and not kept.
    fn line(&mut self, out: &mut Vec<u8>) -> Option<Vec<u8>> {
        loop {
            let end = self.input.iter().position(|byte| *byte == b'\n');
            let too_long = end.unwrap_or(self.input.len()) > LINE_BYTES_MAX;
            if too_long && !self.skipping {
                error(out, "request", &format!("the line is longer than {LINE_BYTES_MAX} bytes"));
            }
            self.skipping |= too_long;
            let Some(end) = end else {
                if self.skipping {
                    self.input.clear();
                }
                return None;
            };
            let line: Vec<u8> = self.input.drain(..=end).take(end).collect();
            if !std::mem::take(&mut self.skipping) {
                return Some(line);
            }
        }
    }

    fn request(&mut self, line: &str, watch: &Watch, target: &mut dyn AdminTarget, out: &mut Vec<u8>) {
        let (verb, rest) =
            line.split_once(char::is_whitespace).map_or((line, ""), |(verb, rest)| (verb, rest.trim_start()));
        let (recursive, path) = match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
            ("-r", path) => (true, path.trim_start()),
            _ => (false, rest),
        };
        match verb {
            "" => error(out, "request", "the line is empty: the requests are ls, get, set and help"),
            "help" => help(rest, out),
            "ls" => self.list(path, recursive, target, out),
            "get" => self.get(path, recursive, watch, target, out),
            "set" => set(rest, watch, target, out),
            _ => error(
                out,
                "request",
                &format!("unknown request {:?}: the requests are ls, get, set and help", shortened(verb)),
            ),
        }
    }

    fn list(&mut self, path: &str, recursive: bool, target: &dyn AdminTarget, out: &mut Vec<u8>) {
        match tree::find(path, target) {
            Err(error_of_path) => wrong_path(out, &error_of_path),
            Ok(Node::Leaf(found)) => {
                write_line(out, &found.path());
                ok(out, None);
            }
            Ok(Node::Directory(components)) if recursive => self.walk = Some(Walk::new(components, false)),
            Ok(Node::Directory(components)) => {
                for entry in tree::entries(&components, target) {
                    let mut below = components.clone();
                    below.push(entry);
                    let mark = if tree::is_directory(&below) { "/" } else { "" };
                    write_line(out, &format!("{}{mark}", below.pop().unwrap_or_default()));
                }
                ok(out, None);
            }
        }
    }

    fn get(&mut self, path: &str, recursive: bool, watch: &Watch, target: &dyn AdminTarget, out: &mut Vec<u8>) {
        match tree::find(path, target) {
            Err(error_of_path) => wrong_path(out, &error_of_path),
            Ok(Node::Directory(components)) if recursive => self.walk = Some(Walk::new(components, true)),
            Ok(Node::Directory(components)) => {
                let path = components.join("/");
                error(
                    out,
                    "path",
                    &format!("{path:?} is a directory: `ls {path}` lists it, `get -r {path}` reads all below"),
                );
            }
            Ok(Node::Leaf(found)) if found.leaf.get.is_none() => {
                error(out, "access", &format!("{} can only be set", found.path()));
            }
            Ok(Node::Leaf(found)) => match found.get(target, watch) {
                Some(value) => {
                    value.lines().for_each(|line| write_line(out, line));
                    ok(out, None);
                }
                None => error(out, "path", &format!("{} no longer exists", found.path())),
            },
        }
    }
}

/// A recursive reply on a directory, leaf by leaf.
struct Walk {
    /// The components of the nodes to be visited, the next one last.
    ahead: Vec<Vec<String>>,
    values: bool,
}

impl Walk {
    fn new(from: Vec<String>, values: bool) -> Walk {
        Walk { ahead: vec![from], values }
    }

    /// Visits one node. Returns false if none is left.
    fn step(&mut self, watch: &Watch, target: &dyn AdminTarget, out: &mut Vec<u8>) -> bool {
        let Some(components) = self.ahead.pop() else { return false };
        match tree::leaf_at(&components) {
            Some(leaf) => self.show(&tree::found(leaf, components), watch, target, out),
            None => {
                for entry in tree::entries(&components, target).into_iter().rev() {
                    let mut below = components.clone();
                    below.push(entry);
                    self.ahead.push(below);
                }
            }
        }
        true
    }

    fn show(&self, found: &Found, watch: &Watch, target: &dyn AdminTarget, out: &mut Vec<u8>) {
        let path = found.path();
        if !self.values {
            return write_line(out, &path);
        }
        // Objects that no longer exist and leaves that are write-only have no lines.
        for line in found.get(target, watch).iter().flat_map(|value| value.lines()) {
            write_line(out, &format!("{path}: {line}"));
        }
    }
}

fn help(path: &str, out: &mut Vec<u8>) {
    if path.is_empty() {
        for line in [
            "ls [-r] [PATH]    list a directory; with -r, all paths below it",
            "get PATH          print the value of a path",
            "get -r [PATH]     print all readable values below a path, as PATH: VALUE",
            "set PATH VALUE    set a value",
            "help [PATH]       list the commands and paths, or describe paths",
            "",
        ] {
            write_line(out, line);
        }
    }
    let mut any = false;
    for leaf in tree::leaves_under(path) {
        any = true;
        if path.is_empty() {
            write_line(out, &format!("{:40} {}  {}", leaf.path, leaf.access().label(), leaf.unit));
        } else {
            write_line(out, &format!("{} ({}, {}): {}", leaf.path, leaf.access().label(), leaf.unit, leaf.meaning));
        }
    }
    if any { ok(out, None) } else { error(out, "path", &format!("no path begins with {:?}", shortened(path))) }
}

fn set(rest: &str, watch: &Watch, target: &mut dyn AdminTarget, out: &mut Vec<u8>) {
    let Some((path, value)) = rest.split_once(char::is_whitespace).map(|(path, value)| (path, value.trim())) else {
        return error(out, "request", "set needs a path and a value");
    };
    let found = match tree::find(path, target) {
        Ok(Node::Leaf(found)) => found,
        Ok(Node::Directory(_)) => return error(out, "path", &format!("{path:?} is a directory")),
        Err(error_of_path) => return wrong_path(out, &error_of_path),
    };
    let change = match found.set(target, watch, value) {
        None => return error(out, "access", &format!("{} can only be read", found.path())),
        Some(Err(wrong)) => return refuse_set(out, &found, &wrong),
        Some(Ok(change)) => change,
    };
    match target.change(change) {
        Ok(warning) => ok(out, warning.as_deref()),
        Err(refused) => refuse_set(out, &found, &SetError::Refused(refused)),
    }
}

fn refuse_set(out: &mut Vec<u8>, found: &Found, wrong: &SetError) {
    match wrong {
        SetError::Gone | SetError::Refused(Refused::Gone) => {
            error(out, "path", &format!("{} no longer exists", found.path()))
        }
        SetError::Value(value) => error(out, "value", &value.to_string()),
        SetError::Refused(Refused::Busy(why)) => error(out, "busy", why),
        SetError::Refused(Refused::No(why)) => error(out, "refused", why),
    }
}

fn wrong_path(out: &mut Vec<u8>, wrong: &PathError) {
    error(out, "path", &wrong.to_string());
}

fn write_line(out: &mut Vec<u8>, line: &str) {
    out.extend_from_slice(b"= ");
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

fn ok(out: &mut Vec<u8>, warning: Option<&str>) {
    match warning {
        None => out.extend_from_slice(b"ok\n"),
        Some(warning) => out.extend_from_slice(format!("ok: {}\n", one_line(warning)).as_bytes()),
    }
}

fn error(out: &mut Vec<u8>, kind: &str, text: &str) {
    out.extend_from_slice(format!("error {kind}: {}\n", one_line(text)).as_bytes());
}

/// Returns the first 80 characters of a text.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
