//! The control protocol, without a socket: bytes in, bytes out.
//!
//! A request is a line; a reply is any number of lines that begin with `= `, and one that does not:
//! `ok`, `ok: WARNING`, or `error KIND: TEXT`. So a program knows where a reply ends and how, and a
//! person at `socat` can read it.
//!
//! ```text
//! get devices/sda/queue/scheduler
//! = linus noop deadline ... fiops [cfq] mq-deadline bfq kyber
//! ok
//! set devices/sda/queue/scheduler cqf
//! error value: "cqf" is no elevator; did you mean "cfq"?
//! ```

use crate::leaf::SetError;
use crate::share::Watch;
use crate::target::{AdminTarget, Refused};
use crate::tree::{self, Found, PathError, Place};

/// The longest request, in bytes without its end.
pub const LINE_BYTES_MAX: usize = 4096;
/// A reply stops growing here, in bytes, until what there is of it was sent.
const OUTPUT_BYTES: usize = 64 << 10;

/// And after so many paths, as far as they tell anything: those that tell nothing take time as
/// well.
const STEPS: usize = 512;

/// A control connection.
#[derive(Default)]
pub struct Session {
    /// Bytes of requests that are not answered yet.
    pub(super) input: Vec<u8>,
    /// The rest of the line is thrown away: it was too long, and was answered.
    skipping: bool,
    /// The reply under way.
    walk: Option<Walk>,
}

impl Session {
    /// A fresh one.
    pub fn new() -> Session {
        Session::default()
    }

    /// Takes bytes that came, and adds replies to `out`. If [`has_more`](Self::has_more)
    /// afterwards, the rest comes with [`resume`](Self::resume).
    pub fn receive(&mut self, input: &[u8], watch: &Watch, steer: &mut dyn AdminTarget, out: &mut Vec<u8>) {
        self.input.extend_from_slice(input);
        self.resume(watch, steer, out);
    }

    /// The other side will send no more: a last line without an end is a line.
    pub fn end(&mut self, watch: &Watch, steer: &mut dyn AdminTarget, out: &mut Vec<u8>) {
        if !self.input.is_empty() {
            self.input.push(b'\n');
        }
        self.resume(watch, steer, out);
    }

    /// Goes on with a reply, now that what there was of it was sent.
    pub fn resume(&mut self, watch: &Watch, steer: &mut dyn AdminTarget, out: &mut Vec<u8>) {
        let (empty, mut steps) = (out.len(), 0);
        while out.len() < empty + OUTPUT_BYTES && (steps < STEPS || out.len() == empty) {
            steps += 1;
            if let Some(walk) = &mut self.walk {
                if !walk.step(watch, steer, out) {
                    self.walk = None;
                    ok(out, None);
                }
                continue;
            }
            let Some(line) = self.line(out) else { break };
            match String::from_utf8(line) {
                Ok(line) => self.request(line.trim(), watch, steer, out),
                Err(_) => error(out, "request", "the line is no UTF-8"),
            }
        }
    }

    /// Whether [`resume`](Self::resume) would add something.
    pub fn has_more(&self) -> bool {
        self.walk.is_some() || self.input.contains(&b'\n')
    }

    /// Whether bytes are wanted: not while a reply is under way.
    pub fn wants_input(&self) -> bool {
        !self.has_more()
    }

    /// The next whole line. Of one that is too long the beginning is answered at once and no more
    /// than that is kept.
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

    fn request(&mut self, line: &str, watch: &Watch, steer: &mut dyn AdminTarget, out: &mut Vec<u8>) {
        let (verb, rest) =
            line.split_once(char::is_whitespace).map_or((line, ""), |(verb, rest)| (verb, rest.trim_start()));
        let (recursive, path) = match rest.split_once(char::is_whitespace).unwrap_or((rest, "")) {
            ("-r", path) => (true, path.trim_start()),
            _ => (false, rest),
        };
        match verb {
            "" => {}
            "help" => help(rest, out),
            "ls" => self.list(path, recursive, steer, out),
            "get" => self.get(path, recursive, watch, steer, out),
            "set" => set(rest, watch, steer, out),
            _ => {
                error(out, "request", &format!("{:?} is no request; there are ls, get, set and help", shortened(verb)))
            }
        }
    }

    fn list(&mut self, path: &str, recursive: bool, steer: &dyn AdminTarget, out: &mut Vec<u8>) {
        match tree::find(path, steer) {
            Err(nowhere) => wrong_path(out, &nowhere),
            Ok(Place::Leaf(found)) => {
                say(out, &found.path());
                ok(out, None);
            }
            Ok(Place::Directory(components)) if recursive => self.walk = Some(Walk::new(components, false)),
            Ok(Place::Directory(components)) => {
                for entry in tree::entries(&components, steer) {
                    let mut below = components.clone();
                    below.push(entry);
                    let mark = if tree::is_directory(&below) { "/" } else { "" };
                    say(out, &format!("{}{mark}", below.pop().unwrap_or_default()));
                }
                ok(out, None);
            }
        }
    }

