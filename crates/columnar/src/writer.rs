//! Writes tables.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding as ParquetEncoding, ZstdLevel};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::column::{Cells, Column, Encoding, Values};
use crate::error::TableError;

/// Writes a table as a Parquet file, one row group a call. Columns are compressed with zstd and
/// have statistics for each row group and page. Equal tables give equal bytes.
pub struct TableWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> TableWriter<W> {
    /// Creates a file with these columns. `creator` is the name and version of the program.
    ///
    /// # Errors
    /// Fails if two columns have the same name, or if `out` cannot be written.
    pub fn new(out: W, columns: &[Column], creator: &str) -> Result<TableWriter<W>, TableError> {
        let fields = columns.iter().map(Column::field).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder("table").with_fields(fields).build()?);
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(creator.to_owned());
        for column in columns.iter().filter(|column| column.encoding == Encoding::Delta) {
            let path = ColumnPath::from(column.name.as_str());
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, ParquetEncoding::DELTA_BINARY_PACKED);
        }
        Ok(TableWriter { writer: SerializedFileWriter::new(out, schema, Arc::new(properties.build()))? })
    }

    /// Adds an entry to the metadata of the file.
    pub fn set_metadata(&mut self, key: &str, value: &str) {
        self.writer.append_key_value_metadata(KeyValue::new(key.to_owned(), value.to_owned()));
    }

    /// Writes rows as a row group; the columns are in the order in which they were declared.
    ///
    /// # Errors
    /// Fails if the columns differ in their number of rows, have other types than declared, or
    /// cannot be written.
    pub fn write(&mut self, columns: &[Cells]) -> Result<(), TableError> {
        let mut rows = self.writer.next_row_group()?;
        for Cells { values, present } in columns {
            let Some(mut column) = rows.next_column()? else { continue };
            match (column.untyped(), values) {
                (ColumnWriter::Int32ColumnWriter(to), Values::Int32(values)) => put(to, values, present)?,
                (ColumnWriter::Int64ColumnWriter(to), Values::Int64(values)) => put(to, values, present)?,
                (ColumnWriter::DoubleColumnWriter(to), Values::Double(values)) => put(to, values, present)?,
                (ColumnWriter::BoolColumnWriter(to), Values::Bool(values)) => put(to, values, present)?,
                (ColumnWriter::ByteArrayColumnWriter(to), Values::Bytes(values)) => put(to, values, present)?,
                _ => return Err(TableError::Bad("a column has another type than declared".to_owned())),
            }
            column.close()?;
        }
        rows.close()?;
        Ok(())
    }

    /// Writes the footer and returns the output.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    pub fn finish(self) -> Result<W, TableError> {
        Ok(self.writer.into_inner()?)
    }
}

fn put<D: DataType>(to: &mut ColumnWriterImpl<'_, D>, values: &[D::T], present: &[i16]) -> Result<(), ParquetError> {
    let levels = (to.get_descriptor().max_def_level() > 0).then_some(present);
    to.write_batch(values, levels, None)?;
    Ok(())
}

impl<W: Write + Send> std::fmt::Debug for TableWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TableWriter after {} row groups", self.writer.flushed_row_groups().len())
    }
}
