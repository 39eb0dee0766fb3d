//! Tables as Parquet files.
//!
//! Source: the documentation of the crate `parquet` (Apache Arrow), and the Parquet format.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::columns::{Cells, Column};

/// Writes a table as the bytes of a Parquet file with one row group. Equal tables give equal bytes.
///
/// # Errors
/// None for tables whose columns have the same number of rows.
pub fn write(columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let schema = Arc::new(Type::group_type_builder("table").with_fields(fields).build()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("hoistway ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties))?;
    let mut rows = writer.next_row_group()?;
    for column in columns {
        match &column.cells {
            Cells::Text(cells) => put::<ByteArrayType, _>(&mut rows, cells, |text| ByteArray::from(text.as_str()))?,
            Cells::Int(cells) => put::<Int64Type, _>(&mut rows, cells, |number| *number)?,
            Cells::Float(cells) => put::<DoubleType, _>(&mut rows, cells, |number| *number)?,
            Cells::Bool(cells) => put::<BoolType, _>(&mut rows, cells, |flag| *flag)?,
        }
    }
    rows.close()?;
    writer.close()?;
    Ok(bytes)
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let physical = match column.cells {
        Cells::Text(_) => PhysicalType::BYTE_ARRAY,
        Cells::Int(_) => PhysicalType::INT64,
        Cells::Float(_) => PhysicalType::DOUBLE,
        Cells::Bool(_) => PhysicalType::BOOLEAN,
    };
    let mut field = Type::primitive_type_builder(&column.name, physical).with_repetition(Repetition::OPTIONAL);
    if let Cells::Text(_) = column.cells {
        field = field.with_logical_type(Some(LogicalType::String)).with_converted_type(ConvertedType::UTF8);
    }
    Ok(Arc::new(field.build()?))
}

/// Writes a column: the values that are not null, and for each row whether it has one.
fn put<D: DataType, T>(
    rows: &mut SerializedRowGroupWriter<'_, &mut Vec<u8>>,
    cells: &[Option<T>],
    value: impl Fn(&T) -> D::T,
) -> Result<(), ParquetError> {
    let values: Vec<D::T> = cells.iter().flatten().map(value).collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    if let Some(mut column) = rows.next_column()? {
        column.typed::<D>().write_batch(&values, Some(&levels), None)?;
        column.close()?;
    }
    Ok(())
}

/// Reads the columns of a file whose names are `wanted`, in the order of the file.
///
/// # Errors
/// [`ParquetError`] if the file cannot be read, is no Parquet file, or has a column of a type that
/// [`write`] does not write.
pub fn read(path: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Column>, ParquetError> {
    let file = std::fs::File::open(path).map_err(|error| ParquetError::External(Box::new(error)))?;
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns: Vec<Column> = Vec::new();
    for group in 0..reader.num_row_groups() {
        let rows = reader.get_row_group(group)?;
        let count = usize::try_from(rows.metadata().num_rows()).unwrap_or_default();
        let indices = (0..schema.num_columns()).filter(|index| wanted(schema.column(*index).name()));
        for (position, index) in indices.enumerate() {
            let name = schema.column(index).name().to_owned();
            let cells = match rows.get_column_reader(index)? {
                ColumnReader::ByteArrayColumnReader(column) => {
                    let texts = take(column, count)?.into_iter();
                    let text =
                        |bytes: Option<ByteArray>| bytes.map(|bytes| Ok(bytes.as_utf8()?.to_owned())).transpose();
                    Cells::Text(texts.map(text).collect::<Result<_, ParquetError>>()?)
                }
                ColumnReader::Int64ColumnReader(column) => Cells::Int(take(column, count)?),
                ColumnReader::DoubleColumnReader(column) => Cells::Float(take(column, count)?),
                ColumnReader::BoolColumnReader(column) => Cells::Bool(take(column, count)?),
                _ => return Err(ParquetError::General(format!("its column `{name}` has another type than results"))),
            };
            match columns.get_mut(position) {
                Some(column) => column.cells.append(cells),
                None => columns.push(Column { name, cells }),
            }
        }
    }
    Ok(columns)
}

/// Reads the rows of a column.
fn take<D: DataType>(mut column: ColumnReaderImpl<D>, rows: usize) -> Result<Vec<Option<D::T>>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (read, ..) = column.read_records(rows, Some(&mut levels), None, &mut values)?;
    if read != rows {
        return Err(ParquetError::General(format!("a column has {read} rows instead of {rows}")));
    }
    // A column whose cells cannot be null has no levels.
    let optional = !levels.is_empty();
    let mut values = values.into_iter();
    Ok((0..rows).map(|row| if optional && levels[row] == 0 { None } else { values.next() }).collect())
}
