//! Published results as data: the rows of `crates/reproduce/published/*.toml`.

use std::sync::OnceLock;

use hoistway_drive::Profile;
use serde::Deserialize;

use crate::error::ReproduceError;
use crate::unknown::{Trial, Unknown};

/// One publication and its rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publication {
    /// Id of the publication and prefix of its rows' ids: `S1`.
    #[serde(rename = "seed")]
    pub id: String,
    /// Authors, title, place and date.
    pub title: String,
    /// Information on all rows: the machine, and necessary assumptions.
    pub about: String,
    /// The rows, in the order of their ids.
    #[serde(default, rename = "row")]
    pub rows: Vec<Row>,
}

/// One published result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Id of the row, such as `S1-06`.
    pub id: String,
    /// The kind of statement.
    pub kind: RowKind,
    /// The workload and the measured quantity, in a line.
    pub what: String,
    /// Paths of the row's job files from the root of the repository; empty if the row simulates no
    /// workload.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// The profile of the drive.
    #[serde(default)]
    pub drive: Option<String>,
    /// The kernel of the host.
    #[serde(default)]
    pub kernel: Option<String>,
    /// The compared elevators.
    #[serde(default)]
    pub elevators: Vec<String>,
    /// Number of seeds over which figures are averaged, at least 1. Rows without random numbers
    /// have 1.
    #[serde(default = "one")]
    pub seeds: u64,
    /// Known inputs: data sheets, kernel defaults, the publication's description of machine and
    /// drive.
    #[serde(default)]
    pub inputs: Vec<String>,
    /// Parameters that were chosen to make the row fit. A row with any never counts as reproduced.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// Explanation of the mechanism, in sentences.
    #[serde(default)]
    pub why: String,
    /// Reason for a difference, or for the impossibility of a reproduction; empty for a reproduced
    /// row.
    #[serde(default)]
    pub missing: String,
    /// The published figures and rules.
    #[serde(default, rename = "value")]
    pub values: Vec<Value>,
    /// Lists of values in strictly falling order.
    #[serde(default, rename = "order")]
    pub orders: Vec<Order>,
    /// Marks of the mechanism.
    #[serde(default, rename = "reason")]
    pub reasons: Vec<Reason>,
    /// Properties that the publication does not state, with values to try while the row differs.
    #[serde(default, rename = "unknown")]
    pub unknowns: Vec<Unknown>,
}

/// The kind of statement that a row makes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// A figure with a tolerance.
    Number,
    /// An order of values.
    Order,
    /// A rule that always holds: constants, bounds, signs.
    Rule,
    /// A description of the drive or the machine. It is an input of the simulation and not counted.
    Input,
    /// A figure that was not published.
    Missing,
}

/// A published figure, or the bounds of a rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// Name of the measured figure.
    pub name: String,
    /// Unit of the figure; empty for a plain number.
    #[serde(default)]
    pub unit: String,
    /// The published figure.
    #[serde(default)]
    pub published: Option<f64>,
    /// Tolerance in the value's own unit.
    #[serde(default)]
    pub within: Option<f64>,
    /// Tolerance in percent of the published figure.
    #[serde(default)]
    pub within_percent: Option<f64>,
    /// Tolerance as a factor above 1, in both directions.
    #[serde(default)]
    pub within_factor: Option<f64>,
    /// Lower bound of a rule.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Upper bound of a rule.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// Origin of the figure, if it is not printed in this form.
    #[serde(default)]
    pub note: String,
}

/// Values in strictly falling order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Names of the values, the greatest first.
    pub falls: Vec<String>,
}

/// A figure that shows whether the published mechanism causes the result.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Name of the measured figure.
    pub name: String,
    /// Unit of the figure; empty for a plain number.
    #[serde(default)]
    pub unit: String,
    /// Lower bound.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Upper bound.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// The mechanism that the bounds indicate.
    pub text: String,
}

impl Row {
    /// The row as it is measured with a trial of an unknown.
    pub(crate) fn tried(&self, unknown: &Unknown, trial: &Trial) -> Row {
        let drive = trial.drive().map(str::to_owned).or_else(|| self.drive.clone());
        Row { seeds: unknown.seeds.unwrap_or(self.seeds), drive, ..self.clone() }
    }

