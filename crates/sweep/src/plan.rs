//! The points of a sweep, numbered from 0: a point is computed from its number.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::key::Key;
use crate::spec::{Dimension, Range, SweepSpec, Values};
use crate::value::Value;

/// All points of a sweep.
#[derive(Clone, Debug)]
pub struct Plan {
    spec: SweepSpec,
    groups: Vec<Group>,
    points: u64,
}

/// The points with one job file, drive, host and elevator.
#[derive(Clone, Debug)]
struct Group {
    job: usize,
    drive: usize,
    host: usize,
    elevator: usize,
    /// The dimensions that apply, those of the drive first.
    dimensions: Vec<Applied>,
    /// The number of its first point.
    first: u64,
}

/// A dimension without the keys that do not apply, and without rows that are equal then.
#[derive(Clone, Debug)]
struct Applied {
    keys: Vec<Key>,
    values: Values,
    line: u32,
}

/// The choices that determine a point, as indices and values.
#[derive(Clone, Debug, PartialEq)]
pub struct PointChoice {
    /// The index of the job file in [`SweepSpec::jobs`].
    pub job: usize,
    /// The index of the drive in [`SweepSpec::drives`].
    pub drive: usize,
    /// The index of the host in [`SweepSpec::hosts`].
    pub host: usize,
    /// The index of the elevator in [`SweepSpec::elevators`].
    pub elevator: usize,
    /// The seed.
    pub seed: u64,
    /// The values of keys, in the order in which they are set.
    pub values: Vec<ChosenValue>,
}

/// The value of a key at a point.
#[derive(Clone, Debug, PartialEq)]
pub struct ChosenValue {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: Value,
    /// The line of the sweep file that has it, from 1.
    pub line: u32,
}

/// A sweep with more points than [`Plan::POINTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the sweep has more than {} points: vary less, or take a sample of it (`sample = {{ count = 100000 }}`)",
    Plan::POINTS_MAX
)]
pub struct TooManyPoints;

impl Plan {
    /// The greatest number of points.
    pub const POINTS_MAX: u64 = 100_000_000;

    /// Numbers the points of a sweep.
    ///
    /// # Errors
    /// [`TooManyPoints`].
    pub fn new(spec: SweepSpec) -> Result<Plan, TooManyPoints> {
        let mut groups = Vec::new();
        let mut points: u64 = 0;
        for job in 0..spec.jobs.len() {
            for drive in 0..spec.drives.len() {
                for host in 0..spec.hosts.len() {
                    for elevator in 0..spec.elevators.len() {
                        let dimensions = dimensions(&spec, job, drive, elevator);
                        let count = if spec.sample.is_some() { 0 } else { count(&dimensions, spec.seeds.len()) };
                        groups.push(Group { job, drive, host, elevator, dimensions, first: points });
                        points = points.saturating_add(count);
                        if points > Plan::POINTS_MAX {
                            return Err(TooManyPoints);
                        }
                    }
                }
            }
        }
        if let Some(sample) = spec.sample {
            points = sample.count.saturating_mul(spec.seeds.len() as u64);
        }
        if points > Plan::POINTS_MAX { Err(TooManyPoints) } else { Ok(Plan { spec, groups, points }) }
    }

    /// The specification.
    pub fn spec(&self) -> &SweepSpec {
        &self.spec
    }

    /// The number of points. Random choices can be equal, and are one point then.
    pub fn points(&self) -> u64 {
        self.points
    }

    /// The point of a number below [`Plan::points`]; `None` for other numbers.
    pub fn choice(&self, number: u64) -> Option<PointChoice> {
        if number >= self.points {
            return None;
        }
        // The seed varies first.
        let seeds = self.spec.seeds.len() as u64;
        match self.spec.sample {
            Some(sample) => {
                let mut random = Pcg64Mcg::seed_from_u64(sample.seed ^ (number / seeds).wrapping_mul(STEP));
                let group = self.groups.get(random.random_range(0..self.groups.len()))?;
                let seed = *self.spec.seeds.get((number % seeds) as usize)?;
                Some(group.choice(seed, |dimension| random_row(dimension, &mut random)))
            }
            None => {
                let after = self.groups.partition_point(|group| group.first <= number);
                let group = self.groups.get(after.checked_sub(1)?)?;
                let mut rest = number - group.first;
                let seed = *self.spec.seeds.get((rest % seeds) as usize)?;
                rest /= seeds;
                Some(group.choice(seed, |dimension| {
                    let Values::Rows(rows) = &dimension.values else { return Vec::new() };
                    let row = (rest % rows.len() as u64) as usize;
                    rest /= rows.len() as u64;
                    rows.get(row).cloned().unwrap_or_default()
                }))
            }
        }
    }

