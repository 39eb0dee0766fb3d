//! Standard output: plain in a pipe, with colours on a terminal, without a panic on a closed pipe.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle};
use serde::Serialize;

use crate::failure::OutputError;

/// Greatest width of text, in columns: longer lines are hard to read.
pub const TEXT_COLUMNS_MAX: usize = 100;
/// Least width of a terminal, in columns; narrower ones are treated as this.
const TEXT_COLUMNS_MIN: usize = 40;

/// A table style with a rule under the header and no other lines.
const RULED_HEADER: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-'));

/// The output of commands.
pub struct Out {
    writer: BufWriter<Stdout>,
    /// True if colours and bold text are enabled.
    styled: bool,
    /// Width of the terminal in columns; `None` in a pipe.
    terminal_columns: Option<usize>,
}

impl Out {
    /// The process's standard output.
    pub fn stdout() -> Out {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let terminal_columns = Table::new().width().filter(|_| terminal).map(usize::from);
        Out { writer: BufWriter::new(stdout), styled: terminal && colours_are_wanted(), terminal_columns }
    }

    /// Prints a line.
    pub fn line(&mut self, line: impl Display) -> Result<(), OutputError> {
        Ok(writeln!(self.writer, "{line}")?)
    }

    /// Prints bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        Ok(self.writer.write_all(bytes)?)
    }

    /// Prints one JSON document, indented.
    pub fn json(&mut self, document: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(document)?;
        Ok(self.line(text)?)
    }

    /// Prints a line in bold on a terminal.
    pub fn heading(&mut self, line: impl Display) -> Result<(), OutputError> {
        if self.styled { self.line(format_args!("\u{1b}[1m{line}\u{1b}[0m")) } else { self.line(line) }
    }

    /// Prints a paragraph, wrapped and indented by `indent` columns.
    pub fn paragraph(&mut self, indent: usize, text: &str) -> Result<(), OutputError> {
        let columns = self.columns();
        wrap(text, indent, columns).into_iter().try_for_each(|line| self.line(line))
    }

    /// Prints a table that [`table`] created.
    pub fn table(&mut self, table: &mut Table) -> Result<(), OutputError> {
        self.table_lines(table).iter().try_for_each(|line| self.line(line))
    }

    /// The lines of a table, for output with other lines in between.
    pub fn table_lines(&self, table: &mut Table) -> Vec<String> {
        if self.styled {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Width of text in columns: that of the terminal, at most [`TEXT_COLUMNS_MAX`], which also
    /// applies to pipes.
    pub fn columns(&self) -> usize {
        self.terminal_columns.unwrap_or(TEXT_COLUMNS_MAX).clamp(TEXT_COLUMNS_MIN, TEXT_COLUMNS_MAX)
    }

    /// Returns true if a table of so many columns fits; in a pipe every table does.
    pub fn takes(&self, columns: usize) -> bool {
        self.terminal_columns.is_none_or(|terminal| columns <= terminal)
    }

    /// Flushes the buffer.
    pub fn flush(&mut self) -> Result<(), OutputError> {
        Ok(self.writer.flush()?)
    }
}

/// Creates a table with a ruled header; all columns after the first `left` are right-aligned
/// numbers.
pub fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.load_style(RULED_HEADER);
    table.set_header(header.iter().map(|text| Cell::new(text).add_attribute(Attribute::Bold)));
    let last = header.len().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
        if index >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Width of a table in columns.
pub fn width(table: &Table) -> usize {
    // Escape sequences of colours take no columns.
    let mut plain = table.clone();
    plain.force_no_tty();
    plain.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0)
}

/// A highlighted cell: the best of its column.
pub fn best(text: &str) -> Cell {
    Cell::new(text).fg(Color::Green).add_attribute(Attribute::Bold)
}

/// Returns true unless `NO_COLOR` is set and not empty (<https://no-color.org>) or `TERM` is
/// `dumb`.
pub fn colours_are_wanted() -> bool {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !no_color && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Wraps text to lines of at most `columns` columns, each indented; a longer word is a line of its
/// own.
pub fn wrap(text: &str, indent: usize, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{:indent$}{word}", "")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_keep_to_the_width_and_lose_no_word() {
        let text = "one two three four five six seven eight nine ten";
        let lines = wrap(text, 2, 14);
        assert!(lines.iter().all(|line| line.starts_with("  ") && line.chars().count() <= 14), "{lines:?}");
        assert_eq!(lines.join(" ").split_whitespace().collect::<Vec<_>>(), text.split(' ').collect::<Vec<_>>());
    }
}
