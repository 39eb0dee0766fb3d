//! The dashboard of `packaging/grafana`: its panels and their expressions.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use hoistway_workspace::repository;
use serde_json::Value;

/// The file of the dashboard, from the root of the repository.
pub const PATH: &str = "packaging/grafana/hoistway.json";

/// The dashboard.
#[derive(Debug)]
pub struct Dashboard {
    /// The variables: name, and an expression with a series for each value.
    variables: Vec<(String, String)>,
    /// The panels from top to bottom, without the headings of rows.
    pub panels: Vec<Panel>,
}

/// A panel.
#[derive(Debug)]
pub struct Panel {
    pub id: u64,
    pub title: String,
    pub targets: Vec<Target>,
}

/// An expression of a panel.
#[derive(Debug)]
pub struct Target {
    /// The name of the target within its panel.
    pub name: String,
    pub expression: String,
    /// Whether the panel shows the current value only.
    pub is_instant: bool,
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
        let is_panel = |panel: &&Value| panel["type"] != "row";
        let panels = list(dashboard, "panels").filter(is_panel).map(Panel::of).collect::<Result<_>>()?;
        Ok(Dashboard { variables, panels })
    }

    /// Returns the expressions of the variables and of all panels, with their titles.
    pub fn expressions(&self) -> Vec<(String, String)> {
        let of_panels = self
            .panels
            .iter()
            .flat_map(|panel| panel.targets.iter().map(|target| (panel.title.clone(), target.expression.clone())));
        self.variables.iter().cloned().chain(of_panels).collect()
    }
}

impl Panel {
    fn of(panel: &Value) -> Result<Panel> {
        let title = panel["title"].as_str().context("a panel without a title")?.to_owned();
        let id = panel["id"].as_u64().with_context(|| format!("{title}: no id"))?;
        let text = |value: &Value, name: &str| {
            let found =
                value[name].as_str().filter(|text| !text.is_empty()).with_context(|| format!("{title}: no {name}"));
            found.map(str::to_owned)
        };
        text(panel, "description")?;
        let mut targets = Vec::new();
        for target in list(panel, "targets") {
            text(target, "legendFormat")?;
            let (name, expression) = (text(target, "refId")?, text(target, "expr")?);
            targets.push(Target { name, expression, is_instant: target["instant"] == true });
        }
        ensure!(!targets.is_empty(), "{title}: a panel without expressions");
        Ok(Panel { id, title, targets })
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
    fn panels_have_a_description_and_expressions_with_names() {
        let dashboard = Dashboard::read().unwrap();
        assert!(dashboard.expressions().iter().any(|(title, _)| title == "$tenant"));
        let panel = |targets| json!({ "panels": [{ "title": "A", "id": 1, "description": "x", "targets": targets }] });
        for (wrong, why) in [
            (json!({ "panels": [{ "title": "A", "id": 1 }] }), "A: no description"),
            (panel(json!([])), "A: a panel without expressions"),
            (panel(json!([{ "refId": "A", "expr": "up" }])), "A: no legendFormat"),
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
