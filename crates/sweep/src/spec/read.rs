//! Reads a sweep file.

use std::ops::Range as Span;
use std::path::Path;

use hoistway_compare::{Shortening, default_host};
use hoistway_core::Kind;
use hoistway_sim::elevator_of_name;
use hoistway_units::names::did_you_mean;
use hoistway_units::position::line_and_column;
use hoistway_units::{TimeUnit, parse_time_ns};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table};

use super::{Dimension, Range, Sample, SpecError, SweepDrive, SweepHost, SweepSpec, Values, seeds, sources};
use crate::key::Key;
use crate::value::Value;

/// The keys of a sweep file.
const KEYS: [&str; 11] = [
    "jobs",
    "drives",
    "hosts",
    "elevators",
    "seeds",
    "runtime",
    "scale",
    "points_per_file",
    "sample",
    "vary",
    "points",
];

/// The greatest number of points whose results share a file.
const POINTS_PER_FILE_MAX: i64 = 1 << 20;

/// Reads the text of a sweep file; the arguments are those of [`SweepSpec::from_toml`].
pub(super) fn spec(text: &str, file: &str, directory: &Path) -> Result<SweepSpec, SpecError> {
    let reader = Reader { text, file, directory };
    let table = DeTable::parse(text)
        .map_err(|error| reader.wrong(error.span().unwrap_or_default(), error.message().to_owned()))?;
    let spec = reader.spec(table.get_ref())?;
    reader.check(&spec)?;
    Ok(spec)
}

struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    directory: &'a Path,
}

type Entry<'a, 'i> = Option<&'a Spanned<DeValue<'i>>>;

