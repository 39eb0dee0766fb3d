//! Reads tables.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use bytes::Bytes;
use parquet::basic::Type as PhysicalType;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;

use crate::check;
use crate::column::Wanted;
use crate::error::TableError;
use crate::pages::CheckedPages;

/// Reads some columns of a Parquet file, in parts of any number of rows.
pub struct TableReader {
    file: Box<dyn FileReader>,
    /// The columns that are read.
    columns: Vec<ReadCells>,
    /// Readers of the columns in the current row group.
    readers: Vec<ColumnReader>,
    /// Index of the next row group.
    next_group: usize,
    /// Rows of the current row group that were not read yet.
    left: usize,
    /// Rows that were read.
    rows: u64,
}

/// Cells of a column that were read last.
#[derive(Debug)]
pub struct ReadCells {
    name: String,
    /// Index of the column in the file.
    index: usize,
    is_unsigned: bool,
    /// True if negative numbers are refused.
    is_natural: bool,
    values: ReadValues,
    /// For a nullable column: 1 for each row with a value.
    present: Option<Vec<i16>>,
}

/// The values of a column that are not null.
#[derive(Debug)]
enum ReadValues {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    Bytes(Vec<ByteArray>),
}

impl TableReader {
    /// Opens a file. Pages may be compressed with zstd, snappy, gzip or lz4.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is no Parquet file, is encrypted, or has a missing or
    /// damaged footer.
    pub fn open_file(mut file: File) -> Result<TableReader, TableError> {
        let bytes = file.metadata()?.len();
        let (mut first, mut last) = ([0; 4], [0; 4]);
        if bytes >= 4 {
            file.read_exact(&mut first)?;
        }
        if bytes >= check::BYTES_MIN {
            file.seek(SeekFrom::End(-4))?;
            file.read_exact(&mut last)?;
        }
        TableReader::open(file, bytes, first, last)
    }

    /// Opens a file whose bytes are in memory.
    ///
    /// # Errors
    /// As [`TableReader::open_file`].
    pub fn open_bytes(bytes: Vec<u8>) -> Result<TableReader, TableError> {
        let first = bytes.first_chunk().copied().unwrap_or_default();
        let last = if bytes.len() as u64 >= check::BYTES_MIN { bytes.last_chunk().copied() } else { None };
        let length = bytes.len() as u64;
        TableReader::open(Bytes::from(bytes), length, first, last.unwrap_or_default())
    }