    /// The profile of the row's drive.
    ///
    /// # Errors
    /// [`ReproduceError::NoInput`] if the row names no built-in drive.
    pub(crate) fn profile(&self) -> Result<Profile, ReproduceError> {
        self.profile_of(self.drive.as_deref().unwrap_or_default())
    }

    /// The profile of a built-in drive that the row needs.
    ///
    /// # Errors
    /// [`ReproduceError::NoInput`] if there is no such drive.
    pub(crate) fn profile_of(&self, drive: &str) -> Result<Profile, ReproduceError> {
        let unknown = || ReproduceError::NoInput { id: self.id.clone(), what: "drive", name: drive.to_owned() };
        Profile::builtin(drive).ok_or_else(unknown)
    }
}

impl Value {
    /// Inclusive bounds of a figure that counts as reproduced; infinite where only one bound is
    /// known, `None` if none was published.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        let around = |published: f64| {
            if let Some(factor) = self.within_factor {
                return (published / factor, published * factor);
            }
            let percent = self.within_percent.map(|percent| published.abs() * percent / 100.0);
            let distance = self.within.or(percent).unwrap_or(0.0);
            (published - distance, published + distance)
        };
        let (low, high) = match self.published {
            Some(published) => around(published),
            None if self.at_least.is_none() && self.at_most.is_none() => return None,
            None => (f64::NEG_INFINITY, f64::INFINITY),
        };
        Some((low.max(self.at_least.unwrap_or(low)), high.min(self.at_most.unwrap_or(high))))
    }

    /// Formats the tolerance: "±1.5", "±15 %", "×/÷ 2", "exact", "at most 8".
    pub fn tolerance(&self) -> String {
        match (self.published, self.within, self.within_percent, self.within_factor) {
            (Some(_), Some(within), ..) if within > 0.0 => format!("±{within}"),
            (Some(_), _, Some(percent), _) => format!("±{percent} %"),
            (Some(_), _, _, Some(factor)) => format!("×/÷ {factor}"),
            (Some(_), ..) => "exact".to_owned(),
            (None, ..) => bounds_text(self.at_least, self.at_most),
        }
    }
}

impl Reason {
    /// Returns true if a figure is finite and within the bounds.
    pub fn holds(&self, figure: f64) -> bool {
        figure.is_finite()
            && self.at_least.is_none_or(|least| figure >= least)
            && self.at_most.is_none_or(|most| figure <= most)
    }

    /// Formats the bounds.
    pub fn bounds(&self) -> String {
        bounds_text(self.at_least, self.at_most)
    }
}

fn bounds_text(least: Option<f64>, most: Option<f64>) -> String {
    match (least, most) {
        (Some(least), Some(most)) if least == most => format!("{least}"),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => String::new(),
    }
}

fn one() -> u64 {
    1
}

macro_rules! embedded {
    ($($prefix:literal: [$($name:literal),* $(,)?]),* $(,)?) => {
        &[$($((concat!($prefix, $name), include_str!(concat!("../published/", $name))),)*)*]
    };
}

/// The files with expectations.
const FILES: &[(&str, &str)] =
    embedded!["": ["s1.toml", "s2.toml", "s3.toml", "s4.toml", "s5.toml", "s6.toml", "s7.toml"]];

