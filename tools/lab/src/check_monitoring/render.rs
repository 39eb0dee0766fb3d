//! The dashboard as pictures: the answers of Prometheus for the program in `web/dashboard`, which
//! draws the panels with Grafana's components.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use hoistway_workspace::needs::{self, Need};
use hoistway_workspace::{programs, repository, web};
use serde_json::{Value, json};

use super::dashboard::{self, Dashboard, Target};
use super::{Prometheus, SCRAPE_S};

/// The programs that draw the dashboard, with their Debian packages.
pub const PROGRAMS: [(&str, &str); 3] = [("node", "nodejs"), ("npm", "npm"), ("chromium", "chromium")];

/// Names the command that installs the missing programs. `None` if all are installed.
pub fn missing() -> Option<String> {
    let missing = PROGRAMS.iter().filter(|(program, _)| programs::find(program).is_none());
    let (programs, packages): (Vec<&str>, Vec<&str>) = missing.copied().unzip();
    (!programs.is_empty())
        .then(|| format!("missing: {}: apt-get install {}, or pass --install", programs.join(", "), packages.join(" ")))
}

/// Writes the answers of the last seconds to all targets, the page and the pictures into a
/// directory.
pub fn render(
    dashboard: &Dashboard,
    prometheus: &Prometheus,
    (from_s, to_s): (u64, u64),
    with_values: impl Fn(&str) -> String,
    directory: &Path,
) -> Result<()> {
    let answer = |target: &Target| {
        let expression = with_values(&target.expression);
        if target.is_instant { prometheus.series(&expression) } else { prometheus.range(&expression, (from_s, to_s)) }
    };
    let mut answers = Vec::new();
    for panel in &dashboard.panels {
        for target in &panel.targets {
            answers.push(json!({ "panel": panel.id, "target": target.name, "series": answer(target)? }));
        }
    }
    let [from, to, step] = [from_s, to_s, SCRAPE_S].map(|seconds| 1000 * seconds);
    fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    let directory = directory.canonicalize()?;
    let file = directory.join("answers.json");
    let recorded: Value = json!({ "from": from, "to": to, "step": step, "answers": answers });
    fs::write(&file, recorded.to_string()).with_context(|| format!("cannot write {}", file.display()))?;
    needs::provide(&[web::PLAYGROUND, web::DASHBOARD].map(Need::NpmPackages), false)?;
    programs::run(web::program(web::DASHBOARD, "npm").args(["run", "--silent", "types"]))?;
    let mut render = web::program(web::DASHBOARD, "node");
    render.arg("render.mjs").arg(repository::root().join(dashboard::PATH)).args([&file, &directory]);
    programs::run(&mut render)
}
