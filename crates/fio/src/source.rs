//! Splits the text of a job file into sections: lines, comments, includes, environment variables.
//!
//! Source: sections "Job file format" and "Environment variables" of fio's HOWTO. fio 3.33 cuts a
//! line at its first `;` or `#`, at any position, and so does this module.

use crate::{diagnostic::Diagnostic, job::option::KnownOption, options};
use std::sync::Arc;

/// Loads an included file: the path as written, and the name of the including file.
pub(crate) type Loader<'a> = &'a dyn Fn(&str, &str) -> Result<String, std::io::Error>;
/// Returns the value of an environment variable.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Greatest depth of includes; a deeper one counts as a mistake even without a cycle.
const INCLUDE_DEPTH: usize = 32;
/// Most includes in all, because included files may include others several times.
const INCLUDE_TOTAL: usize = 1024;

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
}

impl Position {
    pub fn fault(&self, message: impl Into<String>, help: Option<String>) -> Diagnostic {
        let (line, column) = (self.line, self.column);
        Diagnostic { file: self.file.to_string(), line, column, message: message.into(), help }
    }
}

/// An option as written.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The name as written.
    pub name: String,
    /// The option of fio or hoistway with that name.
    pub known: Option<&'static KnownOption>,
    /// The value after the substitution of variables; `None` for a flag without a value.
    pub value: Option<String>,
    pub position: Position,
    /// Position of the value; the option's position if there is no value.
    pub value_position: Position,
    /// Variables in the value that are not set.
    pub unset: Vec<String>,
}

/// A section as written.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub name: String,
    pub position: Position,
    pub entries: Vec<Entry>,
}

impl Section {
    /// Returns true for a section whose name, in lower case, is `global`: it sets defaults.
    pub fn is_global(&self) -> bool {
        self.name == "global"
    }
}

/// Splits a job file and all files that it includes into sections.
pub(crate) fn read(text: &str, file: &str, env: Env, loader: Loader) -> (Vec<Section>, Vec<Diagnostic>) {
    let mut reader = Reader { env, loader, sections: Vec::new(), faults: Vec::new(), open: Vec::new(), included: 0 };
    reader.file(text, file);
    (reader.sections, reader.faults)
}

struct Reader<'a> {
    env: Env<'a>,
    loader: Loader<'a>,
    sections: Vec<Section>,
    faults: Vec<Diagnostic>,
    /// Resolved paths of the files that are being read, the job file first.
    open: Vec<String>,
    included: usize,
}

