//! Parses objectives.

use std::ops::Range;

use hoistway_units::printable::one_line;
use hoistway_units::{TimeUnit, parse_time_ns};

use super::{Bound, Constraint, Figure, Goal, Metric, Objective, Unit, WORST};

/// All figures, for messages.
const FIGURES: &str =
    "p50, p90, p99, p99.9 (any percentile), mean, longest, throughput, iops, fairness, time, sync, misses";

/// A syntax error in an objective, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}\n  {}\n  {}{}", one_line(problem), one_line(text), " ".repeat(self.before()), "^".repeat(self.width()))]
pub struct ObjectiveError {
    /// The objective as text.
    pub text: String,
    /// The byte range at fault.
    pub at: Range<usize>,
    /// The problem and a remedy.
    pub problem: String,
}

impl ObjectiveError {
    fn before(&self) -> usize {
        self.text.get(..self.at.start).map_or(0, columns)
    }

    fn width(&self) -> usize {
        self.text.get(self.at.clone()).map_or(1, columns).max(1)
    }
}

/// Number of characters of a text as it is shown.
fn columns(text: &str) -> usize {
    one_line(text).to_string().chars().count()
}

/// A part of the text without surrounding blanks.
#[derive(Clone, Copy)]
struct Piece<'a> {
    all: &'a str,
    from: usize,
    to: usize,
}

impl<'a> Piece<'a> {
    fn new(all: &'a str, from: usize, to: usize) -> Piece<'a> {
        let text = &all[from..to];
        let from = from + (text.len() - text.trim_start().len());
        Piece { all, from, to: from + text.trim().len() }
    }

    fn text(self) -> &'a str {
        &self.all[self.from..self.to]
    }

    /// The part between two byte offsets.
    fn part(self, from: usize, to: usize) -> Piece<'a> {
        Piece::new(self.all, self.from + from, self.from + to)
    }

    fn error(self, problem: impl Into<String>) -> ObjectiveError {
        ObjectiveError { text: self.all.into(), at: self.from..self.to, problem: problem.into() }
    }
}

impl Objective {
    /// Parses an objective for a workload with these jobs.
    ///
    /// # Errors
    /// [`ObjectiveError`], which points to the position.
    ///
    /// ```
    /// use hoistway_advise::Objective;
    /// let objective = Objective::parse("p99(reader) min, throughput >= 90%", &["reader"])?;
    /// assert_eq!((objective.goals.len(), objective.constraints.len()), (1, 1));
    /// # Ok::<(), hoistway_advise::ObjectiveError>(())
    /// ```
    pub fn parse(text: &str, jobs: &[&str]) -> Result<Objective, ObjectiveError> {
        let (mut goals, mut constraints) = (Vec::new(), Vec::new());
        let whole = Piece::new(text, 0, text.len());
        for clause in clauses(text) {
            if clause.text().is_empty() {
                let clause = if whole.text().is_empty() { whole } else { clause };
                return Err(clause
                    .error("there is nothing here: write a clause, as in `p99(reader) min` or `throughput >= 90%`"));
            }
            match clause.text().find(['<', '>', '=']) {
                Some(at) => constraints.push(constraint(clause, at, jobs)?),
                None => goals.push(goal(clause, jobs)?),
            }
        }
        if goals.is_empty() {
            return Err(
                whole.error("there is no goal: write at least one figure with min or max, as in `p99(reader) min`")
            );
        }
        Ok(Objective { goals, constraints, text: whole.text().into() })
    }
}

/// Splits the text at commas outside of brackets: names of jobs may contain commas.
fn clauses(text: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut from, mut depth) = (Vec::new(), 0, 0u32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                pieces.push(Piece::new(text, from, at));
                from = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(Piece::new(text, from, text.len()));
    pieces
}

fn goal(clause: Piece<'_>, jobs: &[&str]) -> Result<Goal, ObjectiveError> {
    let text = clause.text();
    let split = text.rfind(|c: char| c.is_whitespace() || c == ')').map_or(0, |at| at + 1);
    let word = clause.part(split, text.len());
    let least = match word.text() {
        "min" => true,
        "max" => false,
        _ => {
            return Err(clause.error(format!(
                "`{text}` is neither a goal nor a constraint: write `{text} min`, `{text} max`, or a bound, as in `{text} >= 90%`"
            )));
        }
    };
    let figure = figure(clause.part(0, split), jobs)?;
    let is_opposite = least != figure.metric.less_is_better();
    if is_opposite {
        let right = if least { "max" } else { "min" };
        return Err(word.error(format!(
            "`{figure}` is better the {} it is: write `{figure} {right}`",
            if least { "greater" } else { "less" }
        )));
    }
    Ok(Goal { figure, least })
}

