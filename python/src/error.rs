//! Exceptions, with the texts that the command prints.

use std::error::Error;

use hoistway_units::errors::chain;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(hoistway, HoistwayError, PyException, "An input cannot be used, or an operation failed.");
create_exception!(hoistway, UsageError, HoistwayError, "An argument is wrong. The command ends with exit code 2.");
create_exception!(hoistway, InternalError, HoistwayError, "A fault of hoistway itself.");

/// Converts an error of a library to an exception with its text and its causes.
pub fn failed(error: impl Error + 'static) -> PyErr {
    HoistwayError::new_err(chain(&error))
}

/// Converts a text to an exception about an argument.
pub fn wrong_argument(text: impl ToString) -> PyErr {
    UsageError::new_err(text.to_string())
}
