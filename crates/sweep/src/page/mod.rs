//! A page that draws the results of a sweep: the effect of each key, a heat map of two keys, and
//! the Pareto front of throughput and latency.

mod effect;
mod front;
mod levels;
mod measure;

use std::collections::{BTreeMap, BTreeSet};

use hoistway_report::{BarRow, BarTable, Fact, HeatMap, Interval, Intervals, Sheet, SheetSection, Table};
use hoistway_units::figures::{grouped, percent};
use hoistway_units::names::{capitalised, did_you_mean};

use crate::columns::Cells;
use crate::results::Results;
use effect::Effect;
use front::Front;
use levels::Levels;
use measure::{LATENCY, Measure, THROUGHPUT};

/// Columns beside those of keys that vary.
const IDENTITY: [&str; 4] = [JOB, "drive", "host", "elevator"];
const SEED: &str = "seed";
const JOB: &str = "job";
/// The maximum numbers of workloads with a Pareto front each, and of errors that are listed.
const FRONTS_MAX: usize = 8;
const ERRORS_MAX: usize = 10;

/// The options of a page.
#[derive(Clone, Debug, Default)]
pub struct PageOptions {
    /// The name of the results in the heading, such as that of their folder.
    pub name: String,
    /// The column of the figure to draw; `None` for throughput and 99th percentile of latency.
    pub measure: Option<String>,
    /// The two columns of the heat map; `None` for those with the greatest effects.
    pub over: Option<[String; 2]>,
}

/// Reasons why results cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// No point has figures.
    #[error("no point has figures: there is nothing to draw")]
    NoFigures,
    /// The results have no column of numbers of this name.
    #[error("there is no figure `{name}`{}; there are {}", did_you_mean(name, known.iter().map(String::as_str)), known.join(", "))]
    UnknownMeasure {
        /// The name.
        name: String,
        /// The figures of the results.
        known: Vec<String>,
    },
    /// A key of the heat map does not vary.
    #[error("`{name}` does not vary{}; these keys vary: {}", did_you_mean(name, varied.iter().map(String::as_str)), varied.join(", "))]
    NotVaried {
        /// The key.
        name: String,
        /// The keys that vary.
        varied: Vec<String>,
    },
}

/// The results in the form of the page.
struct Drawn<'a> {
    results: &'a Results,
    /// The rows with figures.
    rows: Vec<usize>,
    measures: Vec<Measure>,
    /// The values of each measure in its unit, one for each row of the results.
    values: Vec<Vec<f64>>,
    /// The keys that vary, that of the greatest effect first.
    keys: Vec<DrawnKey>,
}

/// A key with its effect on each measure.
struct DrawnKey {
    levels: Levels,
    effects: Vec<Effect>,
}

impl DrawnKey {
    fn name(&self) -> &str {
        &self.levels.key
    }
}

/// Makes the page of some results.
///
/// # Errors
/// [`PageError`] if there is nothing to draw, or an option names what is not there.
pub fn page(results: &Results, options: &PageOptions) -> Result<Sheet, PageError> {
    let drawn = Drawn::of(results, options)?;
    let over = drawn.over(options)?;
    let mut sections = Vec::new();
    sections.extend(over.map(|over| drawn.heat_maps(over)));
    sections.extend(drawn.fronts());
    sections.extend(drawn.effects());
    sections.extend(errors(results));
    let names: Vec<&str> = drawn.keys.iter().map(DrawnKey::name).filter(|name| *name != SEED).collect();
    let title = if names.is_empty() { "Sweep".to_owned() } else { format!("Sweep over {}", listed(&names)) };
    Ok(Sheet {
        command: "hoistway sweep".into(),
        title,
        subtitle: options.name.clone(),
        verdict: drawn.verdict(),
        answer: drawn.bars().into_iter().collect(),
        facts: facts(results, drawn.rows.len()),
        sections,
        notes: vec![
            "A mean of a value is over all points that have it, whatever their other values. A key that applies to some points only, \
             such as a tunable of one elevator, is compared among these."
                .into(),
            "Points of several workloads are drawn together except in the charts of throughput against latency.".into(),
        ],
    })
}