fn constraint(clause: Piece<'_>, at: usize, jobs: &[&str]) -> Result<Constraint, ObjectiveError> {
    let text = clause.text();
    let length = text[at..].find(|c: char| !"<>=".contains(c)).unwrap_or(text.len() - at);
    let relation = clause.part(at, at + length);
    let at_least = match relation.text() {
        ">=" | ">" => true,
        "<=" | "<" => false,
        other => return Err(relation.error(format!("`{other}` is not a relation: there are >= and <="))),
    };
    let figure = figure(clause.part(0, at), jobs)?;
    let bound = bound(clause.part(at + length, text.len()), relation, figure.metric)?;
    Ok(Constraint { figure, at_least, bound })
}

fn figure(piece: Piece<'_>, jobs: &[&str]) -> Result<Figure, ObjectiveError> {
    let text = piece.text();
    if text.is_empty() {
        return Err(piece.error(format!("a figure is missing: there are {FIGURES}")));
    }
    let (name, job) = match text.find('(') {
        None => (piece, None),
        Some(open) => {
            let Some(inner) = text.strip_suffix(')') else {
                return Err(piece.error(format!("`{text}` has no closing bracket: write {text})")));
            };
            (piece.part(0, open), Some(piece.part(open + 1, inner.len())))
        }
    };
    let metric = metric(name)?;
    let job = match job {
        None => None,
        Some(job) => Some(known_job(job, jobs)?),
    };
    Ok(Figure { metric, job })
}

fn metric(piece: Piece<'_>) -> Result<Metric, ObjectiveError> {
    let name = piece.text();
    let names = ["mean", "longest", "throughput", "iops", "fairness", "time", "sync", "misses", "p50", "p90", "p99"];
    Ok(match name {
        "mean" => Metric::Mean,
        "longest" => Metric::Longest,
        "throughput" => Metric::Throughput,
        "iops" => Metric::Iops,
        "fairness" => Metric::Fairness,
        "time" => Metric::Time,
        "sync" => Metric::Sync,
        "misses" => Metric::Misses,
        _ => {
            let percent = name.strip_prefix('p').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            let Some(percent) = percent else {
                let nearest = nearest(name, &names);
                return Err(piece.error(format!("there is no figure `{name}`{nearest}; there are {FIGURES}")));
            };
            match percent.parse::<f64>() {
                Ok(percent) if percent > 0.0 && percent < 100.0 => Metric::Percentile(percent),
                _ => {
                    return Err(piece
                        .error(format!("`{name}` is not a percentile: percentiles are p1 to p99.999, as in p99.9")));
                }
            }
        }
    })
}

fn known_job(piece: Piece<'_>, jobs: &[&str]) -> Result<String, ObjectiveError> {
    let name = piece.text();
    if name == WORST || jobs.contains(&name) {
        return Ok(name.into());
    }
    let mut known: Vec<&str> = Vec::new();
    for job in jobs {
        if !known.contains(job) {
            known.push(job);
        }
    }
    let nearest = nearest(name, &known);
    let known = known.join(", ");
    let problem = format!(
        "there is no job `{name}`{nearest}; the workload has {known}, and `{WORST}` is the process with the worst value"
    );
    Err(if name.is_empty() {
        ObjectiveError { at: piece.from..piece.from + 1, ..piece.error(problem) }
    } else {
        piece.error(problem)
    })
}

/// The text ` (did you mean `x`?)`, or nothing.
fn nearest(typed: &str, names: &[&str]) -> String {
    hoistway_units::names::did_you_mean(typed, names.iter().copied())
}

fn bound(piece: Piece<'_>, relation: Piece<'_>, metric: Metric) -> Result<Bound, ObjectiveError> {
    let text = piece.text();
    if text.is_empty() {
        return Err(relation.error(format!(
            "a bound is missing after {}: {}",
            relation.text(),
            bound_examples(metric)
        )));
    }
    let error = || piece.error(format!("`{text}` is not a bound of {}: {}", name_of(metric), bound_examples(metric)));
    if let Some((share, of)) = text.split_once('%') {
        let share: f64 = share.trim().parse().map_err(|_| error())?;
        if !share.is_finite() || share <= 0.0 {
            return Err(piece.error(format!("`{text}` is not a share: a share must be more than 0 %")));
        }
        let of: Vec<&str> = of.split_whitespace().collect();
        return match of.as_slice() {
            [] | ["of", "best"] => Ok(Bound::OfBest(share / 100.0)),
            ["of", "now" | "default"] => Ok(Bound::OfNow(share / 100.0)),
            _ => Err(piece.error(format!("`{text}`: a share is of best or of now, as in 90% of now"))),
        };
    }
    let split = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = (text[..split].trim(), text[split..].trim());
    let number: f64 = number.parse().map_err(|_| error())?;
    let factor = match metric.unit() {
        Unit::Number if unit.is_empty() => 1.0,
        Unit::Number => return Err(error()),
        Unit::Rate => rate_factor(unit).ok_or_else(error)?,
        Unit::Time if unit.is_empty() => return Err(error()),
        Unit::Time if unit == "ns" => 1.0,
        Unit::Time => parse_time_ns(&format!("1{unit}"), TimeUnit::Seconds).map_err(|_| error())? as f64,
    };
    if !number.is_finite() || number < 0.0 {
        return Err(error());
    }
    Ok(Bound::At(number * factor))
}

