//! The advice for a real loop device under each scheduler of the kernel: its text, its settings
//! after it is applied, and the settings after the undo.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use hoistway_workspace::programs;
use serde_json::Value;

use crate::whatif::Programs;
use crate::whatif::real::DRIVE;

/// The use of the advice: its choices differ clearly on the drive.
const USE: &str = "media";
/// The size in bytes of the sparse file behind the loop device.
const IMAGE_BYTES: u64 = 1 << 30;

/// The results of one scheduler.
pub struct Row {
    scheduler: String,
    advice: Value,
    /// The scheduler that was set after `--apply`.
    applied: String,
    /// The scheduler that was set after the commands of the undo.
    back: String,
}

/// A loop device. Dropping it detaches it.
struct Loop(String);

impl Loop {
    fn new(image: &Path) -> Result<Loop> {
        let file = fs::File::create(image).with_context(|| image.display().to_string())?;
        file.set_len(IMAGE_BYTES)?;
        let path = programs::output(Command::new("losetup").args(["--find", "--show"]).arg(image))?;
        Ok(Loop(path.trim().trim_start_matches("/dev/").to_owned()))
    }

    fn file(&self) -> String {
        format!("/sys/block/{}/queue/scheduler", self.0)
    }

    /// All schedulers, and the one that is set.
    fn schedulers(&self) -> Result<(Vec<String>, String)> {
        let text = fs::read_to_string(self.file()).with_context(|| self.file())?;
        let plain = |word: &str| word.trim_matches(['[', ']']).to_owned();
        let set = text.split_whitespace().find(|word| word.starts_with('[')).map(plain);
        Ok((text.split_whitespace().map(plain).collect(), set.unwrap_or_default()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // A device that cannot be detached stays visible in `losetup`.
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.0)]).status();
    }
}

/// One row for each scheduler that the kernel has for loop devices; `None` without root.
pub fn rows(programs: &Programs, folder: &Path) -> Result<Option<Vec<Row>>> {
    if !programs::is_root() || programs::find("losetup").is_none() {
        eprintln!("skipped: a loop device under each scheduler, which needs root and losetup");
        return Ok(None);
    }
    let device = Loop::new(&folder.join("image"))?;
    let (names, before) = device.schedulers()?;
    let rows: Result<Vec<Row>> = names.iter().map(|name| row(programs, &device, name)).collect();
    // The kernel keeps the queue of a loop device for the next file.
    fs::write(device.file(), before)?;
    println!("a loop device under each scheduler is done");
    Ok(Some(rows?))
}

fn row(programs: &Programs, device: &Loop, scheduler: &str) -> Result<Row> {
    fs::write(device.file(), scheduler).with_context(|| device.file())?;
    let mut command = Command::new(&programs.hoistway);
    command.args(["advise", &device.0, "--for", USE, "--drive", DRIVE, "--json", "--apply", "--yes"]);
    let text = programs::output(&mut command)?;
    let advice: Value = serde_json::from_str(&text).context("the output of hoistway advise")?;
    let applied = device.schedulers()?.1;
    for line in advice["commands"]["back"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        programs::run(Command::new("sh").args(["-c", line]))?;
    }
    let back = device.schedulers()?.1;
    ensure!(
        advice["now"]["scheduler"] == scheduler,
        "advise reports {} instead of {scheduler}",
        advice["now"]["scheduler"]
    );
    Ok(Row { scheduler: scheduler.to_owned(), advice, applied, back })
}

/// The section of the page.
pub fn section(text: &mut String, rows: Option<&[Row]>) {
    let Some(rows) = rows else {
        text.push_str("\n## A loop device under each scheduler\n\nNot run: it needs root and losetup.\n");
        return;
    };
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\n## A loop device under each scheduler\n\n\
         A real loop device under each scheduler of the kernel in turn: `hoistway advise LOOP --for {USE} --drive {DRIVE} --apply --yes`, then \
         the printed commands that undo the change. The scheduler after each step is read from sysfs.\n\n\
         | present | advice | {} | `ionice` at present | after `--apply` | after the undo |\n|---|---|---|---|---|---|\n",
        rows.first().map_or_else(String::new, |row| figure(&row.advice, "figure"))
    );
    for row in rows {
        let advice = &row.advice;
        let name = advice["advice"]["name"].as_str().unwrap_or_default();
        let leave = if advice["verdict"] == "leave" { "leave " } else { "" };
        let warnings: Vec<&str> =
            advice["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let has_warning = |part: &str| warnings.iter().any(|warning| warning.contains(part));
        let ionice = match () {
            () if has_warning("`ionice` has no effect") => "reported as without effect",
            () if has_warning("only the class of `ionice` counts") => "reported: only its class counts",
            () => "no warning",
        };
        let Row { scheduler, applied, back, .. } = row;
        let _ = writeln!(
            text,
            "| {scheduler} | {leave}{name} | {} instead of {} | {ionice} | {applied} | {back} |",
            mean(advice, name),
            mean(advice, advice["now"]["name"].as_str().unwrap_or_default())
        );
    }
}

/// The mean of the deciding figure of a choice.
fn mean(advice: &Value, name: &str) -> String {
    let choice = advice["choices"].as_array().into_iter().flatten().find(|choice| choice["name"] == name);
    choice.and_then(|choice| choice["figures"][0]["mean"].as_f64()).map_or("-".into(), |mean| format!("{mean:.1}"))
}

fn figure(advice: &Value, field: &str) -> String {
    advice["choices"][0]["figures"][0][field].as_str().unwrap_or_default().to_owned()
}