impl<'a> Drawn<'a> {
    fn of(results: &'a Results, options: &PageOptions) -> Result<Drawn<'a>, PageError> {
        let errors = results.column("error");
        let has_figures = |row: usize| errors.is_none_or(|errors| errors.text(row).is_none());
        let counts: Vec<bool> = (0..results.rows()).map(has_figures).collect();
        let rows: Vec<usize> = (0..results.rows()).filter(|row| counts[*row]).collect();
        if rows.is_empty() {
            return Err(PageError::NoFigures);
        }
        let measures = measures(results, options)?;
        let value = |measure: &Measure, row: usize| {
            let number = results.column(&measure.column).filter(|_| counts[row])?.number(row)?;
            Some(number * measure.factor)
        };
        let values: Vec<Vec<f64>> = measures
            .iter()
            .map(|measure| (0..results.rows()).map(|row| value(measure, row).unwrap_or(f64::NAN)).collect())
            .collect();
        let columns = results.columns().iter().filter(|column| is_key(&column.name));
        let mut keys: Vec<DrawnKey> = columns
            .filter_map(|column| Levels::of(&column.name, &column.cells, &counts))
            .map(|levels| DrawnKey {
                effects: values.iter().map(|values| Effect::of(&levels, values)).collect(),
                levels,
            })
            .collect();
        let strength = |key: &DrawnKey| {
            key.effects.iter().map(|effect| effect.explained).filter(|part| part.is_finite()).fold(0.0, f64::max)
        };
        keys.sort_by(|one, other| strength(other).total_cmp(&strength(one)));
        Ok(Drawn { results, rows, measures, values, keys })
    }

    /// The two keys of the heat map: the named ones, or those with the greatest effects.
    fn over(&self, options: &PageOptions) -> Result<Option<[&DrawnKey; 2]>, PageError> {
        let find = |name: &String| {
            let varied = || self.keys.iter().map(|key| key.name().to_owned()).collect();
            let found = self.keys.iter().find(|key| key.name() == name);
            found.ok_or_else(|| PageError::NotVaried { name: name.clone(), varied: varied() })
        };
        if let Some([one, other]) = &options.over {
            return Ok(Some([find(one)?, find(other)?]));
        }
        // Keys that never apply to the same point have no cell in common.
        let common = |one: &DrawnKey, other: &DrawnKey| {
            self.rows.iter().any(|row| one.levels.of_rows[*row].is_some() && other.levels.of_rows[*row].is_some())
        };
        let mut keys = self.keys.iter().filter(|key| key.name() != SEED);
        Ok(keys.next().and_then(|first| keys.find(|key| common(first, key)).map(|second| [first, second])))
    }

    fn verdict(&self) -> String {
        let sentence = |(index, measure): (usize, &Measure)| {
            let part = |key: &DrawnKey| key.effects[index].explained;
            let mut keys: Vec<&DrawnKey> = self.keys.iter().filter(|key| part(key).is_finite()).collect();
            keys.sort_by(|one, other| part(other).total_cmp(&part(one)));
            let named: Vec<String> =
                keys.iter().take(2).map(|key| format!("{} ({} %)", key.name(), percent(part(key)))).collect();
            let name = capitalised(&measure.name);
            match named.as_slice() {
                [] => format!("{name} is the same at all points."),
                named => format!("{name} varies most with {}.", named.join(" and ")),
            }
        };
        let sentences: Vec<String> = self.measures.iter().enumerate().map(sentence).collect();
        format!("{} In brackets: the part of the variance that the key explains alone.", sentences.join(" "))
    }

    /// The part of the variance that each key explains.
    fn bars(&self) -> Option<BarTable> {
        let row = |key: &DrawnKey| BarRow {
            name: key.name().to_owned(),
            values: key.effects.iter().map(|effect| effect.explained * 100.0).collect(),
            ..BarRow::default()
        };
        (!self.keys.is_empty()).then(|| BarTable {
            caption: "Part of the variance that a key explains alone".into(),
            rows_are: "key".into(),
            figures: self.measures.iter().map(|measure| format!("{}, %", measure.name)).collect(),
            rows: self.keys.iter().map(row).collect(),
        })
    }

    fn heat_maps(&self, over: [&DrawnKey; 2]) -> SheetSection {
        // The key with fewer values has the columns.
        let [mut rows, mut columns] = over;
        if rows.levels.names.len() < columns.levels.names.len() {
            (rows, columns) = (columns, rows);
        }
        let map = |(index, measure): (usize, &Measure)| HeatMap {
            title: measure.name.clone(),
            note: measure.note(),
            x: columns.name().to_owned(),
            y: rows.name().to_owned(),
            columns: columns.levels.names.clone(),
            rows: rows.levels.names.clone(),
            cells: self.means(index, [&rows.levels, &columns.levels]),
        };
        SheetSection {
            title: format!("{} and {}", over[0].name(), over[1].name()),
            intro: "The mean over all points with both values. --over KEY,KEY draws other keys, --measure COLUMN another figure."
                .into(),
            heat_maps: self.measures.iter().enumerate().map(map).collect(),
            ..SheetSection::default()
        }
    }

    /// The means of a measure for each pair of levels, row after row.
    fn means(&self, measure: usize, [rows, columns]: [&Levels; 2]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); rows.names.len() * columns.names.len()];
        for at in &self.rows {
            let (row, column, value) = (rows.of_rows[*at], columns.of_rows[*at], self.values[measure][*at]);
            if let (Some(row), Some(column), true) = (row, column, value.is_finite()) {
                let sum = &mut sums[row * columns.names.len() + column];
                *sum = (sum.0 + value, sum.1 + 1.0);
            }
        }
        sums.into_iter().map(|(sum, count)| sum / count).collect()
    }

    /// A chart of throughput against latency for each workload: a job file with the values of its
    /// options.
    fn fronts(&self) -> Option<SheetSection> {
        let workload: Vec<&DrawnKey> = self.keys.iter().filter(|key| is_of_workload(key.name())).collect();
        let settings: Vec<&str> =
            self.keys.iter().map(DrawnKey::name).filter(|name| *name != SEED && !is_of_workload(name)).collect();
        let mut rows: BTreeMap<Vec<Option<usize>>, Vec<usize>> = BTreeMap::new();
        for row in &self.rows {
            rows.entry(workload.iter().map(|key| key.levels.of_rows[*row]).collect()).or_default().push(*row);
        }
        let name = |levels: &[Option<usize>]| {
            let part = |(key, level): (&&DrawnKey, &Option<usize>)| {
                let value = &key.levels.names[(*level)?];
                Some(if key.name() == JOB { value.clone() } else { format!("{} {value}", key.name()) })
            };
            let parts: Vec<String> = workload.iter().zip(levels).filter_map(part).collect();
            if parts.is_empty() { "all points".to_owned() } else { parts.join(", ") }
        };
        let all = rows.len();
        let elevators = self.elevators();
        let front = |(levels, rows): (Vec<Option<usize>>, Vec<usize>)| {
            let name = name(&levels);
            Some((name.clone(), Front::of(self.results, &rows, &settings, &elevators, &name)?))
        };
        let fronts: Vec<(String, Front)> = rows.into_iter().take(FRONTS_MAX).filter_map(front).collect();
        let dots: usize = fronts.iter().map(|(_, front)| front.settings).sum();
        if settings.is_empty() || fronts.is_empty() {
            return None;
        }
        let left_out = match all.saturating_sub(FRONTS_MAX) {
            0 => String::new(),
            more => format!(" {} more workloads are not drawn.", grouped(more as u64)),
        };
        let mut head = vec!["workload".to_owned()];
        head.extend(fronts.first().into_iter().flat_map(|(_, front)| front.table.head.clone()));
        let rows = fronts.iter().flat_map(|(name, front)| {
            front.table.rows.iter().map(move |row| std::iter::once(name.clone()).chain(row.iter().cloned()).collect())
        });
        let table = Table { head, rows: rows.collect(), marked: None };
        Some(SheetSection {
            title: "Throughput against latency".into(),
            intro: format!(
                "A chart for each workload. Each of the {} dots is a setting with the means over its seeds. No setting is better in both \
                 figures than those on the line, which the table lists.{left_out}",
                grouped(dots as u64)
            ),
            table: Some(table),
            scatters: fronts.into_iter().map(|(_, front)| front.scatter).collect(),
            ..SheetSection::default()
        })
    }

    /// All elevators of the results, as they are listed.
    fn elevators(&self) -> Vec<String> {
        let cells = self.results.column("elevator");
        let names: BTreeSet<String> =
            cells.into_iter().flat_map(|cells| (0..cells.len()).filter_map(|row| cells.text(row))).collect();
        let all = hoistway_custom::all();
        let position = |name: &String| all.iter().position(|kind| kind.info().name == name);
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_by_key(|name| position(name).unwrap_or(usize::MAX));
        names
    }

    /// The mean and the quartiles of each value of each key.
    fn effects(&self) -> Option<SheetSection> {
        let picture = |key: &DrawnKey, index: usize| {
            let levels = key.levels.names.iter().zip(&key.effects[index].levels);
            let row = |(name, figures): (&String, &Option<effect::LevelFigures>)| {
                let figures = figures.as_ref();
                let quartiles = figures.map_or((f64::NAN, f64::NAN), |figures| figures.quartiles);
                Interval {
                    name: name.clone(),
                    mean: figures.map_or(f64::NAN, |figures| figures.mean),
                    low: quartiles.0,
                    high: quartiles.1,
                    is_marked: false,
                }
            };
            Intervals {
                title: key.name().to_owned(),
                x: self.measures[index].title(),
                rows: levels.map(row).collect(),
                bound: None,
            }
        };
        let pictures = self.keys.iter().flat_map(|key| (0..self.measures.len()).map(move |index| picture(key, index)));
        let intervals: Vec<Intervals> = pictures.collect();
        (!intervals.is_empty()).then(|| SheetSection {
            title: "Main effects".into(),
            intro: "The dot is the mean over all points with a value, the line the middle half of these points.".into(),
            intervals,
            ..SheetSection::default()
        })
    }
}