fn rate_factor(unit: &str) -> Option<f64> {
    Some(match unit.strip_suffix("/s")? {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    })
}

fn name_of(metric: Metric) -> String {
    Figure { metric, job: None }.to_string()
}

fn bound_examples(metric: Metric) -> String {
    let value = match (metric, metric.unit()) {
        (Metric::Fairness, _) => "0.9",
        (_, Unit::Time) => "20ms",
        (_, Unit::Rate) => "50 MB/s",
        (_, Unit::Number) => "100",
    };
    format!("write a value, as in {value}, or a share of the best, as in 90%")
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: [&str; 3] = ["reader", "copy, slow", "log"];

    #[test]
    fn valid_objectives_are_parsed() {
        let reader = Some("reader".to_owned());
        let p99 = Figure { metric: Metric::Percentile(99.0), job: reader.clone() };
        let throughput = Figure { metric: Metric::Throughput, job: None };
        let table: &[(&str, Vec<Goal>, Vec<Constraint>)] = &[
            ("p99(reader) min", vec![Goal { figure: p99.clone(), least: true }], vec![]),
            (
                "  p99( reader )min ,throughput>=90% ",
                vec![Goal { figure: p99, least: true }],
                vec![Constraint { figure: throughput.clone(), at_least: true, bound: Bound::OfBest(0.9) }],
            ),
            (
                "throughput max, p99.9(worst) <= 20ms, iops(log) >= 150, fairness >= 0.9, throughput(copy, slow) >= 1.5 MiB/s",
                vec![Goal { figure: throughput.clone(), least: false }],
                vec![
                    Constraint {
                        figure: Figure { metric: Metric::Percentile(99.9), job: Some("worst".into()) },
                        at_least: false,
                        bound: Bound::At(20e6),
                    },
                    Constraint {
                        figure: Figure { metric: Metric::Iops, job: Some("log".into()) },
                        at_least: true,
                        bound: Bound::At(150.0),
                    },
                    Constraint {
                        figure: Figure { metric: Metric::Fairness, job: None },
                        at_least: true,
                        bound: Bound::At(0.9),
                    },
                    Constraint {
                        figure: Figure { metric: Metric::Throughput, job: Some("copy, slow".into()) },
                        at_least: true,
                        bound: Bound::At(1.5 * 1024.0 * 1024.0),
                    },
                ],
            ),
            (
                "time(reader) min, longest min, throughput >= 110 % of now",
                vec![
                    Goal { figure: Figure { metric: Metric::Time, job: reader }, least: true },
                    Goal { figure: Figure { metric: Metric::Longest, job: None }, least: true },
                ],
                vec![Constraint { figure: throughput, at_least: true, bound: Bound::OfNow(1.1) }],
            ),
        ];
        for (text, goals, constraints) in table {
            let objective = Objective::parse(text, &JOBS).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((&objective.goals, &objective.constraints), (goals, constraints), "{text}");
        }
    }

    #[test]
    fn invalid_objectives_are_refused_with_position_and_remedy() {
        let table = [
            ("", "", "there is nothing here"),
            ("p99 min,, throughput >= 1%", "", "there is nothing here"),
            ("throughput >= 90%", "throughput >= 90%", "there is no goal"),
            ("p99(redaer) min", "redaer", "did you mean `reader`?"),
            ("p99() min", ")", "there is no job ``"),
            ("p99(reader min", "p99(reader", "no closing bracket"),
            ("p99(reader)", "p99(reader)", "write `p99(reader) min`"),
            ("thruput max", "thruput", "did you mean `throughput`?"),
            ("p100 min", "p100", "not a percentile"),
            ("throughput min", "min", "write `throughput max`"),
            ("p99 max", "max", "write `p99 min`"),
            ("p99 min, throughput == 90%", "==", "there are >= and <="),
            ("p99 min, throughput >=", ">=", "a bound is missing"),
            ("p99 min, throughput >= fast", "fast", "50 MB/s"),
            ("p99 min, throughput >= 90", "90", "50 MB/s"),
            ("p99 min, throughput >= 90 ms", "90 ms", "50 MB/s"),
            ("throughput max, p99 <= 20", "20", "20ms"),
            ("throughput max, p99 <= -20ms", "-20ms", "20ms"),
            ("throughput max, p99 <= 0%", "0%", "more than 0 %"),
            ("throughput max, p99 <= 90% of yesterday", "90% of yesterday", "of best or of now"),
            ("throughput max, fairness >= 0.9 s", "0.9 s", "0.9"),
            (">= 5", "", "a figure is missing"),
        ];
        for (text, at, part) in table {
            let error = Objective::parse(text, &JOBS).unwrap_err();
            assert_eq!(&text[error.at.clone()], at, "{error}");
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_position_is_marked_below_the_text() {
        let error = Objective::parse("throughput max, p99(redaer) <= 5ms", &JOBS).unwrap_err().to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines[1..], ["  throughput max, p99(redaer) <= 5ms", "                      ^^^^^^"]);
    }
}
