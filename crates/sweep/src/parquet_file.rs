//! Tables of results as Parquet files.

use std::fs::File;
use std::path::Path;

use hoistway_columnar::{ByteArray, Column as FileColumn, Encoding, Kind, TableError, TableReader, TableWriter};
use hoistway_columnar::{Cells as FileCells, ReadCells, Values, Wanted};

use crate::columns::{Cells, Column};

/// Rows that are read at a time.
const ROWS: usize = 1024;

/// Writes a table as the bytes of a Parquet file with one row group. Equal tables give equal bytes.
///
/// # Errors
/// None for tables whose columns have the same number of rows.
pub fn write(columns: &[Column]) -> Result<Vec<u8>, TableError> {
    let declared: Vec<FileColumn> = columns.iter().map(declare).collect();
    let mut writer = TableWriter::new(Vec::new(), &declared, concat!("hoistway ", env!("CARGO_PKG_VERSION")))?;
    let cells: Vec<FileCells> = columns.iter().map(|column| cells_of(&column.cells)).collect();
    writer.write(&cells)?;
    writer.finish()
}

fn declare(column: &Column) -> FileColumn {
    let kind = match column.cells {
        Cells::Text(_) => Kind::Text,
        Cells::Int(_) => Kind::I64,
        Cells::Float(_) => Kind::F64,
        Cells::Bool(_) => Kind::Bool,
    };
    FileColumn { name: column.name.clone(), kind, nullable: true, encoding: Encoding::Dictionary }
}

fn cells_of(cells: &Cells) -> FileCells {
    match cells {
        Cells::Text(rows) => FileCells::some(rows, Values::Bytes, |text| ByteArray::from(text.as_str())),
        Cells::Int(rows) => FileCells::some(rows, Values::Int64, |number| *number),
        Cells::Float(rows) => FileCells::some(rows, Values::Double, |number| *number),
        Cells::Bool(rows) => FileCells::some(rows, Values::Bool, |flag| *flag),
    }
}

/// Reads the columns of a file whose names are `wanted`, in the order of the file.
///
/// # Errors
/// [`TableError`] if the file cannot be read, is no Parquet file, or has a column of a type that
/// [`write`] does not write.
pub fn read(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Column>, TableError> {
    let mut table = TableReader::open_file(File::open(path)?)?;
    let names: Vec<String> = table.column_names().into_iter().filter(|name| wanted(name)).collect();
    let kind = |name: &String| {
        let other = || TableError::Bad(format!("its column `{name}` has another type than results"));
        table.wanted_of(name).ok_or_else(other)
    };
    let kinds = names.iter().map(kind).collect::<Result<Vec<Wanted>, _>>()?;
    table.select(&names.iter().map(String::as_str).zip(kinds.iter().copied()).collect::<Vec<_>>())?;
    let mut columns: Vec<Column> = Vec::new();
    while table.read(ROWS)? > 0 {
        for (position, (read, kind)) in table.cells().iter().zip(&kinds).enumerate() {
            let cells = cells_read(*kind, read)?;
            match columns.get_mut(position) {
                Some(column) => column.cells.append(cells),
                None => columns.push(Column { name: read.name().to_owned(), cells }),
            }
        }
    }
    Ok(columns)
}

/// Returns the cells of the rows that were read last.
fn cells_read(kind: Wanted, read: &ReadCells) -> Result<Cells, TableError> {
    Ok(match kind {
        Wanted::Bytes => {
            let text =
                |bytes: Option<&[u8]>| bytes.map(|bytes| std::str::from_utf8(bytes).map(str::to_owned)).transpose();
            let texts = read.bytes().map(text).collect::<Result<_, _>>();
            Cells::Text(texts.map_err(|error| TableError::Bad(format!("its column `{}`: {error}", read.name())))?)
        }
        Wanted::Numbers | Wanted::Signed => Cells::Int(read.signed().collect()),
        Wanted::Floats => Cells::Float(read.floats().collect()),
        Wanted::Flags => Cells::Bool(read.flags().collect()),
    })
}