/// Returns true for a column of what can vary. Names of keys have a dot, those of figures do not.
fn is_key(column: &str) -> bool {
    IDENTITY.contains(&column) || column == SEED || column.contains('.')
}

/// Returns true for a key that belongs to the workload and not to the settings: the job file, and
/// its options.
fn is_of_workload(key: &str) -> bool {
    key == JOB || key.starts_with("job.")
}

fn measures(results: &Results, options: &PageOptions) -> Result<Vec<Measure>, PageError> {
    let is_measure = |name: &str, cells: &Cells| !is_key(name) && matches!(cells, Cells::Int(_) | Cells::Float(_));
    let named = match &options.measure {
        Some(name) => vec![name.as_str()],
        None => vec![THROUGHPUT, LATENCY],
    };
    for name in &named {
        if !results.column(name).is_some_and(|cells| is_measure(name, cells)) {
            let known = results.columns().iter().filter(|column| is_measure(&column.name, &column.cells));
            let known = known.map(|column| column.name.clone()).collect();
            return Err(PageError::UnknownMeasure { name: (*name).to_owned(), known });
        }
    }
    Ok(named.into_iter().map(Measure::of).collect())
}

/// The number of points and what is the same at all of them.
fn facts(results: &Results, with_figures: usize) -> Vec<Fact> {
    let fact = |label: &str, value: String| Fact { label: label.to_owned(), value };
    let mut facts = vec![fact("points", grouped(results.rows() as u64))];
    let failed = results.rows() - with_figures;
    if failed > 0 {
        facts.push(fact("points with an error", grouped(failed as u64)));
    }
    for (column, label) in [(JOB, "job files"), ("drive", "drives"), ("elevator", "elevators"), (SEED, "seeds")] {
        let Some(cells) = results.column(column) else { continue };
        let mut values: Vec<String> = (0..results.rows()).filter_map(|row| cells.text(row)).collect();
        values.sort();
        values.dedup();
        let is_short = values.len() <= 4 && column != SEED;
        let value = if is_short { values.join(", ") } else { grouped(values.len() as u64) };
        facts.push(fact(label, value));
    }
    facts
}

/// The errors of points, the most frequent first.
fn errors(results: &Results) -> Option<SheetSection> {
    let cells = results.column("error")?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for error in (0..results.rows()).filter_map(|row| cells.text(row)) {
        *counts.entry(error).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rows = counts.iter().take(ERRORS_MAX).map(|(error, count)| vec![grouped(*count as u64), error.clone()]);
    (!counts.is_empty()).then(|| SheetSection {
        title: "Points without figures".into(),
        intro: format!("{} different errors, the most frequent first.", grouped(counts.len() as u64)),
        table: Some(Table { head: vec!["points".into(), "error".into()], rows: rows.collect(), marked: None }),
        ..SheetSection::default()
    })
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    hoistway_units::names::list(&names, "and")
}
