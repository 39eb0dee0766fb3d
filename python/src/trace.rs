//! Traces: their requests as tables, chunk by chunk.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Mutex;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use hoistway_advise::whatif::LoadedTrace;
use hoistway_sweep::{Cells, Column};
use hoistway_trace::files::{resolve, trace_name};
use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{
    Batch, Format, Input, OpenOptions, OpenTrace, ReadError, Rwbs, Source, TimeUnit, describe, open_detected,
};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::{failed, wrong_argument};
use crate::json::to_python;
use crate::table::{Table, schema, stream_capsule};
use crate::work;

/// Requests of a chunk, unless the caller says otherwise.
const CHUNK: usize = 65_536;

/// A trace in files, which is read anew by each call.
#[pyclass(frozen, module = "hoistway")]
#[derive(Debug)]
pub struct Trace {
    files: Vec<PathBuf>,
    options: OpenOptions,
    name: String,
}

impl Trace {
    fn open(&self) -> Result<OpenTrace, ReadError> {
        open_detected(self.files.iter().cloned().map(Input::Path).collect(), &self.options)
    }

    /// The name of the trace: that of its first file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the requests of a device.
    pub fn load(&self, py: Python<'_>, device: Option<&str>) -> PyResult<LoadedTrace> {
        let loaded = work::run(py, "reading", false, |_| {
            let mut source = self.open()?;
            LoadedTrace::read(&mut source, device)
        })?;
        loaded.map_err(failed)
    }
}

#[pymethods]
impl Trace {
    /// Opens a trace: files, or names as the command takes them.
    #[new]
    fn new(
        py: Python<'_>,
        names: Vec<PathBuf>,
        format: Option<&str>,
        time_unit: Option<&str>,
        sector_bytes: Option<u32>,
    ) -> PyResult<Trace> {
        let options = OpenOptions {
            format: format.map(str::parse::<Format>).transpose().map_err(wrong_argument)?,
            time_unit: time_unit.map(str::parse::<TimeUnit>).transpose().map_err(wrong_argument)?,
            sector_bytes,
        };
        let mut files = Vec::new();
        for name in names {
            let found = resolve(&name);
            files.extend(found.map_err(|e| if e.is_usage_error() { wrong_argument(e) } else { failed(e) })?);
        }
        let name = files.first().map_or_else(String::new, |file| trace_name(file));
        let trace = Trace { files, options, name };
        py.detach(|| trace.open()).map_err(failed)?;
        Ok(trace)
    }

    /// The name of the trace.
    #[getter(name)]
    fn get_name(&self) -> &str {
        &self.name
    }

    /// The files of the trace.
    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    /// The document of `hoistway trace describe --json`.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let description = work::run(py, "reading", false, |_| {
            let mut source = self.open()?;
            describe::describe(&mut source)
        })?;
        to_python(py, &description.map_err(failed)?)
    }

    /// Starts to read the requests.
    #[pyo3(signature = (chunk = CHUNK))]
    fn requests(&self, py: Python<'_>, chunk: usize) -> PyResult<Requests> {
        let source = py.detach(|| self.open()).map_err(failed)?;
        Ok(Requests { reader: Mutex::new(Some(RequestReader::new(source, chunk.max(1)))) })
    }

    fn __repr__(&self) -> String {
        format!("Trace({:?}, {} files)", self.name, self.files.len())
    }
}

/// The requests of a trace, which are read once: as chunks, or as an Arrow stream.
#[pyclass(module = "hoistway")]
pub struct Requests {
    /// `None` once all requests were read.
    reader: Mutex<Option<RequestReader>>,
}

#[pymethods]
impl Requests {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// The next chunk.
    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Table>> {
        let Some(mut reader) = self.take() else { return Ok(None) };
        let (records, reader) = work::run(py, "reading", false, |_| (reader.next_records(), reader))?;
        match records.map_err(failed)? {
            Some(records) => {
                self.reader = Mutex::new(Some(reader));
                Table::new(columns(&records)).map(Some)
            }
            None => Ok(None),
        }
    }