    fn get(&mut self, path: &str, recursive: bool, watch: &Watch, steer: &dyn AdminTarget, out: &mut Vec<u8>) {
        match tree::find(path, steer) {
            Err(nowhere) => wrong_path(out, &nowhere),
            Ok(Place::Directory(components)) if recursive => self.walk = Some(Walk::new(components, true)),
            Ok(Place::Directory(components)) => {
                let path = components.join("/");
                error(
                    out,
                    "path",
                    &format!("{path:?} is a directory: `ls {path}` lists it, `get -r {path}` reads all below"),
                );
            }
            Ok(Place::Leaf(found)) if found.leaf.get.is_none() => {
                error(out, "access", &format!("{} can only be set", found.path()));
            }
            Ok(Place::Leaf(found)) => match found.get(steer, watch) {
                Some(value) => {
                    value.lines().for_each(|line| say(out, line));
                    ok(out, None);
                }
                None => error(out, "path", &format!("{} is gone", found.path())),
            },
        }
    }
}

/// A directory on its way out, leaf after leaf.
struct Walk {
    /// What is still to be visited, the next one last.
    ahead: Vec<Vec<String>>,
    values: bool,
}

impl Walk {
    fn new(from: Vec<String>, values: bool) -> Walk {
        Walk { ahead: vec![from], values }
    }

    /// Visits one place; `false`: none is left.
    fn step(&mut self, watch: &Watch, steer: &dyn AdminTarget, out: &mut Vec<u8>) -> bool {
        let Some(components) = self.ahead.pop() else { return false };
        match tree::leaf_at(&components) {
            Some(leaf) => self.tell(&tree::found(leaf, components), watch, steer, out),
            None => {
                for entry in tree::entries(&components, steer).into_iter().rev() {
                    let mut below = components.clone();
                    below.push(entry);
                    self.ahead.push(below);
                }
            }
        }
        true
    }

    fn tell(&self, found: &Found, watch: &Watch, steer: &dyn AdminTarget, out: &mut Vec<u8>) {
        let path = found.path();
        if !self.values {
            return say(out, &path);
        }
        // What is gone meanwhile, and what can only be set, is left out.
        for line in found.get(steer, watch).iter().flat_map(|value| value.lines()) {
            say(out, &format!("{path}: {line}"));
        }
    }
}

fn help(path: &str, out: &mut Vec<u8>) {
    if path.is_empty() {
        for line in [
            "ls [-r] [PATH]    what lies in a directory; with -r, all paths below it",
            "get PATH          what a path tells",
            "get -r [PATH]     what all paths below tell, as PATH: VALUE",
            "set PATH VALUE    sets it",
            "help [PATH]       this, or what paths mean",
            "",
        ] {
            say(out, line);
        }
    }
    let mut any = false;
    for leaf in tree::leaves_under(path) {
        any = true;
        if path.is_empty() {
            say(out, &format!("{:40} {}  {}", leaf.path, leaf.access().label(), leaf.unit));
        } else {
            say(out, &format!("{} ({}, {}): {}", leaf.path, leaf.access().label(), leaf.unit, leaf.meaning));
        }
    }
    if any { ok(out, None) } else { error(out, "path", &format!("nothing is known of {:?}", shortened(path))) }
}

fn set(rest: &str, watch: &Watch, steer: &mut dyn AdminTarget, out: &mut Vec<u8>) {
    let Some((path, value)) = rest.split_once(char::is_whitespace).map(|(path, value)| (path, value.trim())) else {
        return error(out, "request", "set needs a path and a value");
    };
    let found = match tree::find(path, steer) {
        Ok(Place::Leaf(found)) => found,
        Ok(Place::Directory(_)) => return error(out, "path", &format!("{path:?} is a directory")),
        Err(nowhere) => return wrong_path(out, &nowhere),
    };
    let change = match found.set(steer, watch, value) {
        None => return error(out, "access", &format!("{} can only be read", found.path())),
        Some(Err(wrong)) => return not_set(out, &found, &wrong),
        Some(Ok(change)) => change,
    };
    match steer.change(change) {
        Ok(warning) => ok(out, warning.as_deref()),
        Err(refused) => not_set(out, &found, &SetError::Refused(refused)),
    }
}

fn not_set(out: &mut Vec<u8>, found: &Found, wrong: &SetError) {
    match wrong {
        SetError::Gone | SetError::Refused(Refused::Gone) => error(out, "path", &format!("{} is gone", found.path())),
        SetError::Value(value) => error(out, "value", &value.to_string()),
        SetError::Refused(Refused::Busy(why)) => error(out, "busy", why),
        SetError::Refused(Refused::No(why)) => error(out, "refused", why),
    }
}

fn wrong_path(out: &mut Vec<u8>, wrong: &PathError) {
    error(out, "path", &wrong.to_string());
}

fn say(out: &mut Vec<u8>, line: &str) {
    out.extend_from_slice(b"= ");
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

fn ok(out: &mut Vec<u8>, warning: Option<&str>) {
    match warning {
        None => out.extend_from_slice(b"ok\n"),
        Some(warning) => out.extend_from_slice(format!("ok: {}\n", on_one_line(warning)).as_bytes()),
    }
}

fn error(out: &mut Vec<u8>, kind: &str, text: &str) {
    out.extend_from_slice(format!("error {kind}: {}\n", on_one_line(text)).as_bytes());
}

fn on_one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// The beginning of something that may be long.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}
