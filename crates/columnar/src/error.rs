//! Errors of reading and writing tables.

use std::io;

use parquet::errors::ParquetError;

/// Error of reading or writing a table.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The operating system reported an error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file cannot be used: what is wrong, and what would be right.
    #[error("{0}")]
    Bad(String),
}

impl From<ParquetError> for TableError {
    fn from(error: ParquetError) -> TableError {
        match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => TableError::Io(*source),
                Err(source) => TableError::Bad(source.to_string()),
            },
            ParquetError::General(what) | ParquetError::NYI(what) | ParquetError::EOF(what) => TableError::Bad(what),
            other => TableError::Bad(other.to_string()),
        }
    }
}

impl From<TableError> for io::Error {
    fn from(error: TableError) -> io::Error {
        match error {
            TableError::Io(source) => source,
            TableError::Bad(what) => io::Error::other(what),
        }
    }
}