/// The job files of the rows, by path from the root of the repository. `published/examples` has
/// links to those of `examples`, so that the package of this crate has them.
const JOBS: &[(&str, &str)] = embedded![
    "": [
        "examples/archive.fio",
        "examples/competing-readers.fio",
        "examples/dependent-reads.fio",
        "examples/fair-iops.fio",
        "examples/priorities.fio",
        "examples/reader-and-writer.fio",
        "examples/reserved-readers.fio",
        "examples/streamed-readers.fio",
        "examples/weights.fio",
    ],
    "crates/reproduce/published/": [
        "jobs/s1-14-finish.fio",
        "jobs/s1-16-five-reads.fio",
        "jobs/s1-21-real-time.fio",
        "jobs/s1-22-idle-class.fio",
        "jobs/s1-23-random.fio",
        "jobs/s2-01-random.fio",
        "jobs/s2-04-pieces.fio",
        "jobs/s2-07-two-files.fio",
        "jobs/s2-09-seeky.fio",
        "jobs/s2-10-both-ends.fio",
        "jobs/s2-12-light.fio",
        "jobs/s2-14-one-of-hundred.fio",
        "jobs/s5-06-deep-readers-and-writers.fio",
        "jobs/s5-06-readers-and-writers.fio",
        "jobs/s5-08-throughput.fio",
        "jobs/s3-02-films.fio",
        "jobs/s3-08-excess.fio",
        "jobs/s3-09-unused.fio",
        "jobs/s3-10-places.fio",
        "jobs/s4-01-oltp.fio",
        "jobs/s4-02-dss.fio",
        "jobs/s6-03-readers.fio",
        "jobs/s6-18-reader-and-writer.fio",
        "jobs/s6-20-mixed.fio",
        "jobs/s7-01-log.fio",
        "jobs/s7-02-etcd.fio",
    ],
];

/// All publications, in the order of their ids.
///
/// # Errors
/// [`ReproduceError::Expectations`] if a file is invalid, which a test rules out.
pub fn publications() -> Result<&'static [Publication], ReproduceError> {
    static READ: OnceLock<Result<Vec<Publication>, (&'static str, String)>> = OnceLock::new();
    let read = READ.get_or_init(|| {
        FILES.iter().map(|(file, text)| parse(file, text).map_err(|problem| (*file, problem))).collect()
    });
    read.as_deref().map_err(|(file, problem)| ReproduceError::Expectations { file, problem: problem.clone() })
}

/// Parses the text of a file with expectations.
///
/// # Errors
/// The problem, with its position.
pub(crate) fn parse(file: &'static str, text: &str) -> Result<Publication, String> {
    let mut publication: Publication = toml::from_str(text).map_err(|error| error.to_string())?;
    for unknown in publication.rows.iter_mut().flat_map(|row| &mut row.unknowns) {
        unknown.locate(file, text);
    }
    Ok(publication)
}

/// The text of a built-in job file.
///
/// # Errors
/// [`ReproduceError::NoJob`] if no file has this path.
pub(crate) fn job_text(name: &str) -> Result<&'static str, ReproduceError> {
    let found = JOBS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| ReproduceError::NoJob { name: name.to_owned() })
}

/// Selects rows by the id of a row (`S1-06`), the id of a publication (`S1`) or `all`, in any case.
/// Without names, all rows are selected. The result has each row once, in the order of the
/// publications.
///
/// # Errors
/// [`ReproduceError::UnknownId`] names the known ids.
pub fn select(names: &[String]) -> Result<Vec<&'static Row>, ReproduceError> {
    let publications = publications()?;
    let selects = |name: &String, publication: &Publication, row: &Row| {
        name.eq_ignore_ascii_case("all")
            || name.eq_ignore_ascii_case(&publication.id)
            || name.eq_ignore_ascii_case(&row.id)
    };
    let all = || publications.iter().flat_map(|publication| publication.rows.iter().map(move |row| (publication, row)));
    if let Some(unknown) = names.iter().find(|name| !all().any(|(publication, row)| selects(name, publication, row))) {
        return Err(ReproduceError::UnknownId { id: unknown.clone(), known: known(publications) });
    }
    let wanted =
        all().filter(|(publication, row)| names.is_empty() || names.iter().any(|name| selects(name, publication, row)));
    Ok(wanted.map(|(_, row)| row).collect())
}