    fn open<R: ChunkReader + 'static>(
        input: R,
        bytes: u64,
        first: [u8; 4],
        last: [u8; 4],
    ) -> Result<TableReader, TableError> {
        check::ends(first, last)?;
        let file = SerializedFileReader::new(input).map_err(|error| match TableError::from(error) {
            TableError::Bad(what) => TableError::Bad(format!("its footer is damaged: {what}")),
            io => io,
        })?;
        check::positions(file.metadata(), bytes)?;
        let file = Box::new(file);
        Ok(TableReader { file, columns: Vec::new(), readers: Vec::new(), next_group: 0, left: 0, rows: 0 })
    }

    /// Returns an entry of the file's metadata.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        let entries = self.file.metadata().file_metadata().key_value_metadata()?;
        entries.iter().find(|entry| entry.key == key)?.value.as_deref()
    }

    /// Returns the name and version of the program that wrote the file.
    pub fn creator(&self) -> Option<&str> {
        self.file.metadata().file_metadata().created_by()
    }

    /// Returns the names of the columns; those of nested columns have dots.
    pub fn column_names(&self) -> Vec<String> {
        self.file
            .metadata()
            .file_metadata()
            .schema_descr()
            .columns()
            .iter()
            .map(|column| column.path().string())
            .collect()
    }

    /// Returns the smallest and the largest number of a column; None if a row group has no
    /// statistics or the table has no rows.
    pub fn range(&self, name: &str) -> Option<(u64, u64)> {
        let (index, column) = self.find(name)?;
        let is_unsigned = check::is_unsigned(column);
        let mut all = None;
        for group in self.file.metadata().row_groups().iter().filter(|group| group.num_rows() > 0) {
            let (min, max) = match group.columns().get(index)?.statistics()? {
                Statistics::Int32(found) => {
                    (number_of_i32(*found.min_opt()?, is_unsigned), number_of_i32(*found.max_opt()?, is_unsigned))
                }
                Statistics::Int64(found) => (*found.min_opt()? as u64, *found.max_opt()? as u64),
                _ => return None,
            };
            all = Some(all.map_or((min, max), |(least, most): (u64, u64)| (least.min(min), most.max(max))));
        }
        all
    }

    /// Returns how a column of the file can be read; None for a type that is not read, and for
    /// nested columns.
    pub fn wanted_of(&self, name: &str) -> Option<Wanted> {
        let (_, column) = self.find(name)?;
        let all = [Wanted::Signed, Wanted::Floats, Wanted::Flags, Wanted::Bytes];
        all.into_iter().find(|wanted| check::kind(column, *wanted).is_ok())
    }

    fn find(&self, name: &str) -> Option<(usize, &ColumnDescriptor)> {
        let columns = self.file.metadata().file_metadata().schema_descr().columns();
        let is = |column: &ColumnDescriptor| matches!(column.path().parts(), [only] if only == name);
        columns.iter().enumerate().find(|(_, column)| is(column)).map(|(index, column)| (index, &**column))
    }

    /// Returns true if the file has a column.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Selects the columns that are read, before the first row is read.
    ///
    /// # Errors
    /// Fails if a column is missing, has another type, or has a compression that is not read.
    pub fn select(&mut self, wanted: &[(&str, Wanted)]) -> Result<(), TableError> {
        let mut columns = Vec::with_capacity(wanted.len());
        for (name, wanted) in wanted {
            let Some((index, column)) = self.find(name) else {
                let has = self.column_names().join(", ");
                return Err(TableError::Bad(format!("it has no column `{name}`; its columns are {has}")));
            };
            check::kind(column, *wanted)?;
            for group in self.file.metadata().row_groups() {
                let chunk = group.columns().get(index);
                chunk.map_or(Ok(()), |chunk| check::compression(name, chunk.compression()))?;
            }
            columns.push(ReadCells {
                name: (*name).to_owned(),
                index,
                is_unsigned: check::is_unsigned(column),
                is_natural: *wanted == Wanted::Numbers,
                values: match column.physical_type() {
                    PhysicalType::INT32 => ReadValues::Int32(Vec::new()),
                    PhysicalType::INT64 => ReadValues::Int64(Vec::new()),
                    PhysicalType::DOUBLE => ReadValues::Double(Vec::new()),
                    PhysicalType::BOOLEAN => ReadValues::Bool(Vec::new()),
                    _ => ReadValues::Bytes(Vec::new()),
                },
                present: (column.max_def_level() > 0).then(Vec::new),
            });
        }
        self.columns = columns;
        Ok(())
    }

    /// Reads up to `rows_max` rows of one row group, and returns their number; 0 at the end.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is damaged, or has a negative number.
    pub fn read(&mut self, rows_max: usize) -> Result<usize, TableError> {
        while self.left == 0 {
            if !self.next_group()? {
                self.columns.iter_mut().for_each(ReadCells::clear);
                return Ok(0);
            }
        }
        let rows = rows_max.min(self.left);
        for (cells, reader) in self.columns.iter_mut().zip(&mut self.readers) {
            cells.clear();
            let failed = |what: String| {
                let (first, name) = (self.rows + 1, &cells.name);
                TableError::Bad(format!("column `{name}` is damaged at row {first} or later: {what}"))
            };
            let read = cells.values.read(reader, rows, cells.present.as_mut());
            let read = read.map_err(|error| match TableError::from(error) {
                TableError::Bad(what) => failed(what),
                io => io,
            })?;
            if read != rows {
                return Err(failed(format!("{read} of {rows} values are there")));
            }
            cells.check_sign(self.rows)?;
        }
        self.left -= rows;
        self.rows += rows as u64;
        Ok(rows)
    }

    /// Number of rows that were read.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The selected columns with the rows of the last [`TableReader::read`].
    pub fn cells(&self) -> &[ReadCells] {
        &self.columns
    }

    /// Opens the next row group. Returns false at the end.
    fn next_group(&mut self) -> Result<bool, TableError> {
        if self.next_group >= self.file.num_row_groups() {
            return Ok(false);
        }
        let group = self.file.get_row_group(self.next_group)?;
        let column = |cells: &ReadCells| {
            let pages = CheckedPages::new(group.get_column_page_reader(cells.index)?);
            let column = group.metadata().column(cells.index).column_descr_ptr();
            Ok::<_, ParquetError>(get_column_reader(column, Box::new(pages)))
        };
        self.readers = self.columns.iter().map(column).collect::<Result<_, _>>()?;
        self.left = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        self.next_group += 1;
        Ok(true)
    }
}

impl ReadCells {
    /// Name of the column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of each row, or None where it is null.
    pub fn numbers(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        self.rows(move |at| match &self.values {
            ReadValues::Int32(values) => values.get(at).map(|value| number_of_i32(*value, self.is_unsigned)),
            ReadValues::Int64(values) => values.get(at).map(|value| *value as u64),
            _ => None,
        })
    }

