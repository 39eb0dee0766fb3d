//! The dashboard of `packaging/grafana`: its panels and their expressions.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::repository;

/// The file of the dashboard, from the root of the repository.
pub const PATH: &str = "packaging/grafana/hoistway.json";

/// The dashboard.
#[derive(Debug)]
pub struct Dashboard {
    /// The variables: name, and an expression with a series for each value.
    variables: Vec<(String, String)>,
    /// The rows from top to bottom.
    pub rows: Vec<Row>,
}

/// A row of the dashboard.
#[derive(Debug)]
pub struct Row {
    pub title: String,
    pub panels: Vec<Panel>,
}

/// A panel.
#[derive(Debug)]
pub struct Panel {
    pub title: String,
    pub description: String,
    pub kind: Kind,
    /// Grafana's name of the unit; empty without one.
    pub unit: String,
    pub targets: Vec<Target>,
}

/// The form in which a panel shows its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The present value of each.
    Stat,
    /// A line for each.
    Lines,
    /// A row of a heat map for each.
    HeatMap,
}

/// An expression of a panel.
#[derive(Debug)]
pub struct Target {
    pub expression: String,
    /// The name of a series; `{{LABEL}}` stands for its label.
    pub legend: String,
    pub is_dashed: bool,
}

impl Dashboard {
    /// Reads the dashboard of the repository.
    pub fn read() -> Result<Dashboard> {
        let path = repository::root().join(PATH);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let value = serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
        Dashboard::of(&value)
    }

    fn of(dashboard: &Value) -> Result<Dashboard> {
        let mut variables = Vec::new();
        for variable in list(&dashboard["templating"], "list").filter(|variable| variable["type"] == "query") {
            let name = variable["name"].as_str().context("a variable without a name")?;
            let query = variable["query"]["query"].as_str().with_context(|| format!("no query of ${name}"))?;
            let parts = query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
            let (series, label) = parts
                .and_then(|parts| parts.rsplit_once(", "))
                .with_context(|| format!("${name}: {query} is not label_values(SERIES, LABEL)"))?;
            variables.push((format!("${name}"), format!("count by ({label}) ({series})")));
        }
        let mut rows: Vec<Row> = Vec::new();
        for panel in list(dashboard, "panels") {
            let title = panel["title"].as_str().context("a panel without a title")?.to_owned();
            if panel["type"] == "row" {
                rows.push(Row { title, panels: Vec::new() });
            } else {
                let row = rows.last_mut().with_context(|| format!("{title}: a panel above the first row"))?;
                row.panels.push(Panel::of(title, panel)?);
            }
        }
        Ok(Dashboard { variables, rows })
    }

    /// Returns the expressions of the variables and of all panels, with their titles.
    pub fn expressions(&self) -> Vec<(String, String)> {
        let panels = self.rows.iter().flat_map(|row| &row.panels);
        let of_panels = panels
            .flat_map(|panel| panel.targets.iter().map(|target| (panel.title.clone(), target.expression.clone())));
        self.variables.iter().cloned().chain(of_panels).collect()
    }
}

impl Panel {
    fn of(title: String, panel: &Value) -> Result<Panel> {
        let kind = match panel["type"].as_str() {
            Some("stat") => Kind::Stat,
            Some("timeseries") => Kind::Lines,
            Some("heatmap") => Kind::HeatMap,
            other => anyhow::bail!("{title}: a panel of the unknown type {other:?}"),
        };
        let overrides = &panel["fieldConfig"]["overrides"];
        let is_dashed = |target: &Value| {
            overrides.as_array().into_iter().flatten().any(|one| one["matcher"]["options"] == target["refId"])
        };
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let mut targets = Vec::new();
        for target in list(panel, "targets") {
            let expression = target["expr"].as_str().with_context(|| format!("{title}: no expression"))?.to_owned();
            targets.push(Target { expression, legend: text(target, "legendFormat"), is_dashed: is_dashed(target) });
        }
        ensure!(!targets.is_empty(), "{title}: a panel without expressions");
        let (description, unit) = (text(panel, "description"), text(&panel["fieldConfig"]["defaults"], "unit"));
        Ok(Panel { title, description, kind, unit, targets })
    }
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn panels_have_a_row_a_description_and_expressions_with_names() {
        let dashboard = Dashboard::read().unwrap();
        assert!(dashboard.expressions().iter().any(|(title, _)| title == "$tenant"));
        for panel in dashboard.rows.iter().flat_map(|row| &row.panels) {
            assert!(panel.description.len() > 10, "{}", panel.title);
            assert!(panel.targets.iter().all(|target| !target.legend.is_empty()), "{}", panel.title);
        }
        let panels = |panel| json!({ "panels": [{ "type": "row", "title": "Row" }, panel] });
        for (wrong, why) in [
            (panels(json!({ "type": "stat", "title": "Empty" })), "Empty: a panel without expressions"),
            (panels(json!({ "type": "pie", "title": "Round" })), "Round: a panel of the unknown type Some(\"pie\")"),
            (json!({ "panels": [{ "type": "stat", "title": "Lost" }] }), "Lost: a panel above the first row"),
        ] {
            assert_eq!(Dashboard::of(&wrong).unwrap_err().to_string(), why);
        }
    }

    #[test]
    fn panels_of_a_row_lie_beside_one_another_within_the_width_of_the_dashboard() {
        let path = repository::root().join(PATH);
        let value: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let mut taken = std::collections::BTreeMap::new();
        let mut ids = std::collections::BTreeSet::new();
        for panel in list(&value, "panels") {
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|name| panel["gridPos"][name].as_u64().unwrap());
            assert!(x + w <= 24, "{}", panel["title"]);
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}: its id is another's", panel["title"]);
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                let before = taken.insert(cell, panel["title"].clone());
                assert_eq!(before, None, "{} overlaps it", panel["title"]);
            }
        }
    }
}