impl Reader<'_> {
    fn file(&mut self, text: &str, file: &str) {
        self.open.push(plain_path(file));
        let file: Arc<str> = file.into();
        // A byte order mark at the start belongs to no option.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, number) in text.lines().zip(1u32..) {
            let line = &line[..line.find([';', '#']).unwrap_or(line.len())];
            let trimmed = line.trim();
            if trimmed.is_empty() {
                continue;
            }
            let position = Position { file: file.clone(), line: number, column: column_of(line, trimmed) };
            if trimmed.starts_with('[') {
                self.header(trimmed, position);
            } else if let Some(path) = include_of(trimmed) {
                self.include(path, position);
            } else {
                self.entry(line, trimmed, position);
            }
        }
        self.open.pop();
    }

    fn header(&mut self, trimmed: &str, position: Position) {
        if self.open.len() > 1 {
            let help = "an included file holds options only; write the sections in the job file";
            self.faults.push(position.fault(format!("section {trimmed} in an included file"), Some(help.into())));
            return;
        }
        let Some((name, rest)) = trimmed[1..].split_once(']') else {
            let help = "write the name of the job in brackets, as in [reader]";
            self.faults.push(position.fault(format!("`{trimmed}` has no closing bracket"), Some(help.into())));
            return;
        };
        let name = name.trim();
        if name.is_empty() {
            self.faults.push(position.fault("the section has no name", Some("write one, as in [reader]".into())));
        }
        if !rest.is_empty() {
            let message = format!("`{}` after the name of section [{name}]", rest.trim());
            self.faults.push(position.fault(message, Some("put it on a line of its own".into())));
        }
        self.sections.push(Section { name: name.into(), position, entries: Vec::new() });
    }

    fn include(&mut self, path: &str, position: Position) {
        let (path, unset) = match expand(path, self.env) {
            Ok(expanded) => expanded,
            Err(message) => return self.faults.push(position.fault(message, Some(CLOSE_HELP.into()))),
        };
        if path.is_empty() {
            let help =
                if unset.is_empty() { "name a file, as in `include base.fio`".into() } else { unset_help(&unset) };
            return self.faults.push(position.fault("include without a file", Some(help)));
        }
        let resolved = resolve(&path, &position.file);
        if self.open.contains(&plain_path(&resolved)) {
            let chain = format!("{} -> {resolved}", self.open.join(" -> "));
            return self.faults.push(position.fault(format!("`{path}` includes itself: {chain}"), None));
        }
        self.included += 1;
        if self.open.len() > INCLUDE_DEPTH || self.included > INCLUDE_TOTAL {
            let message = format!("`{path}` is included too deep or too often");
            let help = format!("at most {INCLUDE_DEPTH} files deep and {INCLUDE_TOTAL} times in all");
            return self.faults.push(position.fault(message, Some(help)));
        }
        match (self.loader)(&path, &position.file) {
            Ok(text) => self.file(&text, &resolved),
            Err(error) => {
                let help = format!("it was looked for at {resolved}, beside the including file");
                self.faults
                    .push(position.fault(format!("cannot read the included file `{path}`: {error}"), Some(help)));
            }
        }
    }

    fn entry(&mut self, line: &str, trimmed: &str, position: Position) {
        let (name, written) = match trimmed.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (trimmed, None),
        };
        let value_position = match written {
            Some(value) => Position { column: column_of(line, value), ..position.clone() },
            None => position.clone(),
        };
        if name.is_empty() {
            let message = format!("`{trimmed}` has no option before the equals sign");
            return self.faults.push(position.fault(message, Some("write option=value".into())));
        }
        let (value, unset) = match written.map(|value| expand(value, self.env)) {
            None => (None, Vec::new()),
            Some(Ok((value, unset))) => (Some(value), unset),
            Some(Err(message)) => return self.faults.push(value_position.fault(message, Some(CLOSE_HELP.into()))),
        };
        match self.sections.last_mut() {
            Some(section) => section.entries.push(Entry {
                name: name.into(),
                known: options::find(name),
                value,
                position,
                value_position,
                unset,
            }),
            None => {
                let help = "put a section before it, as in [global] or [reader]";
                self.faults
                    .push(position.fault(format!("option `{name}` stands outside of a section"), Some(help.into())));
            }
        }
    }
}

const CLOSE_HELP: &str = "a variable is written ${NAME}";

/// The help for variables that left a value empty.
pub(crate) fn unset_help(unset: &[String]) -> String {
    let names = unset.join(", ");
    format!("not set in the environment, so nothing was put in for it: {names}")
}

/// The path of an `include` line; the word is followed by a blank or an equals sign.
fn include_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    match rest.chars().next() {
        None => Some(""),
        Some(c) if c == '=' || c.is_whitespace() => Some(rest.trim_start().trim_start_matches('=').trim()),
        Some(_) => None,
    }
}

/// Substitutes the variables; unset ones are replaced by nothing and returned by name.
fn expand(value: &str, env: Env) -> Result<(String, Vec<String>), String> {
    let mut out = String::new();
    let mut unset = Vec::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, following)) = after.split_once('}') else {
            return Err(format!("`${{{after}` has no closing brace"));
        };
        out.push_str(before);
        match env(name) {
            Some(text) if !text.is_empty() => out.push_str(&text),
            _ => unset.push(name.into()),
        }
        rest = following;
    }
    out.push_str(rest);
    Ok((out, unset))
}

/// Resolves the path of an included file relative to the including file.
pub(crate) fn resolve(path: &str, including: &str) -> String {
    let joined = std::path::Path::new(including).parent().map(|parent| parent.join(path));
    joined.map_or_else(|| path.to_owned(), |joined| joined.to_string_lossy().into_owned())
}

/// Normalises a path (`.` and `x/..`), so that a cycle is found in any spelling.
fn plain_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The column of a part of a line, from 1 and in characters; `part` must be a slice of `line`.
fn column_of(line: &str, part: &str) -> u32 {
    let start = (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize);
    let before = line.get(..start).map_or(0, |before| before.chars().count());
    u32::try_from(before + 1).unwrap_or(u32::MAX)
}
