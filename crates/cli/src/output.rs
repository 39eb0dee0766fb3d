//! Standard output: plain in a pipe, with colours on a terminal, without a panic on a closed pipe.
//!
//! Names of processes, jobs and files are of unknown origin, so [`Out`] escapes unprintable
//! characters in all that it prints, and newlines except in [`Out::text`]. Only [`Out::bytes`]
//! prints what it gets.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Row, Table, TableStyle};
use hoistway_units::printable;
use serde::Serialize;

use crate::failure::OutputError;

/// Greatest width of text, in columns: longer lines are hard to read.
pub const TEXT_COLUMNS_MAX: usize = 100;
/// The minimum width of a terminal, in columns; narrower ones are treated as this.
const TEXT_COLUMNS_MIN: usize = 40;

/// A table style with a rule under the header and no other lines.
const RULED_HEADER: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('-'));

/// The output of commands.
pub struct Out {
    writer: BufWriter<Stdout>,
    is_terminal: bool,
    /// True if colours and bold text are enabled.
    styled: bool,
    /// Width of the terminal in columns; `None` in a pipe.
    terminal_columns: Option<usize>,
}

impl Out {
    /// The process's standard output.
    pub fn stdout() -> Out {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let terminal_columns = Table::new().width().filter(|_| is_terminal).map(usize::from);
        let styled = is_terminal && colours_are_wanted();
        Out { writer: BufWriter::new(stdout), is_terminal, styled, terminal_columns }
    }

    /// Prints one line.
    pub fn line(&mut self, line: impl Display) -> Result<(), OutputError> {
        self.escaped_line(printable::one_line(line))
    }

    /// Prints text of several lines.
    pub fn text(&mut self, text: impl Display) -> Result<(), OutputError> {
        self.escaped_line(printable::lines(text))
    }

    /// Prints a line whose names are escaped: one of [`Out::table_lines`], which may have colours.
    pub fn escaped_line(&mut self, line: impl Display) -> Result<(), OutputError> {
        Ok(writeln!(self.writer, "{line}")?)
    }

    /// Prints bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        Ok(self.writer.write_all(bytes)?)
    }

    /// Prints one JSON document, indented.
    pub fn json(&mut self, document: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(document)?;
        Ok(self.escaped_line(printable::json(&text))?)
    }

    /// Prints one JSON document in one line.
    pub fn json_line(&mut self, document: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string(document)?;
        Ok(self.escaped_line(printable::json(&text))?)
    }

    /// Prints a line in bold on a terminal.
    pub fn heading(&mut self, line: impl Display) -> Result<(), OutputError> {
        let line = printable::one_line(line);
        if self.styled { self.escaped_line(format_args!("\u{1b}[1m{line}\u{1b}[0m")) } else { self.escaped_line(line) }
    }

    /// Prints a paragraph, wrapped and indented by `indent` columns.
    pub fn paragraph(&mut self, indent: usize, text: &str) -> Result<(), OutputError> {
        let columns = self.columns();
        wrap(text, indent, columns).into_iter().try_for_each(|line| self.line(line))
    }

    /// Prints a table that [`table`] created.
    pub fn table(&mut self, table: &mut Table) -> Result<(), OutputError> {
        self.table_lines(table).iter().try_for_each(|line| self.escaped_line(line))
    }

    /// The lines of a table, for output with other lines in between.
    pub fn table_lines(&self, table: &mut Table) -> Vec<String> {
        if self.styled {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        escape_cells(table);
        table.lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Width of text in columns: that of the terminal, at most [`TEXT_COLUMNS_MAX`], which also
    /// applies to pipes.
    pub fn columns(&self) -> usize {
        self.terminal_columns.unwrap_or(TEXT_COLUMNS_MAX).clamp(TEXT_COLUMNS_MIN, TEXT_COLUMNS_MAX)
    }

    /// Returns true if a table of this many columns fits; in a pipe every table does.
    pub fn takes(&self, columns: usize) -> bool {
        self.terminal_columns.is_none_or(|terminal| columns <= terminal)
    }

    /// Returns true if people read the output, and no program.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
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
    table.set_header(header.iter().map(|text| Cell::new(printable::lines(text)).add_attribute(Attribute::Bold)));
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
    escape_cells(&mut plain);
    plain.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0)
}

/// Escapes the cells that have unprintable characters or newlines; they lose their colours. The
/// header has lines of its own: names in it are escaped where it is created.
fn escape_cells(table: &mut Table) {
    for row in table.row_iter_mut() {
        let texts: Vec<String> = row.cell_iter().map(Cell::content).collect();
        if !texts.iter().all(|text| text.chars().all(printable::is_printable)) {
            *row = Row::from(texts.iter().map(printable::one_line).collect::<Vec<_>>());
        }
    }
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
    fn a_cell_is_one_line_without_escape_sequences() {
        let mut table = table(&["two\nlines", "rate"], 1);
        table.add_row([Cell::new("a\nb\u{1b}[31m\u{202e}"), best("7")]);
        let columns = width(&table);
        escape_cells(&mut table);
        let lines: Vec<String> = table.force_no_tty().lines().collect();
        assert_eq!(lines.len(), 4, "two of the header, a rule, a row: {lines:?}");
        assert!(lines[3].starts_with(r"a\nb\x1b[31m\u{202e}"), "{lines:?}");
        assert_eq!(lines[3].trim_end().len(), columns);
    }

    #[test]
    fn wrapped_lines_keep_to_the_width_and_lose_no_word() {
        let text = "one two three four five six seven eight nine ten";
        let lines = wrap(text, 2, 14);
        assert!(lines.iter().all(|line| line.starts_with("  ") && line.chars().count() <= 14), "{lines:?}");
        assert_eq!(lines.join(" ").split_whitespace().collect::<Vec<_>>(), text.split(' ').collect::<Vec<_>>());
    }
}
