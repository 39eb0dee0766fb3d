//! Tables whose columns are found by their titles.

use super::{Fields, shown};
use crate::lines::BYTE_ORDER_MARK;

/// Columns of a table, found by the titles in its first line. `N` columns are read.
#[derive(Clone, Debug)]
pub struct TitledColumns<const N: usize> {
    titles: [&'static str; N],
    /// For each column of the table, the index of its title in `titles`.
    columns: Vec<Option<usize>>,
    /// The first title of the line, by which repeated lines of titles are recognised.
    first: Vec<u8>,
}

/// The fields of a line, in the order of the titles that were asked for.
#[derive(Clone, Copy, Debug)]
pub struct TitledRow<'a, const N: usize> {
    titles: [&'static str; N],
    fields: [Option<&'a [u8]>; N],
}

impl<const N: usize> TitledColumns<N> {
    /// Finds the columns of a table with this beginning, whose fields are separated by commas. The
    /// first `required` titles must be there; the order of the columns is free.
    ///
    /// # Errors
    /// Fails if the first line lacks a required title.
    pub fn find(head: &[u8], titles: [&'static str; N], required: usize) -> Result<TitledColumns<N>, String> {
        let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
        let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
        let index = |title: &[u8]| titles.iter().position(|wanted| title.eq_ignore_ascii_case(wanted.as_bytes()));
        let columns: Vec<Option<usize>> = Fields::split(line, b',').map(index).collect();
        let missing = (0..required).find(|wanted| !columns.contains(&Some(*wanted)));
        if let Some(title) = missing.and_then(|wanted| titles.get(wanted)) {
            return Err(format!("the titles {} have no column {title}", shown(line)));
        }
        let first = Fields::split(line, b',').next().unwrap_or_default().to_owned();
        Ok(TitledColumns { titles, columns, first })
    }

    /// Returns true for the line of titles, also where it is repeated.
    pub fn is_titles(&self, line: &[u8]) -> bool {
        line.strip_prefix(self.first.as_slice()).is_some_and(|rest| rest.starts_with(b","))
    }

    /// Splits a line.
    pub fn row<'a>(&self, line: &'a [u8]) -> TitledRow<'a, N> {
        let mut fields = [None; N];
        for (field, column) in Fields::split(line, b',').zip(&self.columns) {
            if let Some(slot) = column.and_then(|index| fields.get_mut(index)) {
                *slot = Some(field);
            }
        }
        TitledRow { titles: self.titles, fields }
    }
}

impl<'a, const N: usize> TitledRow<'a, N> {
    /// Returns the field of a column by the index of its title; None if the table or the line lacks
    /// it.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.fields.get(index).copied().flatten()
    }

    /// Returns the field of a column by the index of its title.
    ///
    /// # Errors
    /// Fails if the line lacks it.
    pub fn want(&self, index: usize) -> Result<&'a [u8], String> {
        self.get(index).ok_or_else(|| {
            format!("the line ends where {} should be", self.titles.get(index).copied().unwrap_or("a column"))
        })
    }
}

/// Returns true if a line has all these titles, in any order.
pub fn has_titles(line: &[u8], titles: &[&str]) -> bool {
    titles.iter().all(|title| Fields::split(line, b',').any(|field| field.eq_ignore_ascii_case(title.as_bytes())))
}
