//! From TOML to a draft.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::draft::{Draft, Entry, Place, Problem, Said, Value};
use crate::error::ConfigError;
use crate::keys::Section;
use crate::names::{did_you_mean, list};
use crate::surroundings::text_of;

/// More mistakes than these are not told: the first ones are to be mended first.
const SYNTAX_ERRORS_MAX: usize = 10;
/// So that a hostile file costs no more memory than a few times its own.
const PROBLEMS_MAX: usize = 100;

impl Draft {
    /// Reads a configuration file.
    ///
    /// # Errors
    /// [`ConfigError::Read`] when it is not there, no text, or longer than [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX). What
    /// is wrong in it is reported by [`Draft::check`].
    pub fn load(path: &Path) -> Result<Draft, ConfigError> {
        let text = text_of(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Ok(Draft::from_toml(&text, &path.display().to_string()))
    }
}

impl Draft {
    /// Reads a configuration's text. What is wrong with it is told by [`Draft::check`], all at
    /// once.
    pub fn from_toml(text: &str, file: &str) -> Draft {
        Draft::read_as(&Section::ALL, text, file)
    }

    /// Reads a text whose tables are these.
    pub(crate) fn read_as(sections: &'static [Section], text: &str, file: &str) -> Draft {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect();
        Source { sections, text, lines, file: file.into(), draft: Draft::default() }.read()
    }
}

struct Source<'a> {
    sections: &'static [Section],
    text: &'a str,
    /// Where each line begins.
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
            // What was understood of the rest may not be what was meant.
            return self.draft;
        }
        let place = self.place(0..0);
        for section in self.sections.iter().copied().filter(|section| !section.is_list()) {
            *self.draft.single(section) = Entry::new(section, place.clone());
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

    /// `[[name]]`.
    fn many(&mut self, section: Section, value: &Spanned<DeValue<'_>>) {
        let DeValue::Array(tables) = value.get_ref() else {
            let heading = section.heading();
            return self.problem(value.span(), format!("`{}` is no list of tables: write {heading}", section.name()));
        };
        for table in tables {
            let mut entry = Entry::new(section, self.place(table.span()));
            if self.fill(&mut entry, table) {
                self.draft.many(section).push(entry);
            }
        }
    }

    /// `[name]`.
    fn single(&mut self, section: Section, value: &Spanned<DeValue<'_>>) {
        let mut entry = Entry::new(section, self.place(value.span()));
        self.fill(&mut entry, value);
        *self.draft.single(section) = entry;
    }

    /// Takes in what a table says; false if it is none.
    fn fill(&mut self, entry: &mut Entry, value: &Spanned<DeValue<'_>>) -> bool {
        let DeValue::Table(table) = value.get_ref() else {
            let heading = entry.section.heading();
            self.problem(value.span(), format!("`{}` is no table: write {heading}", entry.section.name()));
            return false;
        };
        for (name, value) in in_order(table) {
            let said = self.said(value);
            if let Err(problem) = entry.set(name.get_ref(), &self.place(name.span()), said) {
                self.push(problem);
            }
        }
        true
    }

    /// A key outside of tables.
    fn top(&mut self, name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let top = self.draft.top.section;
        let known = top.keys().any(|key| key.name == name.get_ref());
        if !known {
            let sections = self.sections.iter().map(|section| section.name()).filter(|name| !name.is_empty());
            let names = sections.chain(top.keys().map(|key| key.name));
            // A key that belongs into a table is told where.
            let keys = self.sections.iter().flat_map(|section| section.keys());
            let tables: Vec<String> =
                keys.filter(|key| key.name == name.get_ref()).map(|key| key.section.heading()).collect();
            let near = match tables.is_empty() {
                true => did_you_mean(name.get_ref(), names.clone()),
                false => format!(" outside of tables: it belongs into {}", tables.join(" or ")),
            };
            return self.problem(
                name.span(),
                format!("there is no key `{}`{near}; there are {}", name.get_ref(), list(names)),
            );
        }
        let (place, said) = (self.place(name.span()), self.said(value));
        if let Err(problem) = self.draft.top.set(name.get_ref(), &place, said) {
            self.push(problem);
        }
    }

    fn said(&self, value: &Spanned<DeValue<'_>>) -> Said {
        let place = self.place(value.span());
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                Value::Integer(i128::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok())
            }
            DeValue::Boolean(switch) => Value::Switch(*switch),
            DeValue::Array(values) => Value::List(values.iter().map(|value| self.said(value)).collect()),
            DeValue::Table(table) => Value::Table(
                in_order(table)
                    .into_iter()
                    .map(|(name, value)| (name.get_ref().to_string(), self.place(name.span()), self.said(value)))
                    .collect(),
            ),
            DeValue::Float(number) => Value::Other(number.as_str().to_owned()),
            DeValue::Datetime(date) => Value::Other(date.to_string()),
        };
        Said { value, place }
    }

    fn problem(&mut self, span: Range<usize>, text: String) {
        let place = self.place(span);
        self.push(Problem { place, text });
    }

    fn push(&mut self, problem: Problem) {
        if self.draft.problems.len() < PROBLEMS_MAX {
            self.draft.problems.push(problem);
        }
    }

    /// Line and column, both from 1, of the beginning of a span.
    fn place(&self, span: Range<usize>) -> Place {
        let line = self.lines.partition_point(|start| *start <= span.start).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let column = self.text.get(start..span.start).unwrap_or("").chars().count() + 1;
        Place::File { file: Arc::clone(&self.file), line, column }
    }
}

/// What a table says, in the order of the file.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Spanned<std::borrow::Cow<'i, str>>, &'t Spanned<DeValue<'i>>)> {
    let mut pairs: Vec<_> = table.iter().collect();
    pairs.sort_by_key(|(name, _)| name.span().start);
    pairs
}
