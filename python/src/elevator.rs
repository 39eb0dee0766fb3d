//! Descriptions of elevators.

use hoistway_core::Kind;
use hoistway_sim::{ElevatorList, elevator_of_name};
use pyo3::prelude::*;

use crate::error::wrong_argument;
use crate::json::to_python;

/// All elevators, as `hoistway elevators --json` prints them.
#[pyfunction]
pub fn elevator_list(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    to_python(py, &ElevatorList::new(Kind::ALL))
}

/// The name of an elevator that has this name or alias.
#[pyfunction]
pub fn elevator_name(name: &str) -> PyResult<&'static str> {
    Ok(elevator_of_name(name).map_err(wrong_argument)?.info().name)
}
