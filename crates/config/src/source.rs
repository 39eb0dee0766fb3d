//! Reads TOML into a draft.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::draft::{Draft, Entry, LocatedValue, Location, Problem, Value};
use crate::environment::read_text;
use crate::error::ConfigError;
use crate::keys::Section;
use crate::names::{did_you_mean, list};

/// The largest number of reported syntax errors: further ones often follow from the first.
const SYNTAX_ERRORS_MAX: usize = 10;
/// The largest number of reported problems, so that memory stays a small multiple of the file's
/// size.
const PROBLEMS_MAX: usize = 100;

impl Draft {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`ConfigError::Read`] if the file is missing, not UTF-8, or longer than
    /// [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX). [`Draft::check`] reports errors in its contents.
    pub fn load(path: &Path) -> Result<Draft, ConfigError> {
        let text = read_text(path).map_err(|cause| ConfigError::Read { path: path.to_owned(), cause })?;
        Ok(Draft::from_toml(&text, &path.display().to_string()))
    }
}

impl Draft {
    /// Reads a configuration from a text. [`Draft::check`] reports all errors in it together.
    pub fn from_toml(text: &str, file: &str) -> Draft {
        Draft::read_as(&Section::ALL, text, file)
    }

    /// Reads a text with tables of these sections.
    pub(crate) fn read_as(sections: &'static [Section], text: &str, file: &str) -> Draft {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect();
        Source { sections, text, lines, file: file.into(), draft: Draft::default() }.read()
    }
}

struct Source<'a> {
    sections: &'static [Section],
    text: &'a str,
    /// The offset of the beginning of each line.
    lines: Vec<usize>,
    file: Arc<str>,
    draft: Draft,
}

impl Source<'_> {
    fn read(mut self) -> Draft {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors.iter().take(SYNTAX_ERRORS_MAX) {
            self.problem(error.span().unwrap_or_default(), error.message().to_owned());
        }
        if !errors.is_empty() {
            // After a syntax error the rest may be misread.
            return self.draft;
        }
        let location = self.location(0..0);
        for section in self.sections.iter().copied().filter(|section| !section.is_list()) {
            *self.draft.single(section) = Entry::new(section, location.clone());
        }
        for (name, value) in in_order(table.get_ref()) {
            let section = self.sections.iter().copied().find(|section| section.name() == name.get_ref().as_ref());
            match section.filter(|section| !section.name().is_empty()) {
                Some(section) if section.is_list() => self.many(section, value),
                Some(section) => self.single(section, value),
                None => self.top(name, value),
            }
        }
        self.draft
    }

    /// Reads the tables of a `[[name]]` section.
    fn many(&mut self, section: Section, value: &Spanned<DeValue<'_>>) {
        let DeValue::Array(tables) = value.get_ref() else {
            let heading = section.heading();
            return self.problem(value.span(), format!("`{}` is no list of tables: write {heading}", section.name()));
        };
        for table in tables {
            let mut entry = Entry::new(section, self.location(table.span()));
            if self.fill(&mut entry, table) {
                self.draft.many(section).push(entry);
            }
        }
    }

    /// Reads the table of a `[name]` section.
    fn single(&mut self, section: Section, value: &Spanned<DeValue<'_>>) {
        let mut entry = Entry::new(section, self.location(value.span()));
        self.fill(&mut entry, value);
        *self.draft.single(section) = entry;
    }

    /// Reads the keys of a table into an entry; returns false if the value is no table.
    fn fill(&mut self, entry: &mut Entry, value: &Spanned<DeValue<'_>>) -> bool {
        let DeValue::Table(table) = value.get_ref() else {
            let heading = entry.section.heading();
            self.problem(value.span(), format!("`{}` is no table: write {heading}", entry.section.name()));
            return false;
        };
        for (name, value) in in_order(table) {
            let located = self.located(value);
            if let Err(problem) = entry.set(name.get_ref(), &self.location(name.span()), located) {
                self.push(problem);
            }
        }
        true
    }

    /// Reads a key at the top level.
    fn top(&mut self, name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let top = self.draft.top.section;
        let known = top.keys().any(|key| key.name == name.get_ref());
        if !known {
            let sections = self.sections.iter().map(|section| section.name()).filter(|name| !name.is_empty());
            let names = sections.chain(top.keys().map(|key| key.name));
            // For a key that belongs in a table, the message names the table.
            let keys = self.sections.iter().flat_map(|section| section.keys());
            let tables: Vec<String> =
                keys.filter(|key| key.name == name.get_ref()).map(|key| key.section.heading()).collect();
            let near = match tables.is_empty() {
                true => did_you_mean(name.get_ref(), names.clone()),
                false => format!(" outside of tables: it belongs in {}", tables.join(" or ")),
            };
            return self.problem(
                name.span(),
                format!("there is no key `{}`{near}; there are {}", name.get_ref(), list(names)),
            );
        }
        let (location, located) = (self.location(name.span()), self.located(value));
        if let Err(problem) = self.draft.top.set(name.get_ref(), &location, located) {
            self.push(problem);
        }
    }

    fn located(&self, value: &Spanned<DeValue<'_>>) -> LocatedValue {
        let location = self.location(value.span());
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                Value::Integer(i128::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok())
            }
            DeValue::Boolean(switch) => Value::Switch(*switch),
            DeValue::Array(values) => Value::List(values.iter().map(|value| self.located(value)).collect()),
            DeValue::Table(table) => Value::Table(
                in_order(table)
                    .into_iter()
                    .map(|(name, value)| (name.get_ref().to_string(), self.location(name.span()), self.located(value)))
                    .collect(),
            ),
            DeValue::Float(number) => Value::Other(number.as_str().to_owned()),
            DeValue::Datetime(date) => Value::Other(date.to_string()),
        };
        LocatedValue { value, location }
    }

    fn problem(&mut self, span: Range<usize>, text: String) {
        let location = self.location(span);
        self.push(Problem { location, text });
    }

    fn push(&mut self, problem: Problem) {
        if self.draft.problems.len() < PROBLEMS_MAX {
            self.draft.problems.push(problem);
        }
    }

    /// Returns the line and the column, both from 1, of the beginning of a span.
    fn location(&self, span: Range<usize>) -> Location {
        let line = self.lines.partition_point(|start| *start <= span.start).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let column = self.text.get(start..span.start).unwrap_or("").chars().count() + 1;
        Location::File { file: Arc::clone(&self.file), line, column }
    }
}

/// Returns the keys of a table in the order of the file.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(name, _)| name.span().start);
    pairs
}