    /// The requests that were not read yet, as an Arrow stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &mut self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = self.take().ok_or_else(|| {
            wrong_argument("these requests were read already: `requests()` of the trace starts again")
        })?;
        stream_capsule(py, Box::new(reader))
    }
}

impl Requests {
    fn take(&mut self) -> Option<RequestReader> {
        self.reader.get_mut().ok()?.take()
    }
}

/// Reads requests in the order of their ends.
struct RequestReader {
    source: OpenTrace,
    /// `None` after the end of the trace.
    tracker: Option<RequestTracker>,
    records: VecDeque<RequestRecord>,
    chunk: usize,
}

impl RequestReader {
    fn new(source: OpenTrace, chunk: usize) -> RequestReader {
        RequestReader { source, tracker: Some(RequestTracker::new()), records: VecDeque::new(), chunk }
    }

    /// The next requests, at least one; `None` at the end.
    fn next_records(&mut self) -> Result<Option<Vec<RequestRecord>>, ReadError> {
        let mut batch = Batch::new();
        while let Some(tracker) = self.tracker.as_mut().filter(|_| self.records.len() < self.chunk) {
            self.source.next(&mut batch)?;
            if batch.is_empty() {
                let rest = self.tracker.take().map(RequestTracker::into_outstanding);
                self.records.extend(rest.into_iter().flatten());
            } else {
                tracker.take(&batch);
                self.records.extend(tracker.take_finished());
            }
        }
        let count = self.records.len().min(self.chunk);
        Ok((count > 0).then(|| self.records.drain(..count).collect()))
    }
}

impl Iterator for RequestReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = |records: Vec<RequestRecord>| {
            let table = Table::new(columns(&records)).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
            Ok(table.batch().clone())
        };
        match self.next_records() {
            Ok(records) => records.map(batch),
            Err(error) => Some(Err(ArrowError::ExternalError(Box::new(error)))),
        }
    }
}

impl RecordBatchReader for RequestReader {
    fn schema(&self) -> SchemaRef {
        schema(&columns(&[]))
    }
}

fn columns(records: &[RequestRecord]) -> Vec<Column> {
    let text = |name: &str, of: fn(&RequestRecord) -> String| Column {
        name: name.to_owned(),
        cells: Cells::Text(records.iter().map(|record| Some(of(record))).collect()),
    };
    let number = |name: &str, of: fn(&RequestRecord) -> Option<u64>| Column {
        name: name.to_owned(),
        cells: Cells::Int(records.iter().map(|record| i64::try_from(of(record)?).ok()).collect()),
    };
    vec![
        text("device", |record| record.device.to_string()),
        text("op", |record| operation(record.op).to_owned()),
        Column {
            name: "sync".to_owned(),
            cells: Cells::Bool(records.iter().map(|record| Some(record.op.has(Rwbs::SYNC))).collect()),
        },
        number("sector", |record| Some(record.sector)),
        number("bytes", |record| Some(record.bytes.into())),
        number("pid", |record| Some(record.pid.into())),
        number("bios", |record| Some(record.bios() as u64)),
        number("queued_ns", |record| record.queued_ns),
        number("got_ns", |record| record.got_ns),
        number("inserted_ns", |record| record.inserted_ns),
        number("issued_ns", |record| record.issued_ns),
        number("completed_ns", |record| record.completed_ns),
        number("q2c_ns", RequestRecord::q2c_ns),
        number("d2c_ns", RequestRecord::d2c_ns),
        number("requeues", |record| Some(record.requeues.into())),
        number("error", |record| Some(record.error.into())),
    ]
}

/// The operation in a word.
fn operation(op: Rwbs) -> &'static str {
    let words = [(Rwbs::DISCARD, "discard"), (Rwbs::WRITE, "write"), (Rwbs::READ, "read"), (Rwbs::FLUSH, "flush")];
    words.into_iter().find(|(bit, _)| op.has(*bit)).map_or("other", |(_, word)| word)
}
