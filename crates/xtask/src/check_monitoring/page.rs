//! The panels of the dashboard as a page of charts, drawn from answers of Prometheus.

use anyhow::{Context as _, Result};
use hoistway_report::{Fact, HeatMap, LineOf, Lines, Sheet, SheetSection, Table, sheet_page};
use serde_json::Value;

use super::dashboard::{Dashboard, Kind, Panel, Target};

/// The columns of a heat map.
const COLUMNS: usize = 12;

/// Series with their names: points of time in seconds and value.
type Series = Vec<(String, Vec<(f64, f64)>)>;

/// Draws a page with a section for each row. `range` evaluates an expression over the time of the
/// page.
pub fn page(dashboard: &Dashboard, mut range: impl FnMut(&str) -> Result<Vec<Value>>) -> Result<String> {
    let mut sections = Vec::new();
    for row in &dashboard.rows {
        let meanings = row.panels.iter().map(|panel| vec![panel.title.clone(), panel.description.clone()]).collect();
        let head = vec!["Panel".into(), "Shows".into()];
        let table = Some(Table { head, rows: meanings, marked: None });
        let mut section = SheetSection { title: row.title.clone(), table, ..SheetSection::default() };
        for panel in &row.panels {
            let mut lines = Vec::new();
            for target in &panel.targets {
                let series = series(target, &range(&target.expression)?)?;
                match panel.kind {
                    Kind::Stat => section.facts.extend(facts(panel, &series)),
                    Kind::Lines => lines.extend(series.into_iter().map(|series| line(panel, target, series))),
                    Kind::HeatMap => section.heat_maps.push(heat_map(panel, &series)),
                }
            }
            if panel.kind == Kind::Lines {
                let starts = lines.iter().filter_map(|line: &LineOf| Some(line.points.first()?.0));
                let start = starts.fold(f64::INFINITY, f64::min);
                lines.iter_mut().flat_map(|line| &mut line.points).for_each(|(at, _)| *at -= start);
                let (_, unit) = scale(&panel.unit);
                let (title, y) = (panel.title.clone(), unit.to_owned());
                section.pictures.push(Lines { title, x: "Time (s)".into(), y, lines, ..Lines::default() });
            }
        }
        sections.push(section);
    }
    let sheet = Sheet {
        command: "cargo xtask check-monitoring --page".into(),
        title: "Dashboard of hoistway".into(),
        subtitle: "The panels of packaging/grafana/hoistway.json, drawn from answers of Prometheus".into(),
        sections,
        ..Sheet::default()
    };
    Ok(sheet_page(&sheet)?)
}

/// Reads the series of an answer.
fn series(target: &Target, answer: &[Value]) -> Result<Series> {
    let point = |pair: &Value| Some((pair[0].as_f64()?, pair[1].as_str()?.parse().ok()?));
    let mut found = Vec::new();
    for one in answer {
        let values = one["values"].as_array().with_context(|| format!("{}: no values", target.expression))?;
        let finite = |(_, value): &(f64, f64)| value.is_finite();
        found.push((name(&target.legend, &one["metric"]), values.iter().filter_map(point).filter(finite).collect()));
    }
    Ok(found)
}

/// Replaces `{{LABEL}}` in the name of a series.
fn name(legend: &str, labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    labels.fold(legend.to_owned(), |name, (label, value)| {
        name.replace(&format!("{{{{{label}}}}}"), value.as_str().unwrap_or_default())
    })
}

/// Returns the factor for values of a unit of Grafana, and the unit of the product.
fn scale(unit: &str) -> (f64, &'static str) {
    match unit {
        "percentunit" => (100.0, "%"),
        "s" => (1.0, "s"),
        "bytes" => (1.0 / 1_048_576.0, "MiB"),
        "binBps" => (1.0 / 1_048_576.0, "MiB/s"),
        "iops" | "reqps" => (1.0, "requests/s"),
        "dateTimeFromNow" => (0.001, "s ago"),
        _ => (1.0, ""),
    }
}

