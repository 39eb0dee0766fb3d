//! Flat tables as Parquet files: written and read a column at a time, in bounded memory.
//!
//! ```text
//! Column (name, kind, nullable, encoding) ─▶ TableWriter ─ a row group for each Vec<Cells> ─▶ file
//! file ─▶ TableReader ─ columns by name, some thousand rows at a time ─▶ ReadCells
//! ```
//!
//! A table has no nested columns. The reader accepts files of other programs: any encoding, the
//! compressions that [`TableReader::open_file`] lists, and signed or unsigned numbers of 32 or 64
//! bits. Memory of the writer is that of a row group, memory of the reader that of a page of each
//! column.
//!
//! Source: the documentation of the crate `parquet` (Apache Arrow), which is used without Arrow,
//! and the Parquet format.
//!
//! # Where to change what
//!
//! - A type of columns, or how columns are stored: `column.rs`.
//! - Files that are refused, and the text of the refusal: `check.rs`; damaged pages: `pages.rs`.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod check;
mod column;
mod error;
mod pages;
mod reader;
mod writer;

pub use column::{Cells, Column, Encoding, Kind, Values, Wanted};
pub use error::TableError;
pub use parquet::data_type::ByteArray;
pub use reader::{ReadCells, TableReader};
pub use writer::TableWriter;

/// First and last bytes of every Parquet file that is not encrypted.
pub const MAGIC: &[u8] = b"PAR1";
