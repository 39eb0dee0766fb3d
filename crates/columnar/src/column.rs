//! Columns of tables: types, encodings and values.

use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::schema::types::Type;

/// A column of a table that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Type of the values.
    pub kind: Kind,
    /// True if rows may have no value.
    pub nullable: bool,
    /// How the values are stored.
    pub encoding: Encoding,
}

/// Types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers of 16 bits without sign, given as [`Values::Int32`].
    U16,
    /// Whole numbers of 32 bits without sign, given as [`Values::Int32`] with the same bits.
    U32,
    /// Whole numbers of 64 bits without sign, given as [`Values::Int64`] with the same bits.
    U64,
    /// Whole numbers of 64 bits, given as [`Values::Int64`].
    I64,
    /// Floating-point numbers, given as [`Values::Double`].
    F64,
    /// Truth values, given as [`Values::Bool`].
    Bool,
    /// Texts in UTF-8, given as [`Values::Bytes`].
    Text,
    /// Bytes, given as [`Values::Bytes`].
    Bytes,
}

/// How the values of a column are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Numbers of entries of a dictionary, for columns whose values repeat.
    Dictionary,
    /// Differences between neighbours in as few bits as they need, for whole numbers.
    Delta,
}

/// The values of a column in a row group, without those that are null.
#[derive(Clone, Debug)]
pub enum Values {
    /// Numbers of up to 32 bits.
    Int32(Vec<i32>),
    /// Numbers of 64 bits.
    Int64(Vec<i64>),
    /// Floating-point numbers.
    Double(Vec<f64>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Texts and bytes.
    Bytes(Vec<ByteArray>),
}

/// A column in a row group.
#[derive(Clone, Debug)]
pub struct Cells {
    /// The values that are not null.
    pub values: Values,
    /// For a nullable column: 1 for each row with a value, 0 for each other row.
    pub present: Vec<i16>,
}

/// How the values of a column are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Whole numbers from 0 on.
    Numbers,
    /// Whole numbers of up to 64 bits with a sign.
    Signed,
    /// Floating-point numbers of 64 bits.
    Floats,
    /// Truth values.
    Flags,
    /// Texts or bytes.
    Bytes,
}

impl Cells {
    /// Creates the cells of a column that is not nullable.
    pub fn all(values: Values) -> Cells {
        Cells { values, present: Vec::new() }
    }

    /// Creates the cells of a nullable column.
    pub fn some<T, V>(rows: &[Option<T>], values: fn(Vec<V>) -> Values, value: impl Fn(&T) -> V) -> Cells {
        Cells {
            values: values(rows.iter().flatten().map(value).collect()),
            present: rows.iter().map(|row| i16::from(row.is_some())).collect(),
        }
    }
}

impl Column {
    /// Returns the column's entry in the schema of a file.
    pub(crate) fn field(&self) -> Result<Arc<Type>, ParquetError> {
        let number = |bits| (Some(LogicalType::integer(bits, false)), ConvertedType::NONE);
        let (physical, (logical, converted)) = match self.kind {
            Kind::U16 => (PhysicalType::INT32, number(16)),
            Kind::U32 => (PhysicalType::INT32, number(32)),
            Kind::U64 => (PhysicalType::INT64, number(64)),
            Kind::I64 => (PhysicalType::INT64, (None, ConvertedType::NONE)),
            Kind::F64 => (PhysicalType::DOUBLE, (None, ConvertedType::NONE)),
            Kind::Bool => (PhysicalType::BOOLEAN, (None, ConvertedType::NONE)),
            Kind::Text => (PhysicalType::BYTE_ARRAY, (Some(LogicalType::String), ConvertedType::UTF8)),
            Kind::Bytes => (PhysicalType::BYTE_ARRAY, (None, ConvertedType::NONE)),
        };
        let converted = match self.kind {
            Kind::U16 => ConvertedType::UINT_16,
            Kind::U32 => ConvertedType::UINT_32,
            Kind::U64 => ConvertedType::UINT_64,
            _ => converted,
        };
        let repetition = if self.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(&self.name, physical).with_repetition(repetition);
        Ok(Arc::new(field.with_logical_type(logical).with_converted_type(converted).build()?))
    }
}