impl Reader<'_> {
    fn wrong(&self, span: Span<usize>, problem: String) -> SpecError {
        let (line, column) = line_and_column(self.text, span.start);
        SpecError::Wrong { file: self.file.to_owned(), line, column, problem }
    }

    fn line(&self, span: Span<usize>) -> u32 {
        u32::try_from(line_and_column(self.text, span.start).0).unwrap_or(u32::MAX)
    }

    fn spec(&self, table: &DeTable<'_>) -> Result<SweepSpec, SpecError> {
        let unknown = table.keys().filter(|key| !KEYS.contains(&key.get_ref().as_ref()));
        if let Some(key) = unknown.min_by_key(|key| key.span().start) {
            let near = did_you_mean(key.get_ref(), KEYS);
            let problem = format!("a sweep has no key `{}`{near}; it has {}", key.get_ref(), KEYS.join(", "));
            return Err(self.wrong(key.span(), problem));
        }
        let jobs = self.each(self.needed(table, "jobs")?, |value, _| sources::job(value, self.directory))?;
        let drives =
            self.each(self.needed(table, "drives")?, |value, line| sources::drive(value, self.directory, line))?;
        let elevators = self.each(self.needed(table, "elevators")?, |value, _| elevator(value))?;
        let hosts = match table.get("hosts") {
            Some(hosts) => self.each(hosts, |value, _| sources::host(value, self.directory))?,
            None => vec![host_of(&elevators)],
        };
        let seeds = match table.get("seeds") {
            Some(value) => seeds::read(value.get_ref()).map_err(|problem| self.wrong(value.span(), problem))?,
            None => vec![1],
        };
        let sample = table.get("sample").map(|value| self.sample(value)).transpose()?;
        let mut spec = SweepSpec {
            file: self.file.to_owned(),
            self_contained: String::new(),
            jobs,
            drives,
            hosts,
            elevators,
            seeds,
            dimensions: self.vary(table.get("vary"), sample.is_some())?,
            sample,
            shortening: self.shortening(table)?,
            points_per_file: self.points_per_file(table.get("points_per_file"))?,
        };
        spec.dimensions.extend(self.points(table.get("points"))?);
        spec.self_contained = self.self_contained(&spec)?;
        Ok(spec)
    }

    fn needed<'a, 'i>(&self, table: &'a DeTable<'i>, key: &str) -> Result<&'a Spanned<DeValue<'i>>, SpecError> {
        let problem = || format!("`{key}` is missing: a sweep has `jobs`, `drives` and `elevators`, a list each");
        table.get(key).ok_or_else(|| self.wrong(0..0, problem()))
    }

    /// Reads the entries of a list, at least one; each may occur once.
    fn each<T>(
        &self,
        value: &Spanned<DeValue<'_>>,
        read: impl Fn(&DeValue<'_>, u32) -> Result<T, String>,
    ) -> Result<Vec<T>, SpecError> {
        let DeValue::Array(list) = value.get_ref() else {
            return Err(self.wrong(value.span(), "this is a list: write [ ... ]".to_owned()));
        };
        if list.is_empty() {
            return Err(self.wrong(value.span(), "the list is empty: a sweep needs at least one entry".to_owned()));
        }
        let one = |value: &Spanned<DeValue<'_>>| {
            read(value.get_ref(), self.line(value.span())).map_err(|problem| self.wrong(value.span(), problem))
        };
        list.iter().map(one).collect()
    }

    fn vary(&self, value: Entry<'_, '_>, samples: bool) -> Result<Vec<Dimension>, SpecError> {
        let Some(value) = value else { return Ok(Vec::new()) };
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong(value.span(), "`vary` is a table: `\"cfq.slice_idle\" = [0, 8]`".to_owned()));
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let dimension = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key =
                Key::parse(AsRef::<str>::as_ref(name.get_ref())).map_err(|problem| self.wrong(name.span(), problem))?;
            let values = values(value.get_ref(), samples)
                .map_err(|problem| self.wrong(value.span(), format!("`{key}` {problem}")))?;
            Ok(Dimension { keys: vec![key], values, line: self.line(name.span()) })
        };
        entries.into_iter().map(dimension).collect()
    }

    /// Reads `points`: a list of tables, the rows of one dimension.
    fn points(&self, value: Entry<'_, '_>) -> Result<Option<Dimension>, SpecError> {
        let Some(value) = value else { return Ok(None) };
        let form = "`points` is a list of tables: `[[points]]` and a value for each key";
        let DeValue::Array(list) = value.get_ref() else { return Err(self.wrong(value.span(), form.to_owned())) };
        let mut keys: Vec<Key> = Vec::new();
        let mut rows: Vec<Vec<Option<Value>>> = Vec::new();
        for point in list.iter() {
            let DeValue::Table(table) = point.get_ref() else {
                return Err(self.wrong(point.span(), form.to_owned()));
            };
            let mut row = vec![None; keys.len()];
            for (name, value) in table.iter() {
                let key = Key::parse(name.get_ref()).map_err(|problem| self.wrong(name.span(), problem))?;
                let index = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                    keys.push(key.clone());
                    row.push(None);
                    keys.len() - 1
                });
                let value = Value::read(value.get_ref()).ok_or_else(|| {
                    self.wrong(
                        value.span(),
                        format!("`{key}` has no single value: a row of `points` has one for a key"),
                    )
                })?;
                row[index] = Some(value);
            }
            rows.push(row);
        }
        rows.iter_mut().for_each(|row| row.resize(keys.len(), None));
        if rows.is_empty() || keys.is_empty() {
            return Err(self.wrong(value.span(), form.to_owned()));
        }
        Ok(Some(Dimension { keys, values: Values::Rows(rows), line: self.line(value.span()) }))
    }

    fn sample(&self, value: &Spanned<DeValue<'_>>) -> Result<Sample, SpecError> {
        let form = || self.wrong(value.span(), "`sample` is a table: `{ count = 1000, seed = 1 }`".to_owned());
        let DeValue::Table(table) = value.get_ref() else { return Err(form()) };
        let number = |key: &str| match table.get(key).map(|value| Value::read(value.get_ref())) {
            None => Ok(None),
            Some(Some(Value::Int(number))) if number >= 0 => Ok(Some(number.unsigned_abs())),
            Some(_) => Err(form()),
        };
        let known = table.keys().all(|key| matches!(key.get_ref().as_ref(), "count" | "seed"));
        match (number("count")?, number("seed")?, known) {
            (Some(count @ 1..), seed, true) => Ok(Sample { count, seed: seed.unwrap_or(1) }),
            _ => Err(form()),
        }
    }

    fn shortening(&self, table: &DeTable<'_>) -> Result<Shortening, SpecError> {
        let mut shortening = Shortening::default();
        if let Some(value) = table.get("runtime") {
            let read = Value::read(value.get_ref()).map(|value| value.to_string());
            let runtime_ns = read.and_then(|text| parse_time_ns(&text, TimeUnit::Seconds).ok()).filter(|ns| *ns > 0);
            let form = "`runtime` is a time above 0 as in \"10s\": the longest run of a job";
            shortening.runtime_ns = Some(runtime_ns.ok_or_else(|| self.wrong(value.span(), form.to_owned()))?);
        }
        if let Some(value) = table.get("scale") {
            let scale = match Value::read(value.get_ref()) {
                Some(Value::Float(scale)) if scale > 0.0 && scale <= 1.0 => scale,
                Some(Value::Int(1)) => 1.0,
                _ => return Err(self.wrong(value.span(), "`scale` is a number above 0 and at most 1".to_owned())),
            };
            shortening.scale = Some(scale);
        }
        Ok(shortening)
    }

    fn points_per_file(&self, value: Entry<'_, '_>) -> Result<Option<usize>, SpecError> {
        let Some(value) = value else { return Ok(None) };
        match Value::read(value.get_ref()) {
            Some(Value::Int(count @ 1..=POINTS_PER_FILE_MAX)) => Ok(usize::try_from(count).ok()),
            _ => {
                let form = format!("`points_per_file` is a number from 1 to {POINTS_PER_FILE_MAX}");
                Err(self.wrong(value.span(), form))
            }
        }
    }

    /// Writes the specification with the texts of all files that it names.
    fn self_contained(&self, spec: &SweepSpec) -> Result<String, SpecError> {
        let wrong = |error: toml::de::Error| self.wrong(0..0, error.message().to_owned());
        let mut document: Table = self.text.parse().map_err(wrong)?;
        let text = |text: &str| toml::Value::String(text.to_owned());
        let entry = |pairs: Vec<(&str, toml::Value)>| {
            toml::Value::Table(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        };
        let jobs = spec
            .jobs
            .iter()
            .map(|job| entry(vec![("name", text(&job.name)), ("text", toml::Value::String(job.source.to_string()))]));
        let hosts = spec.hosts.iter().map(|SweepHost { name, settings }| {
            entry(vec![("name", text(name)), ("toml", toml::Value::String(settings.to_string()))])
        });
        let drives = spec.drives.iter().map(|drive| {
            let own = drive.dimensions.iter().filter_map(own_key);
            let own: Vec<(String, toml::Value)> = own.collect();
            let mut pairs = vec![("name", text(&drive.name)), ("toml", toml::Value::String(drive.profile.to_string()))];
            pairs.extend(own.iter().map(|(key, values)| (key.as_str(), values.clone())));
            entry(pairs)
        });
        document.insert("jobs".to_owned(), toml::Value::Array(jobs.collect()));
        document.insert("hosts".to_owned(), toml::Value::Array(hosts.collect()));
        document.insert("drives".to_owned(), toml::Value::Array(drives.collect()));
        Ok(document.to_string())
    }

    /// Checks the keys of the dimensions against jobs, drives and elevators.
    fn check(&self, spec: &SweepSpec) -> Result<(), SpecError> {
        let mut seen: Vec<&Key> = Vec::new();
        for dimension in &spec.dimensions {
            for key in &dimension.keys {
                let problem =
                    if seen.contains(&key) { Some(format!("`{key}` varies twice")) } else { problem_of(key, spec) };
                if let Some(problem) = problem {
                    let (file, line) = (self.file.to_owned(), dimension.line as usize);
                    return Err(SpecError::Wrong { file, line, column: 1, problem });
                }
                seen.push(key);
            }
        }
        Ok(())
    }
}

