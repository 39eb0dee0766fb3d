//! Drives with parameters that can be replaced.

use std::path::Path;

use hoistway_drive::{DriveChoiceError, Profile, ProfileText, describe};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};
use toml::{Table, Value};

use crate::error::{HoistwayError, failed, wrong_argument};
use crate::json::to_python;

/// The names of the built-in drives.
#[pyfunction]
pub fn drive_names() -> Vec<&'static str> {
    Profile::names().collect()
}

/// A drive: a profile with all its parameters.
#[pyclass(frozen, from_py_object, module = "hoistway")]
#[derive(Clone, Debug)]
pub struct Drive {
    pub profile: Profile,
    text: String,
}

#[pymethods]
impl Drive {
    /// Reads a drive from the text of a profile file.
    #[staticmethod]
    #[pyo3(signature = (text, name = "drive.toml"))]
    fn from_toml(text: String, name: &str) -> PyResult<Drive> {
        Ok(Drive { profile: Profile::from_toml(&text, name).map_err(failed)?, text })
    }

    /// Finds a built-in drive, or reads a profile file.
    #[staticmethod]
    fn load(name: &str) -> PyResult<Drive> {
        match Profile::choose_text(name, Path::new("")) {
            Ok(ProfileText { file, toml }) => Drive::from_toml(toml, &file),
            Err(error @ DriveChoiceError::Unknown { .. }) => Err(wrong_argument(error)),
            Err(error) => Err(failed(error)),
        }
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.profile.name()
    }

    /// The profile as a TOML document.
    #[getter]
    fn toml(&self) -> &str {
        &self.text
    }

    /// The capacity in bytes.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.profile.capacity_sectors() * 512
    }

    /// True for a disk, and for an array with at least one disk.
    #[getter]
    fn rotational(&self) -> bool {
        self.profile.is_rotational()
    }

    /// The figures that follow from the profile, as `hoistway drives NAME --json` prints them.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &describe(&self.profile))
    }

    /// The same drive with other values of keys.
    #[pyo3(signature = (**keys))]
    fn replace(&self, keys: Option<&Bound<'_, PyDict>>) -> PyResult<Drive> {
        let mut table: Table = self.text.parse().map_err(failed)?;
        for (key, value) in keys.into_iter().flatten() {
            let (key, value) = (key.extract::<String>()?, toml_value(&value)?);
            let path = path_of(&table, &key)?;
            hoistway_sweep::set_key(&mut table, &path, value).map_err(HoistwayError::new_err)?;
        }
        let text = toml::to_string(&table).map_err(failed)?;
        Drive::from_toml(text, self.profile.name())
    }

    fn __repr__(&self) -> String {
        format!("Drive({:?})", self.profile.name())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, String))> {
        let drive = slf.get();
        Ok((slf.get_type().getattr("from_toml")?, (drive.text.clone(), drive.profile.name().to_owned())))
    }
}

/// The path of a key: a key with a dot, or one of the drive itself, is a path already; the name of
/// a key that one table has stands for it.
fn path_of(table: &Table, key: &str) -> PyResult<String> {
    if key.contains('.') || table.contains_key(key) {
        return Ok(key.to_owned());
    }
    let mut paths = Vec::new();
    find(table, key, "", &mut paths);
    match paths.as_slice() {
        [path] => Ok(path.clone()),
        [] => Err(HoistwayError::new_err(format!(
            "the drive has no key `{key}`: `toml` shows its keys; a new one is written with its table, as in \
             **{{\"queue.depth\": 8}}"
        ))),
        paths => Err(HoistwayError::new_err(format!("`{key}` is ambiguous: write one of {}", paths.join(", ")))),
    }
}

fn find(table: &Table, key: &str, before: &str, paths: &mut Vec<String>) {
    for (name, value) in table {
        let path = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
        if let Some(inner) = value.as_table() {
            find(inner, key, &path, paths);
        } else if name == key {
            paths.push(path);
        }
    }
}

/// Converts a number, a text, true, false or a list of them.
pub fn toml_value(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(value.extract()?));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(Value::Integer(number));
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(Value::Float(number));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(Value::String(text));
    }
    if let Ok(values) = value.extract::<Vec<Bound<'_, PyAny>>>() {
        return Ok(Value::Array(values.iter().map(toml_value).collect::<PyResult<_>>()?));
    }
    Err(PyTypeError::new_err(format!("{value:?}: a key of a drive is a number, a text, true, false, or a list")))
}