fn line(panel: &Panel, target: &Target, (name, points): (String, Vec<(f64, f64)>)) -> LineOf {
    let (factor, _) = scale(&panel.unit);
    let points = points.into_iter().map(|(at, value)| (at, value * factor)).collect();
    LineOf { name, points, dashed: target.is_dashed }
}

/// The present values of a panel.
fn facts(panel: &Panel, series: &Series) -> Vec<Fact> {
    let (factor, unit) = scale(&panel.unit);
    let value = |points: &[(f64, f64)]| match points.last() {
        // A time in ms since 1970.
        Some((at, value)) if panel.unit == "dateTimeFromNow" => at - value * factor,
        last => last.map_or(f64::NAN, |(_, value)| value * factor),
    };
    let fact = |(name, points): &(String, Vec<(f64, f64)>)| {
        let value = format!("{name}: {:.2} {unit}", value(points));
        Fact { label: panel.title.clone(), value: value.trim_end().to_owned() }
    };
    series.iter().map(fact).collect()
}

/// The heat map of a histogram: requests in each bucket, whose series count those below its bound.
fn heat_map(panel: &Panel, series: &Series) -> HeatMap {
    let bound = |name: &str| if name == "+Inf" { f64::INFINITY } else { name.parse().unwrap_or(f64::NAN) };
    let mut buckets: Vec<&(String, Vec<(f64, f64)>)> = series.iter().collect();
    buckets.sort_by(|one, other| bound(&one.0).total_cmp(&bound(&other.0)));
    let times: Vec<f64> = buckets.first().map_or(Vec::new(), |(_, points)| points.iter().map(|(at, _)| *at).collect());
    let every = times.len().div_ceil(COLUMNS).max(1);
    let columns: Vec<usize> = (0..times.len()).step_by(every).collect();
    let below = |bucket: usize, column: usize| buckets[bucket].1.get(column).map_or(0.0, |(_, value)| *value);
    let mut cells = Vec::new();
    for bucket in (0..buckets.len()).rev() {
        let lower = |column| if bucket == 0 { 0.0 } else { below(bucket - 1, column) };
        cells.extend(columns.iter().map(|column| (below(bucket, *column) - lower(*column)).max(0.0)));
    }
    HeatMap {
        title: panel.title.clone(),
        note: "requests/s".into(),
        x: "Time (s)".into(),
        y: "Bound of the bucket (s)".into(),
        columns: columns.iter().map(|column| format!("{:.0}", times[*column] - times[0])).collect(),
        rows: buckets.iter().rev().map(|(name, _)| name.clone()).collect(),
        cells,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_panel_is_drawn_with_the_values_of_its_series() {
        let dashboard = Dashboard::read().unwrap();
        let mut labels = json!({ "device": "disk", "tenant": "web", "le": "0.5", "version": "1.2.3" });
        for label in ["engine", "elevator", "op", "quantile", "result"] {
            labels[label] = label.into();
        }
        let page = page(&dashboard, |_| Ok(vec![json!({ "metric": labels, "values": [[100, "1"], [102, "3"]] })]));
        let page = page.unwrap();
        for panel in dashboard.rows.iter().flat_map(|row| &row.panels) {
            let title = panel.title.replace('\'', "&#39;");
            assert!(page.contains(&title) || page.contains(&panel.title), "{title}");
        }
        assert!(page.contains("disk web got") && page.contains("1.2.3") && !page.contains("{{"), "{page}");
    }

    #[test]
    fn a_bucket_of_the_heat_map_has_the_requests_between_two_bounds() {
        let of = |name: &str, value| (name.to_owned(), vec![(10.0, value), (12.0, value)]);
        let series = vec![of("+Inf", 9.0), of("0.1", 4.0), of("0.5", 7.0)];
        let dashboard = Dashboard::read().unwrap();
        let map = heat_map(&dashboard.rows[0].panels[0], &series);
        assert_eq!(map.rows, ["+Inf", "0.5", "0.1"]);
        assert_eq!((map.columns, map.cells), (vec!["0".into(), "2".into()], vec![2.0, 2.0, 3.0, 3.0, 4.0, 4.0]));
    }
}