/// Lists the known ids: "S1: S1-01 S1-02 ...; S2: ...".
fn known(publications: &[Publication]) -> String {
    let of_publication = |publication: &Publication| {
        let ids: Vec<&str> = publication.rows.iter().map(|row| row.id.as_str()).collect();
        format!("{}: {}", publication.id, ids.join(" "))
    };
    let ids: Vec<String> = publications.iter().filter(|all| !all.rows.is_empty()).map(of_publication).collect();
    ids.join("; ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn rows() -> impl Iterator<Item = &'static Row> {
        publications().expect("the files are right").iter().flat_map(|publication| &publication.rows)
    }

    #[test]
    fn row_ids_are_unique_and_start_with_the_publication() {
        let mut ids = BTreeSet::new();
        for publication in publications().expect("the files are right") {
            for row in &publication.rows {
                assert!(row.id.starts_with(&format!("{}-", publication.id)), "{}", row.id);
                assert!(ids.insert(row.id.clone()), "{} appears twice", row.id);
            }
        }
        assert!(ids.len() > 10, "{} rows", ids.len());
    }

    #[test]
    fn every_row_has_the_statement_of_its_kind() {
        for row in rows() {
            let published = row.values.iter().filter(|value| value.published.is_some()).count();
            match row.kind {
                RowKind::Number => assert!(published > 0, "{}: no figure", row.id),
                RowKind::Order => assert!(!row.orders.is_empty(), "{}: no order", row.id),
                RowKind::Rule => {
                    assert!(row.values.iter().any(|value| value.bounds().is_some()), "{}: no rule", row.id)
                }
                RowKind::Input => assert!(!row.inputs.is_empty(), "{}: no input", row.id),
                RowKind::Missing => assert!(!row.missing.is_empty(), "{}: no explanation", row.id),
            }
        }
    }

    #[test]
    fn tolerances_are_bounded_and_orders_name_values() {
        for row in rows() {
            for value in &row.values {
                let given = [value.within, value.within_percent, value.within_factor];
                assert!(given.iter().flatten().count() <= 1, "{} {}: two tolerances", row.id, value.name);
                assert!(value.within_factor.is_none_or(|factor| factor > 1.0), "{} {}", row.id, value.name);
                if let Some((low, high)) = value.bounds() {
                    assert!(low <= high && (low.is_finite() || high.is_finite()), "{} {}", row.id, value.name);
                }
            }
            for reason in &row.reasons {
                let has_bounds = reason.at_least.is_some() || reason.at_most.is_some();
                assert!(has_bounds, "{} {}: no bounds", row.id, reason.name);
            }
            for name in row.orders.iter().flat_map(|order| &order.falls) {
                assert!(row.values.iter().any(|value| value.name == *name), "{}: no value {name}", row.id);
            }
        }
    }

    #[test]
    fn unknowns_have_distinct_values_other_than_that_of_the_row() {
        for row in rows() {
            for unknown in &row.unknowns {
                let values = || unknown.trials.iter().map(crate::Trial::value).chain([unknown.here.as_str()]);
                let distinct: BTreeSet<&str> = values().collect();
                assert!(!unknown.trials.is_empty(), "{} {}: no value", row.id, unknown.name);
                assert_eq!(distinct.len(), values().count(), "{} {}", row.id, unknown.name);
                assert!(!unknown.stated.ends_with('.'), "{} {}: a full stop", row.id, unknown.name);
            }
        }
    }

    #[test]
    fn every_job_file_parses_and_is_used() {
        for (name, text) in JOBS {
            let parsed = hoistway_fio::parse(text, name, &|_| None, &|_, _| unreachable!("nothing is included"));
            assert!(parsed.is_ok(), "{name}: {parsed:?}");
            assert!(rows().any(|row| row.jobs.iter().any(|job| job == name)), "no row uses {name}");
        }
        for name in rows().flat_map(|row| &row.jobs) {
            assert!(job_text(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn rows_are_selected_by_row_by_publication_or_all_in_any_case() {
        let ids = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            select(&names).map(|rows| rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>())
        };
        assert_eq!(ids(&["s1-06", "S1-02"]).expect("known"), ["S1-02", "S1-06"]);
        assert_eq!(ids(&["ALL"]).expect("known"), ids(&[]).expect("known"));
        assert!(ids(&["s1"]).expect("known").iter().all(|id| id.starts_with("S1-")));
        let unknown = ids(&["S1-06", "S1-99"]).unwrap_err().to_string();
        assert!(unknown.contains("`S1-99`") && unknown.contains("S1-06") && unknown.contains("S1: "), "{unknown}");
    }
}
