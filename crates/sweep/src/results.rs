//! The results of a folder as one table.

use std::collections::HashSet;
use std::path::Path;

use crate::columns::{Cells, Column};
use crate::folder::{FolderError, files};
use crate::parquet_file;

/// The rows of all points in a folder of results: the union of the columns of its files. A cell is
/// null where the file of its row does not have the column.
#[derive(Clone, Debug, Default)]
pub struct Results {
    columns: Vec<Column>,
    rows: usize,
}

impl Results {
    /// Reads the points of a folder, each once. The order of the rows is that of the files' names.
    ///
    /// # Errors
    /// [`FolderError::Io`] if the folder has no directory `points`, and [`FolderError::Damaged`]
    /// for a file that is not one of results.
    pub fn read(folder: &Path) -> Result<Results, FolderError> {
        Results::read_tables(&folder.join("points"), &[POINT])
    }

    /// Reads the jobs of the points of a folder, each once; the column `point` names their points.
    ///
    /// # Errors
    /// [`FolderError::Io`] if the folder has no directory `jobs`, and [`FolderError::Damaged`] for
    /// a file that is not one of results.
    pub fn read_jobs(folder: &Path) -> Result<Results, FolderError> {
        Results::read_tables(&folder.join("jobs"), &[POINT, JOB_INDEX])
    }

    /// Reads the tables of a directory; a row is identified by the columns of `key`.
    fn read_tables(directory: &Path, key: &[&str]) -> Result<Results, FolderError> {
        let mut results = Results::default();
        for file in files(directory)? {
            let damaged = |problem: String| FolderError::Damaged { path: file.clone(), problem };
            let columns = parquet_file::read(&file, &|_| true).map_err(|error| damaged(error.to_string()))?;
            if let Some(missing) = key.iter().find(|name| !columns.iter().any(|column| column.name == **name)) {
                return Err(damaged(format!("it has no column `{missing}`")));
            }
            results.append(columns);
        }
        results.remove_duplicates(key);
        Ok(results)
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All columns: those of the first file, then others as they occur.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<&Cells> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.cells)
    }

    fn append(&mut self, columns: Vec<Column>) {
        let more = columns.first().map_or(0, |column| column.cells.len());
        for Column { name, cells } in columns {
            match self.columns.iter_mut().find(|column| column.name == name) {
                Some(column) => column.cells.append(cells),
                None => {
                    let mut all = cells.empty();
                    all.append_nulls(self.rows);
                    all.append(cells);
                    self.columns.push(Column { name, cells: all });
                }
            }
        }
        self.rows += more;
        for column in &mut self.columns {
            column.cells.append_nulls(self.rows - column.cells.len());
        }
    }

    /// Removes rows whose columns of `key` equal those of an earlier row: two machines that
    /// simulated the same points in different batches wrote them twice.
    fn remove_duplicates(&mut self, key: &[&str]) {
        let columns: Vec<&Cells> = key.iter().filter_map(|name| self.column(name)).collect();
        let mut seen = HashSet::new();
        let key = |row: usize| columns.iter().map(|cells| cells.text(row)).collect::<Vec<_>>();
        let keep: Vec<bool> = (0..self.rows).map(|row| seen.insert(key(row))).collect();
        if keep.iter().all(|keep| *keep) {
            return;
        }
        self.rows = keep.iter().filter(|keep| **keep).count();
        self.columns.iter_mut().for_each(|column| column.cells.retain(&keep));
    }
}

/// The column with the names of points.
const POINT: &str = "point";
/// The column with the numbers of the jobs of a point.
const JOB_INDEX: &str = "job_index";

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, cells: Cells) -> Column {
        Column { name: name.to_owned(), cells }
    }

    fn point(names: &[&str]) -> Column {
        column(POINT, Cells::Text(names.iter().map(|name| Some((*name).to_owned())).collect()))
    }

    #[test]
    fn columns_of_several_files_are_united_and_points_count_once() {
        let mut results = Results::default();
        results.append(vec![point(&["a", "b"]), column("x", Cells::Int(vec![Some(1), None]))]);
        let more = vec![
            point(&["b", "c"]),
            column("x", Cells::Float(vec![None, Some(0.5)])),
            column("y", Cells::Bool(vec![None, Some(true)])),
        ];
        results.append(more);
        results.remove_duplicates(&[POINT]);
        assert_eq!(results.rows(), 3);
        assert_eq!(results.column("x"), Some(&Cells::Float(vec![Some(1.0), None, Some(0.5)])));
        assert_eq!(results.column("y"), Some(&Cells::Bool(vec![None, None, Some(true)])));
    }

    #[test]
    fn numbers_and_texts_together_are_texts() {
        let mut results = Results::default();
        results.append(vec![point(&["a"]), column("x", Cells::Int(vec![Some(4)]))]);
        results.append(vec![point(&["b"]), column("x", Cells::Text(vec![Some("4k".to_owned())]))]);
        assert_eq!(results.column("x"), Some(&Cells::Text(vec![Some("4".to_owned()), Some("4k".to_owned())])));
    }
}
