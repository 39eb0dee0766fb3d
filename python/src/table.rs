//! Tables that dataframe libraries read through the Arrow C stream interface.
//!
//! Source: "The Arrow PyCapsule Interface" of the Apache Arrow documentation.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StringArray,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef, ffi::FFI_ArrowSchema};
use hoistway_sweep::{Cells, Column};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::error::failed;

/// A table: columns of equal length with names. It needs no dataframe library; polars, pandas,
/// pyarrow, duckdb and others take it as it is, by `__arrow_c_stream__`.
#[pyclass(frozen, module = "hoistway")]
#[derive(Debug)]
pub struct Table {
    batch: RecordBatch,
    columns: Vec<Column>,
}

impl Table {
    /// Makes a table of columns with equally many rows.
    pub fn new(columns: Vec<Column>) -> PyResult<Table> {
        let arrays = columns.iter().map(array).collect();
        let batch = RecordBatch::try_new(schema(&columns), arrays).map_err(failed)?;
        Ok(Table { batch, columns })
    }

    /// The rows as an Arrow batch.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }
}

/// The names and types of columns.
pub fn schema(columns: &[Column]) -> SchemaRef {
    let arrays = columns.iter().map(|column| Field::new(&column.name, array(column).data_type().clone(), true));
    Arc::new(Schema::new(arrays.collect::<Vec<_>>()))
}

fn array(column: &Column) -> ArrayRef {
    match &column.cells {
        Cells::Text(cells) => Arc::new(cells.iter().map(Option::as_deref).collect::<StringArray>()),
        Cells::Int(cells) => Arc::new(cells.iter().copied().collect::<Int64Array>()),
        Cells::Float(cells) => Arc::new(cells.iter().copied().collect::<Float64Array>()),
        Cells::Bool(cells) => Arc::new(cells.iter().copied().collect::<BooleanArray>()),
    }
}

/// A stream of batches in the capsule that consumers take.
pub fn stream_capsule<'py>(
    py: Python<'py>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

#[pymethods]
impl Table {
    /// The rows as an Arrow stream. The types are those of the table: `requested_schema` is
    /// ignored, as the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = [Ok::<_, ArrowError>(self.batch.clone())];
        stream_capsule(py, Box::new(RecordBatchIterator::new(batches, self.batch.schema())))
    }

    /// The names and types of the columns as an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// The values of a column; `None` stands for a missing one.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.columns.iter().find(|column| column.name == name);
        match &column.ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(name.to_owned()))?.cells {
            Cells::Text(cells) => PyList::new(py, cells),
            Cells::Int(cells) => PyList::new(py, cells),
            Cells::Float(cells) => PyList::new(py, cells),
            Cells::Bool(cells) => PyList::new(py, cells),
        }
    }

    /// The columns as a dictionary from name to list.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for column in &self.columns {
            columns.set_item(&column.name, self.__getitem__(py, &column.name)?)?;
        }
        Ok(columns)
    }

    /// The table as a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// The table as a `pandas.DataFrame`; pyarrow is not needed.
    fn to_pandas<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("pandas")?.call_method1("DataFrame", (self.to_dict(py)?,))
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows: {})", self.batch.num_rows(), self.column_names().join(", "))
    }
}
