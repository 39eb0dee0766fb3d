//! Tables as Parquet files.
//!
//! Source: the documentation of the crate `parquet` (Apache Arrow), and the Parquet format.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::record::Field;
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

/// Reads the distinct values of some columns of a file of results, which hold texts.
///
/// # Errors
/// [`ParquetError`] if the file cannot be read, is no Parquet file, or lacks a column.
pub fn texts<const N: usize>(path: &Path, columns: [&str; N]) -> Result<HashSet<[String; N]>, ParquetError> {
    let file = std::fs::File::open(path).map_err(|error| ParquetError::External(Box::new(error)))?;
    let reader = SerializedFileReader::new(file)?;
    let schema = reader.metadata().file_metadata().schema();
    let fields: Vec<_> = schema.get_fields().iter().filter(|field| columns.contains(&field.name())).cloned().collect();
    let projection = Type::group_type_builder(schema.name()).with_fields(fields).build()?;
    let mut found = HashSet::new();
    for row in reader.get_row_iter(Some(projection))? {
        let row = row?;
        let text = |name: &str| {
            row.get_column_iter().find_map(|(column, field)| match field {
                Field::Str(text) if column == name => Some(text.clone()),
                _ => None,
            })
        };
        let mut values = std::array::from_fn(|_| String::new());
        for (value, column) in values.iter_mut().zip(columns) {
            let missing = || ParquetError::General(format!("it has no column `{column}` of texts"));
            *value = text(column).ok_or_else(missing)?;
        }
        found.insert(values);
    }
    Ok(found)
}
