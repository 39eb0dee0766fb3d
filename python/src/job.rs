//! Job files of fio, whose options can be changed.

use std::path::PathBuf;

use hoistway_fio::{Diagnostics, JobFile as Jobs, JobSource, SetOptionError};
use pyo3::prelude::*;

use crate::error::{HoistwayError, UsageError, failed};

/// The file that diagnostics name for options that Python set.
const ORIGIN: &str = "set in Python";

/// A job file of fio with its sections and options.
#[pyclass(frozen, module = "hoistway")]
#[derive(Clone, Debug)]
pub struct JobFile {
    pub source: JobSource,
}

impl JobFile {
    /// Reads the jobs.
    pub fn jobs(&self) -> PyResult<Jobs> {
        self.source.jobs().map_err(invalid)
    }
}

fn invalid(faults: Diagnostics) -> PyErr {
    HoistwayError::new_err(faults.to_string())
}

fn refused(error: SetOptionError) -> PyErr {
    UsageError::new_err(error.to_string())
}

#[pymethods]
impl JobFile {
    /// Reads the text of a job file.
    #[new]
    #[pyo3(signature = (text, name = "job.fio"))]
    fn new(text: &str, name: &str) -> PyResult<JobFile> {
        let env = |name: &str| std::env::var_os(name)?.into_string().ok();
        let no_includes = |path: &str, _: &str| Err(std::io::Error::new(std::io::ErrorKind::NotFound, path.to_owned()));
        let job = JobFile { source: JobSource::new(text, name, &env, &no_includes) };
        job.jobs()?;
        Ok(job)
    }

    /// Reads a job file and the files that it includes.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<JobFile> {
        let job = JobFile { source: JobSource::load(path).map_err(failed)? };
        job.jobs()?;
        Ok(job)
    }

    /// The name of the file.
    #[getter]
    fn name(&self) -> &str {
        self.source.file_name()
    }

    /// The names of the sections in the order of the file.
    #[getter]
    fn sections(&self) -> Vec<&str> {
        self.source.sections().collect()
    }

    /// The options of a section as pairs of name and value; a flag has the value `None`.
    fn options<'a>(&'a self, section: &'a str) -> Vec<(&'a str, Option<&'a str>)> {
        self.source.options(section).collect()
    }

    /// A copy in which options have other values: triples of section, option and value.
    fn with_options(&self, options: Vec<(String, String, Option<String>)>) -> PyResult<JobFile> {
        let mut changed = self.clone();
        for (section, option, value) in options {
            changed.source.set(&section, &option, value.as_deref(), (ORIGIN, 1)).map_err(refused)?;
        }
        changed.jobs()?;
        Ok(changed)
    }

    /// A copy without an option.
    fn without_option(&self, section: &str, option: &str) -> PyResult<JobFile> {
        let mut changed = self.clone();
        changed.source.remove(section, option).map_err(refused)?;
        changed.jobs()?;
        Ok(changed)
    }

    /// The text of the job file, which needs neither included files nor variables.
    fn __str__(&self) -> String {
        self.source.to_string()
    }

    fn __repr__(&self) -> String {
        format!("JobFile({:?})", self.name())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String, String)) {
        (slf.get_type().into_any(), (slf.get().__str__(), slf.get().name().to_owned()))
    }
}
