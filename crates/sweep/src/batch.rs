//! Batches: ranges of points whose results share a file.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use hoistway_columnar::TableError;
use hoistway_compare::MemoryNeed;
use hoistway_sim::{SimError, run_each};
use sha2::{Digest, Sha256};

use crate::columns::{self, PointResult};
use crate::file_name::file_name;
use crate::parquet_file;
use crate::plan::{Plan, PointChoice};
use crate::point::{Point, PointId};

/// The maximum number of points of a batch, and the number of batches from which they have more
/// than one, unless the sweep says otherwise.
const POINTS_MAX: u64 = 256;
const BATCHES: u64 = 128;

/// A range of points whose results share a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The numbers of its points.
    pub points: Range<u64>,
}

/// The results of a batch as files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchFiles {
    /// The name of both files without the ending: a hash of the names of their points.
    pub name: String,
    /// The Parquet file of the points.
    pub points: Vec<u8>,
    /// The Parquet file of their jobs.
    pub jobs: Vec<u8>,
    /// The number of rows of points.
    pub rows: usize,
    /// The number of points that have an error instead of figures, and the first of these errors.
    pub failed: usize,
    /// See `failed`.
    pub first_error: Option<String>,
}

/// Reasons for which a batch has no result.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The sweep was cancelled.
    #[error("the sweep was cancelled")]
    Cancelled,
    /// A point does not fit into the memory of this machine.
    #[error("point {point} does not fit into the memory: {problem}")]
    Memory {
        /// The name of the point.
        point: PointId,
        /// What it needs, and what is available.
        problem: String,
    },
    /// The table could not be written.
    #[error("the table of results cannot be written: {0}")]
    Parquet(#[from] TableError),
}

impl Plan {
    /// The batches of the sweep, in the order of the points. They depend on the specification only,
    /// so that every machine makes the same files.
    pub fn batches(&self) -> impl ExactSizeIterator<Item = Batch> + use<> {
        let points = self.points();
        let each = self.spec().points_per_file.map_or((points / BATCHES).clamp(1, POINTS_MAX), |each| each as u64);
        // At most 2^27 batches, which fit into usize everywhere.
        (0..points.div_ceil(each) as usize).map(move |index| {
            let first = index as u64 * each;
            Batch { points: first..(first + each).min(points) }
        })
    }
}

impl Plan {
    /// The names of the points with these numbers.
    pub fn ids(&self, numbers: Range<u64>) -> impl Iterator<Item = PointId> {
        numbers.filter_map(|number| self.choice(number)).map(|choice| PointId::of(self.spec(), &choice))
    }
}

impl Batch {
    /// The points of the batch that are not `done`, each once.
    pub fn missing(&self, plan: &Plan, done: impl Fn(PointId) -> bool) -> Vec<(PointChoice, Point)> {
        let mut seen = HashSet::new();
        let choices = self.points.clone().filter_map(|number| plan.choice(number));
        let points = choices.map(|choice| (Point::new(plan.spec(), &choice), choice));
        points
            .filter(|(point, _)| !done(point.id) && seen.insert(point.id))
            .map(|(point, choice)| (choice, point))
            .collect()
    }
}

/// Simulates points and returns their files; `None` without points. `each` is called after each
/// point. `available` is the memory that a simulation may take, in bytes, if it is known.
///
/// # Errors
/// [`BatchError`]. A point whose values are wrong or whose simulation fails is a row with its error
/// and does not fail the batch.
pub fn simulate(
    plan: &Plan,
    points: Vec<(PointChoice, Point)>,
    available: Option<u64>,
    each: &(dyn Fn() + Sync),
    cancel: &AtomicBool,
) -> Result<Option<BatchFiles>, BatchError> {
    let mut results = Vec::with_capacity(points.len());
    for (choice, Point { id, request }) in points {
        let run = match request {
            Err(problem) => Err(problem),
            Ok(request) => {
                let need = MemoryNeed::of(&request);
                if let Some(available) = available.filter(|available| need.parallel_within(*available, 1).is_none()) {
                    let problem = hoistway_compare::MemoryError { need, available }.to_string();
                    return Err(BatchError::Memory { point: id, problem });
                }
                match run_each(&request, &|_| {}, cancel) {
                    Err(SimError::Cancelled) => return Err(BatchError::Cancelled),
                    Err(error) => Err(error.to_string()),
                    Ok(runs) => runs.into_iter().next().map(Box::new).ok_or_else(|| "the run has no result".to_owned()),
                }
            }
        };
        results.push(PointResult { id, choice, run });
        each();
    }
    if results.is_empty() {
        return Ok(None);
    }
    let mut errors = results.iter().filter_map(|result| result.run.as_ref().err());
    let first_error = errors.next().cloned();
    let failed = usize::from(first_error.is_some()) + errors.count();
    Ok(Some(BatchFiles {
        name: name(&results),
        points: parquet_file::write(&columns::points(plan, &results))?,
        jobs: parquet_file::write(&columns::jobs(&results))?,
        rows: results.len(),
        failed,
        first_error,
    }))
}

/// The name of the files of some points.
fn name(results: &[PointResult]) -> String {
    let mut hash = Sha256::new();
    results.iter().for_each(|result| hash.update(result.id.to_bytes()));
    file_name(hash)
}