/// The key and the values that a drive varies itself.
fn own_key(dimension: &Dimension) -> Option<(String, toml::Value)> {
    let (Some(Key::Drive(key)), Values::Rows(rows)) = (dimension.keys.first(), &dimension.values) else { return None };
    Some((key.clone(), toml::Value::Array(rows.iter().flatten().flatten().map(Value::to_toml).collect())))
}

/// The reason for which a key cannot vary in this sweep.
fn problem_of(key: &Key, spec: &SweepSpec) -> Option<String> {
    match key {
        Key::Job { section, option } => {
            let mut sections = spec.jobs.iter().flat_map(|job| job.source.sections());
            if section != "global" && !sections.any(|name| name == section) {
                let near = did_you_mean(section, spec.jobs.iter().flat_map(|job| job.source.sections()));
                return Some(format!("`{key}`: no job file has a section [{section}]{near}"));
            }
            let mut any = spec.jobs.first()?.source.clone();
            // The value of an option is checked in its points, its name here.
            any.set("global", option, None, (&spec.file, 0)).err().map(|error| format!("`{key}`: {error}"))
        }
        Key::Drive(_) => {
            let own = |drive: &&SweepDrive| drive.dimensions.iter().any(|dimension| dimension.keys.contains(key));
            let drive = spec.drives.iter().find(own)?;
            Some(format!("`{key}` varies twice: also in the entry of drive {}", drive.name))
        }
        Key::Host(_) => None,
        Key::Tunable { elevator, .. } => {
            let name = elevator.info().name;
            (!spec.elevators.contains(elevator)).then(|| format!("`{key}`: `elevators` does not have {name}"))
        }
    }
}