    /// Returns the number with its sign of each row, or None where it is null.
    pub fn signed(&self) -> impl Iterator<Item = Option<i64>> + '_ {
        self.numbers().map(|number| number.map(|number| number as i64))
    }

    /// Returns the floating-point number of each row, or None where it is null.
    pub fn floats(&self) -> impl Iterator<Item = Option<f64>> + '_ {
        self.rows(move |at| match &self.values {
            ReadValues::Double(values) => values.get(at).copied(),
            _ => None,
        })
    }

    /// Returns the truth value of each row, or None where it is null.
    pub fn flags(&self) -> impl Iterator<Item = Option<bool>> + '_ {
        self.rows(move |at| match &self.values {
            ReadValues::Bool(values) => values.get(at).copied(),
            _ => None,
        })
    }

    /// Returns the bytes of each row, or None where they are null.
    pub fn bytes(&self) -> impl Iterator<Item = Option<&[u8]>> + '_ {
        self.rows(move |at| match &self.values {
            ReadValues::Bytes(values) => values.get(at).map(ByteArray::data),
            _ => None,
        })
    }

    /// Returns the value of each row, by its index among those that are not null.
    fn rows<'a, T: 'a>(&'a self, value_at: impl Fn(usize) -> Option<T> + 'a) -> impl Iterator<Item = Option<T>> + 'a {
        let (mut row, mut value) = (0, 0);
        std::iter::from_fn(move || self.step(&mut row, &mut value).map(|at| at.and_then(&value_at)))
    }

    /// Advances by a row. Returns the index of its value, None within for a null, or None at the
    /// end.
    fn step(&self, row: &mut usize, value: &mut usize) -> Option<Option<usize>> {
        let has_value = match &self.present {
            Some(present) => *present.get(*row)? > 0,
            None => *row < self.values.len(),
        };
        if !has_value && self.present.is_none() {
            return None;
        }
        *row += 1;
        Some(has_value.then(|| {
            *value += 1;
            *value - 1
        }))
    }

    fn clear(&mut self) {
        match &mut self.values {
            ReadValues::Int32(values) => values.clear(),
            ReadValues::Int64(values) => values.clear(),
            ReadValues::Double(values) => values.clear(),
            ReadValues::Bool(values) => values.clear(),
            ReadValues::Bytes(values) => values.clear(),
        }
        self.present.iter_mut().for_each(Vec::clear);
    }

    /// Refuses negative numbers of the rows that follow the first `rows`.
    fn check_sign(&self, rows: u64) -> Result<(), TableError> {
        let negative = match &self.values {
            _ if self.is_unsigned || !self.is_natural => None,
            ReadValues::Int32(values) => values.iter().copied().map(i64::from).find(|value| *value < 0),
            ReadValues::Int64(values) => values.iter().copied().find(|value| *value < 0),
            _ => None,
        };
        match negative {
            None => Ok(()),
            Some(value) => Err(TableError::Bad(format!(
                "column `{}` has {value} at row {} or later: numbers from 0 on would be right",
                self.name,
                rows + 1
            ))),
        }
    }
}

impl ReadValues {
    /// Reads rows and returns their number.
    fn read(
        &mut self,
        reader: &mut ColumnReader,
        rows: usize,
        present: Option<&mut Vec<i16>>,
    ) -> Result<usize, ParquetError> {
        match (self, reader) {
            (ReadValues::Int32(values), ColumnReader::Int32ColumnReader(reader)) => take(reader, rows, present, values),
            (ReadValues::Int64(values), ColumnReader::Int64ColumnReader(reader)) => take(reader, rows, present, values),
            (ReadValues::Double(values), ColumnReader::DoubleColumnReader(reader)) => {
                take(reader, rows, present, values)
            }
            (ReadValues::Bool(values), ColumnReader::BoolColumnReader(reader)) => take(reader, rows, present, values),
            (ReadValues::Bytes(values), ColumnReader::ByteArrayColumnReader(reader)) => {
                take(reader, rows, present, values)
            }
            _ => Err(ParquetError::General("its type differs from that in the schema".to_owned())),
        }
    }

    fn len(&self) -> usize {
        match self {
            ReadValues::Int32(values) => values.len(),
            ReadValues::Int64(values) => values.len(),
            ReadValues::Double(values) => values.len(),
            ReadValues::Bool(values) => values.len(),
            ReadValues::Bytes(values) => values.len(),
        }
    }
}

fn take<D: DataType>(
    reader: &mut ColumnReaderImpl<D>,
    rows: usize,
    present: Option<&mut Vec<i16>>,
    values: &mut Vec<D::T>,
) -> Result<usize, ParquetError> {
    let (records, ..) = reader.read_records(rows, present, None, values)?;
    Ok(records)
}

fn number_of_i32(value: i32, is_unsigned: bool) -> u64 {
    if is_unsigned { u64::from(value as u32) } else { i64::from(value) as u64 }
}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableReader at row {}", self.rows)
    }
}