    /// All keys that have a value at some point, in the order of the file.
    pub fn keys(&self) -> Vec<&Key> {
        let own = self.spec.drives.iter().flat_map(|drive| &drive.dimensions);
        let mut keys: Vec<&Key> = Vec::new();
        for key in own.chain(&self.spec.dimensions).flat_map(|dimension| &dimension.keys) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// All values that a key can have at some point; `None` for a range of numbers, with whether
    /// they are whole.
    pub fn values_of(&self, key: &Key) -> Vec<KeyValues<'_>> {
        let own = self.spec.drives.iter().flat_map(|drive| &drive.dimensions);
        let with_key = |dimension: &&Dimension| dimension.keys.contains(key);
        let mut found = Vec::new();
        for dimension in own.chain(&self.spec.dimensions).filter(with_key) {
            let index = dimension.keys.iter().position(|known| known == key);
            match &dimension.values {
                Values::Range(range) => found.push(KeyValues::Range(range)),
                Values::Rows(rows) => {
                    let values = rows.iter().filter_map(|row| row.get(index?)?.as_ref());
                    found.extend(values.map(KeyValues::One));
                }
            }
        }
        found
    }
}

/// Values that a key can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KeyValues<'a> {
    /// One value.
    One(&'a Value),
    /// A range of numbers.
    Range(&'a Range),
}

/// Distance of the seeds of two random choices.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Group {
    fn choice(&self, seed: u64, mut row: impl FnMut(&Applied) -> Vec<Option<Value>>) -> PointChoice {
        let mut values = Vec::new();
        for dimension in &self.dimensions {
            for (key, value) in dimension.keys.iter().zip(row(dimension)) {
                let chosen = value.map(|value| ChosenValue { key: key.clone(), value, line: dimension.line });
                values.extend(chosen);
            }
        }
        let Group { job, drive, host, elevator, .. } = *self;
        PointChoice { job, drive, host, elevator, seed, values }
    }
}

/// The dimensions that apply to a job file, a drive and an elevator.
fn dimensions(spec: &SweepSpec, job: usize, drive: usize, elevator: usize) -> Vec<Applied> {
    let applies = |key: &Key| match key {
        Key::Job { section, .. } => section == "global" || spec.jobs[job].source.sections().any(|name| name == section),
        Key::Drive(_) | Key::Host(_) => true,
        Key::Tunable { elevator: of, .. } => spec.elevators[elevator] == *of,
    };
    let all = spec.drives[drive].dimensions.iter().chain(&spec.dimensions);
    all.filter_map(|dimension| applied(dimension, &applies)).collect()
}

fn applied(dimension: &Dimension, applies: &impl Fn(&Key) -> bool) -> Option<Applied> {
    let kept: Vec<usize> = (0..dimension.keys.len()).filter(|index| applies(&dimension.keys[*index])).collect();
    let values = match &dimension.values {
        Values::Range(range) => Values::Range(*range),
        Values::Rows(rows) => {
            let mut distinct: Vec<Vec<Option<Value>>> = Vec::with_capacity(rows.len());
            for row in rows {
                let row: Vec<Option<Value>> = kept.iter().map(|index| row.get(*index).cloned().flatten()).collect();
                // Whole rows differ already; parts of them may not.
                if kept.len() == dimension.keys.len() || !distinct.contains(&row) {
                    distinct.push(row);
                }
            }
            Values::Rows(distinct)
        }
    };
    let keys = kept.iter().map(|index| dimension.keys[*index].clone()).collect();
    (!kept.is_empty()).then_some(Applied { keys, values, line: dimension.line })
}

/// The number of combinations of dimensions and seeds.
fn count(dimensions: &[Applied], seeds: usize) -> u64 {
    let rows = dimensions.iter().map(|dimension| match &dimension.values {
        Values::Rows(rows) => rows.len() as u64,
        Values::Range(_) => 1,
    });
    rows.fold(seeds as u64, u64::saturating_mul)
}

fn random_row(dimension: &Applied, random: &mut Pcg64Mcg) -> Vec<Option<Value>> {
    match &dimension.values {
        Values::Rows(rows) => rows[random.random_range(0..rows.len())].clone(),
        Values::Range(range) => vec![Some(random_number(range, random))],
    }
}

fn random_number(range: &Range, random: &mut Pcg64Mcg) -> Value {
    let Range { min, max, whole, logarithmic } = *range;
    let part: f64 = random.random();
    // A whole number takes the interval up to the next one.
    let end = if whole { max + 1.0 } else { max };
    let number = if logarithmic { min * (end / min).powf(part) } else { min + (end - min) * part };
    match whole {
        true => Value::Int(number.floor().clamp(min, max) as i64),
        false => Value::Float(number.clamp(min, max)),
    }
}
