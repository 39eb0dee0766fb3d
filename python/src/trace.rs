//! Traces: their requests as tables, chunk by chunk.

use std::collections::VecDeque;
use std::error::Error;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use hoistway_advise::whatif::LoadedTrace;
use hoistway_sweep::{Cells, Column};
use hoistway_trace::files::{NamedInput, NamedTrace, trace_name};
use hoistway_trace::request::{RequestRecord, RequestTracker};
use hoistway_trace::{
    Batch, ColumnSpec, Format, Input, Notice, OpenOptions, OpenTrace, ReadError, Rwbs, Source, Stream, TimeUnit,
    describe, open_detected,
};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyCapsule;

use crate::error::{failed, wrong_argument};
use crate::json::to_python;
use crate::table::{Table, schema, stream_capsule};
use crate::work::{self, Control};

/// Requests of a chunk, unless the caller says otherwise.
const CHUNK: usize = 65_536;

/// A trace: files, which each call reads anew, or streams, which are read once.
#[pyclass(frozen, module = "hoistway")]
pub struct Trace {
    trace: NamedTrace,
    options: OpenOptions,
    /// Set if a part of the trace is a stream; `None` inside once it was read.
    once: Option<Mutex<Option<OpenTrace>>>,
}

impl Trace {
    fn open(&self, py: Python<'_>) -> PyResult<OpenTrace> {
        let Some(once) = &self.once else {
            return open_inputs(py, self.trace.inputs(), &self.options);
        };
        let opened = once.lock().ok().and_then(|mut opened| opened.take());
        opened.ok_or_else(|| {
            wrong_argument(format!(
                "the trace `{}` is a stream, which was read already: a file can be read several times",
                self.trace.name
            ))
        })
    }

    /// Does something with the events of the trace, until Ctrl-C.
    fn read<T: Send, E: Error + Send + 'static>(
        &self,
        py: Python<'_>,
        task: impl FnOnce(&mut dyn Source) -> Result<T, E> + Send,
    ) -> PyResult<T> {
        let source = self.open(py)?;
        let result = work::run(py, "reading", false, |control| task(&mut UntilCancelled { source, control }))?;
        result.map_err(failed)
    }

    /// The name of the trace: that of its folder, or of its first file.
    pub fn name(&self) -> &str {
        &self.trace.name
    }

    /// Reads the requests of a device.
    pub fn load(&self, py: Python<'_>, device: Option<&str>) -> PyResult<LoadedTrace> {
        self.read(py, |source| LoadedTrace::read(source, device))
    }
}

/// Opens inputs, which reads their beginnings.
fn open_inputs(py: Python<'_>, inputs: Vec<Input>, options: &OpenOptions) -> PyResult<OpenTrace> {
    work::run(py, "reading", false, |_| open_detected(inputs, options))?.map_err(failed)
}

/// A trace that fails once the work is cancelled; the caller then gets the exception of the signal
/// instead of this error.
struct UntilCancelled<'a> {
    source: OpenTrace,
    control: &'a Control,
}

impl Source for UntilCancelled<'_> {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        if self.control.cancel.load(Ordering::Relaxed) {
            return Err(ReadError::Io { file: "the trace".into(), source: io::ErrorKind::Interrupted.into() });
        }
        self.source.next(batch)
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.source.notices()
    }

    fn skipped_lines(&self) -> u64 {
        self.source.skipped_lines()
    }
}

/// The bytes of a Python object with a method `read`, such as a file that is open in binary mode.
struct ObjectReader(Py<PyAny>);

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let returned = self.0.call_method1(py, "read", (buffer.len(),))?;
            let Ok(bytes) = returned.extract::<PyBackedBytes>(py) else {
                let kind = returned.bind(py).get_type();
                let text = format!("its method `read` returns {kind}: bytes would be right, as from open(..., \"rb\")");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            };
            let Some(place) = buffer.get_mut(..bytes.len()) else {
                let text = format!("its method `read` returns {} bytes instead of {}", bytes.len(), buffer.len());
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            };
            place.copy_from_slice(&bytes);
            Ok(bytes.len())
        })
    }
}

/// The stream of an object with a method `read`; its name is the attribute `name` of files.
fn stream(object: &Bound<'_, PyAny>) -> Stream {
    let name = object.getattr("name").ok().and_then(|name| name.extract::<PathBuf>().ok());
    let name = name.map_or_else(|| "the stream".to_owned(), |name| name.display().to_string());
    Stream { name, read: Box::new(ObjectReader(object.clone().unbind())) }
}

#[pymethods]
impl Trace {
    /// Opens a trace: files, names as the command takes them, or objects with a method `read`.
    #[new]
    fn new(
        py: Python<'_>,
        names: Vec<Bound<'_, PyAny>>,
        format: Option<&str>,
        time_unit: Option<&str>,
        sector_bytes: Option<u32>,
        columns: Option<&str>,
    ) -> PyResult<Trace> {
        let options = OpenOptions {
            format: format.map(str::parse::<Format>).transpose().map_err(wrong_argument)?,
            time_unit: time_unit.map(str::parse::<TimeUnit>).transpose().map_err(wrong_argument)?,
            sector_bytes,
            columns: columns.map(str::parse::<ColumnSpec>).transpose().map_err(wrong_argument)?,
            ..OpenOptions::default()
        };
        let (objects, names): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| name.hasattr("read").unwrap_or(false));
        let names = names.iter().map(|name| name.extract()).collect::<PyResult<Vec<PathBuf>>>()?;
        let resolved = NamedTrace::resolve(&names);
        let mut trace = resolved.map_err(|e| if e.is_usage_error() { wrong_argument(e) } else { failed(e) })?;
        let streams: Vec<Stream> = objects.iter().map(stream).collect();
        if let (Some(first), []) = (streams.first(), trace.inputs.as_slice()) {
            trace.name = trace_name(Path::new(&first.name));
        }
        let is_read_once = !streams.is_empty() || trace.inputs.contains(&NamedInput::StandardInput);
        let inputs = trace.inputs().into_iter().chain(streams.into_iter().map(Input::Stream)).collect();
        let opened = open_inputs(py, inputs, &options)?;
        Ok(Trace { trace, options, once: is_read_once.then(|| Mutex::new(Some(opened))) })
    }

    /// The name of the trace.
    #[getter(name)]
    fn get_name(&self) -> &str {
        self.name()
    }

    /// The files of the trace.
    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.trace.files()
    }

    /// The document of `hoistway trace describe --json`.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.read(py, |source| describe::describe(source))?)
    }

    /// Starts to read the requests.
    #[pyo3(signature = (chunk = CHUNK))]
    fn requests(&self, py: Python<'_>, chunk: usize) -> PyResult<Requests> {
        let source = self.open(py)?;
        Ok(Requests { reader: Mutex::new(Some(RequestReader::new(source, chunk.max(1)))) })
    }

    fn __repr__(&self) -> String {
        let inputs = match &self.once {
            None => format!("{} files", self.trace.inputs.len()),
            Some(_) => "read once".to_owned(),
        };
        format!("Trace({:?}, {inputs})", self.name())
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
