//! Serialisable values as Python objects.

use pyo3::prelude::*;
use serde::Serialize;

use crate::error::failed;

/// Converts a value to Python's dictionaries, lists, strings and numbers.
pub fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).map_err(failed)?;
    py.import("json")?.call_method1("loads", (text,))
}