fn elevator(value: &DeValue<'_>) -> Result<Kind, String> {
    let name = value.as_str().ok_or("an entry of `elevators` is the name of an elevator, in quotes")?;
    elevator_of_name(name).map_err(|error| error.to_string())
}

/// The host of `hoistway compare` for these elevators.
fn host_of(elevators: &[Kind]) -> SweepHost {
    let mut settings = Table::new();
    let name = default_host(elevators).kernel.map_or("own", |kernel| {
        settings.insert("kernel".to_owned(), toml::Value::String(kernel.name().to_owned()));
        kernel.name()
    });
    SweepHost { name: name.to_owned(), settings }
}

/// Reads the values of a key: a list, or a range if the sweep is a sample.
fn values(value: &DeValue<'_>, samples: bool) -> Result<Values, String> {
    if let DeValue::Table(table) = value {
        let range = range(table)?;
        return match samples {
            true => Ok(Values::Range(range)),
            false => Err("is a range, which needs `sample = { count = ... }`; or write a list".to_owned()),
        };
    }
    let form = "has no values: write a list of numbers, texts or true and false, as in [0, 2, 8]";
    let values = sources::list(value).ok_or(form)?;
    if let Some(twice) = values.iter().enumerate().find(|(index, value)| values[..*index].contains(value)) {
        return Err(format!("has the value {} twice", twice.1));
    }
    Ok(Values::Rows(values.into_iter().map(|value| vec![Some(value)]).collect()))
}

fn range(table: &DeTable<'_>) -> Result<Range, String> {
    let form = "is no range: write `{ min = 1, max = 64 }`, and `scale = \"log\"` for even logarithms";
    let value = |key: &str| table.get(key).and_then(|value| Value::read(value.get_ref()));
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    let (min, max) = value("min").zip(value("max")).ok_or(form)?;
    let whole = matches!((&min, &max), (Value::Int(_), Value::Int(_)));
    let (min, max) = number(&min).zip(number(&max)).ok_or(form)?;
    let logarithmic = match value("scale") {
        None => false,
        Some(Value::Text(scale)) if scale == "linear" => false,
        Some(Value::Text(scale)) if scale == "log" => true,
        Some(_) => return Err(form.to_owned()),
    };
    let known = table.keys().all(|key| matches!(key.get_ref().as_ref(), "min" | "max" | "scale"));
    if !known || min > max {
        return Err(form.to_owned());
    }
    if logarithmic && min <= 0.0 {
        return Err(format!("has a logarithmic range from {min}: it begins above 0"));
    }
    Ok(Range { min, max, whole, logarithmic })
}
