//! Checks of files before they are read: what is refused, and why.

use parquet::basic::{Compression, ConvertedType, LogicalType, Type as PhysicalType};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::ColumnDescriptor;

use crate::MAGIC;
use crate::column::Wanted;
use crate::error::TableError;

/// Length of the smallest file in bytes: the magic number twice, and the length of the footer.
pub(crate) const BYTES_MIN: u64 = 12;

/// Checks the first and the last four bytes of a file.
pub(crate) fn ends(first: [u8; 4], last: [u8; 4]) -> Result<(), TableError> {
    let bad = |what: &str| Err(TableError::Bad(what.to_owned()));
    if &first == b"PARE" || &last == b"PARE" {
        return bad("it is an encrypted Parquet file: decrypt it first");
    }
    if first != *MAGIC {
        return bad("it is no Parquet file: PAR1 at its beginning would be right");
    }
    if last != *MAGIC {
        return bad(
            "its footer is missing (PAR1 at its end would be right): it was cut short, or its writer was killed; copy \
             or write it again",
        );
    }
    Ok(())
}

/// Checks the positions of all columns, which the footer names.
pub(crate) fn positions(metadata: &ParquetMetaData, file_bytes: u64) -> Result<(), TableError> {
    let file_bytes = i64::try_from(file_bytes).unwrap_or(i64::MAX);
    for (index, group) in metadata.row_groups().iter().enumerate() {
        if group.num_rows() < 0 {
            return Err(TableError::Bad(format!(
                "its footer is damaged: row group {index} has {} rows",
                group.num_rows()
            )));
        }
        for column in group.columns() {
            let first = column.dictionary_page_offset().unwrap_or(i64::MAX).min(column.data_page_offset());
            let end = first.checked_add(column.compressed_size()).filter(|end| *end <= file_bytes);
            if first < 0 || column.compressed_size() < 0 || column.num_values() < 0 || end.is_none() {
                return Err(TableError::Bad(format!(
                    "its footer is damaged: column `{}` of row group {index} is not inside the file",
                    column.column_path().string()
                )));
            }
        }
    }
    Ok(())
}

/// Checks that a column has a type that is read as `wanted`.
pub(crate) fn kind(column: &ColumnDescriptor, wanted: Wanted) -> Result<(), TableError> {
    let plain = match wanted {
        Wanted::Numbers | Wanted::Signed => is_number(column),
        Wanted::Floats => column.physical_type() == PhysicalType::DOUBLE,
        Wanted::Flags => column.physical_type() == PhysicalType::BOOLEAN,
        Wanted::Bytes => column.physical_type() == PhysicalType::BYTE_ARRAY,
    };
    if plain && column.max_rep_level() == 0 && column.max_def_level() <= 1 {
        return Ok(());
    }
    let right = match wanted {
        Wanted::Floats => "floating-point numbers (DOUBLE)",
        Wanted::Flags => "truth values (BOOLEAN)",
        Wanted::Numbers | Wanted::Signed => "whole numbers (INT32 or INT64)",
        Wanted::Bytes => "texts or bytes (BYTE_ARRAY)",
    };
    let is = match column.logical_type_ref() {
        _ if column.max_rep_level() > 0 => "lists".to_owned(),
        Some(logical) => format!("{} ({logical:?})", column.physical_type()),
        None => column.physical_type().to_string(),
    };
    Err(TableError::Bad(format!("its column `{}` has values of type {is}: {right} would be right", column.name())))
}

fn is_number(column: &ColumnDescriptor) -> bool {
    let is_whole = match column.logical_type_ref() {
        Some(LogicalType::Integer(_)) => true,
        Some(_) => false,
        None => !matches!(
            column.converted_type(),
            ConvertedType::DECIMAL
                | ConvertedType::DATE
                | ConvertedType::TIME_MILLIS
                | ConvertedType::TIME_MICROS
                | ConvertedType::TIMESTAMP_MILLIS
                | ConvertedType::TIMESTAMP_MICROS
        ),
    };
    is_whole && matches!(column.physical_type(), PhysicalType::INT32 | PhysicalType::INT64)
}

/// Returns true if the numbers of a column have no sign.
pub(crate) fn is_unsigned(column: &ColumnDescriptor) -> bool {
    match column.logical_type_ref() {
        Some(LogicalType::Integer(integer)) => !integer.is_signed,
        _ => matches!(
            column.converted_type(),
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
        ),
    }
}

/// Checks that the compression of a column is one that is read.
pub(crate) fn compression(name: &str, compression: Compression) -> Result<(), TableError> {
    let refused = match compression {
        Compression::UNCOMPRESSED
        | Compression::SNAPPY
        | Compression::GZIP(_)
        | Compression::ZSTD(_)
        | Compression::LZ4
        | Compression::LZ4_RAW => return Ok(()),
        Compression::BROTLI(_) => "Brotli",
        Compression::LZO => "LZO",
    };
    Err(TableError::Bad(format!(
        "its column `{name}` is compressed with {refused}, which is not read: zstd, snappy, gzip, lz4 or none would be \
         right"
    )))
}
