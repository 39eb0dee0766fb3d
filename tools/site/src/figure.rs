//! Live figures: a small simulation in an elevator's page.
//!
//! The comment `<!-- figure: job=FILE drive=NAME elevators=NAME,NAME -->` marks the place. The site
//! writes a `figure` that the script of the playground fills, with a table of the same simulation
//! for readers without scripts.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::highlight::escape;

/// A figure as its comment describes it.
#[derive(Debug, PartialEq, Eq)]
pub struct Figure {
    pub job: String,
    pub drive: String,
    pub elevators: Vec<String>,
}

/// Reads the comment of a figure. Returns None if the comment is another one.
pub fn parse(comment: &str) -> Result<Option<Figure>> {
    let inner = comment.trim().strip_prefix("<!-- figure: ").and_then(|rest| rest.strip_suffix(" -->"));
    let Some(inner) = inner else { return Ok(None) };
    let (mut job, mut drive, mut elevators) = (None, None, None);
    for word in inner.split_whitespace() {
        match word.split_once('=') {
            Some(("job", value)) => job = Some(value.to_owned()),
            Some(("drive", value)) => drive = Some(value.to_owned()),
            Some(("elevators", value)) => elevators = Some(value.split(',').map(str::to_owned).collect()),
            _ => bail!("`{word}` in a figure: there are job=, drive= and elevators="),
        }
    }
    match (job, drive, elevators) {
        (Some(job), Some(drive), Some(elevators)) => Ok(Some(Figure { job, drive, elevators })),
        _ => bail!("`{inner}`: a figure needs job=, drive= and elevators="),
    }
}

impl Figure {
    /// Writes the figure, with the results of the simulation as its content.
    pub fn html(&self, root: &Path, program: &Path) -> Result<String> {
        let text =
            std::fs::read_to_string(root.join(&self.job)).with_context(|| format!("the figure's job {}", self.job))?;
        let document = self.simulate(root, program)?;
        let spec = json!({ "job": text, "drive": self.drive, "elevators": self.elevators });
        let caption = format!("{} on the drive model {}, simulated", self.job, self.drive);
        Ok(format!(
            "<figure class=\"live\" data-hoistway-figure=\"{}\"><figcaption>{}</figcaption>\n{}</figure>\n",
            escape(&spec.to_string()),
            escape(&caption),
            table(&document)?
        ))
    }

    fn simulate(&self, root: &Path, program: &Path) -> Result<Value> {
        let output = Command::new(program)
            .args(["compare", &self.job, "--json", "--drive", &self.drive, "--elevators", &self.elevators.join(",")])
            .current_dir(root)
            .output()
            .with_context(|| format!("cannot start {}", program.display()))?;
        if !output.status.success() {
            bail!("the figure of {} on {}: {}", self.job, self.drive, String::from_utf8_lossy(&output.stderr));
        }
        serde_json::from_slice(&output.stdout).context("the output of hoistway compare")
    }
}

/// The table of a comparison: throughput, its least served process and the waits for a request.
fn table(document: &Value) -> Result<String> {
    let results = document["elevators"].as_array().context("the document has no elevators")?;
    let mut html = "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Results\"><table><thead><tr><th>elevator</th>\
                    <th class=\"right\">MB/s</th><th class=\"right\">slowest process, MB/s</th>\
                    <th class=\"right\">mean wait, ms</th><th class=\"right\">longest wait, ms</th></tr></thead><tbody>\n"
        .to_owned();
    for result in results {
        let figure = |path: &str, unit: f64| -> Result<String> {
            let value = result.pointer(path).and_then(Value::as_f64);
            value.map(|value| three_digits(value / unit)).with_context(|| format!("the document has no {path}"))
        };
        html.push_str(&format!(
            "<tr><th>{}</th><td class=\"right\">{}</td><td class=\"right\">{}</td><td class=\"right\">{}</td><td class=\"right\">{}</td></tr>\n",
            escape(result["name"].as_str().unwrap_or_default()),
            figure(THROUGHPUT, 1e6)?,
            figure(SLOWEST, 1e6)?,
            figure(MEAN, 1e6)?,
            figure(LONGEST, 1e6)?,
        ));
    }
    html.push_str("</tbody></table></div>\n");
    Ok(html)
}

const THROUGHPUT: &str = "/bytes_per_s";
const SLOWEST: &str = "/process_bytes_per_s/min";
const MEAN: &str = "/latency_ns/mean";
const LONGEST: &str = "/latency_ns/max";

fn three_digits(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comment_of_a_figure_is_read() {
        let figure = parse("<!-- figure: job=a.fio drive=d elevators=x,y -->").expect("a figure");
        let elevators = vec!["x".into(), "y".into()];
        assert_eq!(figure, Some(Figure { job: "a.fio".into(), drive: "d".into(), elevators }));
        assert_eq!(parse("<!-- begin: x -->").expect("another comment"), None);
        assert!(parse("<!-- figure: job=a.fio -->").is_err());
        assert!(parse("<!-- figure: size=3 -->").is_err());
    }
}
