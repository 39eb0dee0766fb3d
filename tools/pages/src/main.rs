//! Generated parts of documents, each between a pair of comments `begin: NAME` and `end: NAME`.
//!
//! docs/conformance.md has the counts of recorded decisions, which `hoistway conform --markdown`
//! prints. docs/drives.md has the measurements of `hoistway drives --markdown`, with a plot of each
//! recorded drive in docs/drives. ARCHITECTURE.md has the crates, CONTRIBUTING.md the tasks.
//! `facts` writes what several pages state, such as the number of recorded decisions, and
//! `standings` what they state of docs/arena.md. The references of job files, configurations,
//! drive files and the control tree have the tables of the crates that read them. The built-in
//! drive files are also written in their compact form, which programs read.
//!
//! A check generates again what comes from data in the repository, and compares. The counts of the
//! whole recordings of decisions, which are not in the repository, are generated only with
//! `--recordings`.

#![forbid(unsafe_code)]

mod crates;
mod facts;
mod picture;
mod standings;
mod tunables;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use hoistway_workspace::tasks::{self, Program};
use hoistway_workspace::{cargo, packages, parts, programs, repository};

use crates::Part;

const CONFORMANCE: &str = "docs/conformance.md";
const DRIVES: &str = "docs/drives.md";
/// The directory of the plots of docs/drives.md.
const PLOTS: &str = "docs/drives";
/// The compact form of the built-in drive files.
const PACKED_DRIVES: &str = "crates/drive/profiles/packed.bin";
const TEST_DATA: &str = "testdata/decisions";
const RECORDINGS: &str = "crates/drive/testdata";
/// Exit codes of `hoistway conform` that the page can show: all decisions are identical; some
/// differ.
const EXIT_CODES: [i32; 2] = [0, 3];

/// Options of `cargo xtask pages`.
#[derive(clap::Args, Debug)]
struct Options {
    #[command(subcommand)]
    action: Option<Action>,
}

/// What to do with the pages instead of checking them.
#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Write the generated parts, the tables of tunables in docs/elevators, and docs/reproduced.md
    /// with its pictures
    Write {
        /// Write the counts of the whole recordings of decisions in this directory, too
        #[arg(value_name = "DIR")]
        recordings: Option<PathBuf>,
        /// Write only the parts that need no run of the program: the crates, the tasks, the
        /// compact form of the drive files, and the references of job files, configurations, drive
        /// files and the control tree
        #[arg(long, conflicts_with = "recordings")]
        quick: bool,
        /// Write only docs/drives.md and its plots
        #[arg(long, conflicts_with_all = ["recordings", "quick"])]
        drives: bool,
    },
    /// Check only the counts of recorded decisions
    Decisions,
    /// Write docs/trace-view.png and docs/competing-readers.png with Chromium, each for both themes
    /// and for wide and narrow windows
    Picture,
}

#[derive(clap::Subcommand, Debug)]
enum Task {
    Pages(Options),
}

fn main() -> ExitCode {
    tasks::main(Program::Pages, |Task::Pages(options)| run(&options))
}

fn run(options: &Options) -> Result<()> {
    match &options.action {
        None => check(),
        Some(Action::Decisions) => check_decisions(),
        Some(Action::Picture) => picture::write(),
        Some(Action::Write { quick: true, .. }) => write_sources(),
        Some(Action::Write { drives: true, .. }) => write_drives(),
        Some(Action::Write { recordings, .. }) => {
            write_sources()?;
            write(recordings.as_deref())?;
            tunables::write()?;
            write_reproduced()
        }
    }
}

/// The generated parts that come from sources, manifests and tables of the crates alone: page, name
/// of the part, and the text.
fn from_sources() -> Result<Vec<(&'static str, &'static str, String)>> {
    let packages = packages::packages()?;
    let mut parts = vec![
        ("ARCHITECTURE.md", "product", crates::picture(&packages, Part::Product)),
        ("ARCHITECTURE.md", "table of the product", crates::table(&packages, Part::Product)?),
        ("ARCHITECTURE.md", "tools", crates::picture(&packages, Part::Tools)),
        ("ARCHITECTURE.md", "table of the tools", crates::table(&packages, Part::Tools)?),
        ("CONTRIBUTING.md", "tasks", table_of_tasks()),
        ("docs/drive-files.md", "keys", hoistway_drive::reference::markdown()),
        ("docs/serve-config.md", "keys", hoistway_config::markdown()),
        ("docs/mount.md", "keys", hoistway_config::mount::markdown()),
        ("docs/serve-control.md", "tree", hoistway_control::table()),
        ("docs/job-files.md", "kinds of jobs that are refused", kinds_of_refused_jobs()),
    ];
    parts.extend(hoistway_fio::reference::markdown().map(|(name, text)| ("docs/job-files.md", name, text)));
    parts.extend(facts::parts()?);
    parts.extend(standings::parts()?);
    Ok(parts)
}

/// A row for each task: its command and the line of its help.
fn table_of_tasks() -> String {
    let rows = tasks::TASKS.iter().map(|task| format!("| `cargo xtask {}` | {} |\n", task.name, task.does));
    "| command | does |\n|---|---|\n".to_owned() + &rows.collect::<String>()
}

/// The kinds of jobs that are refused because the rules of fio are not known: a list.
fn kinds_of_refused_jobs() -> String {
    hoistway_fio::UNMODELLED.iter().map(|kind| format!("- {}\n", kind.jobs)).collect()
}

/// Writes the parts that come from sources and manifests, and the compact form of the drive files.
fn write_sources() -> Result<()> {
    let packed = hoistway_drive::pack_builtin_profiles()?;
    fs::write(repository::root().join(PACKED_DRIVES), packed)
        .with_context(|| format!("cannot write {PACKED_DRIVES}"))?;
    println!("wrote {PACKED_DRIVES}");
    for (page, name, text) in from_sources()? {
        parts::put(page, &[(name, text)])?;
    }
    Ok(())
}

/// Checks the parts that come from sources and manifests, and the compact form of the drive files.
fn check_sources() -> Result<()> {
    let packed =
        fs::read(repository::root().join(PACKED_DRIVES)).with_context(|| format!("cannot read {PACKED_DRIVES}"))?;
    if packed != hoistway_drive::pack_builtin_profiles()? {
        bail!("{PACKED_DRIVES} is not current: run cargo xtask pages write --quick");
    }
    println!("{PACKED_DRIVES} is current");
    for (page, name, text) in from_sources()? {
        let old = parts::read_page(page)?;
        is_current(page, &parts::with(page, &old, name, &text)?)?;
    }
    Ok(())
}

/// Checks that the counts of recorded decisions in docs/conformance.md are current.
fn check_decisions() -> Result<()> {
    let generated =
        parts::with(CONFORMANCE, &parts::read_page(CONFORMANCE)?, "testdata", &conform(Path::new(TEST_DATA))?)?;
    is_current(CONFORMANCE, &generated)
}

/// Checks that all generated parts are current.
fn check() -> Result<()> {
    check_sources()?;
    check_decisions()?;
    let plots = cargo::target_directory()?.join("drives-plots");
    let measured = drives(&plots)?;
    is_current(DRIVES, &parts::with(DRIVES, &parts::read_page(DRIVES)?, "drives", &measured)?)?;
    let (old, new) = (files(&repository::root().join(PLOTS))?, files(&plots)?);
    for name in old.keys().chain(new.keys()) {
        if old.get(name) != new.get(name) {
            bail!("{PLOTS}/{name} is not current: run cargo xtask pages write");
        }
    }
    println!("{PLOTS} is current");
    Ok(())
}

/// Writes the parts that come from data in the repository, and the counts of whole recordings if a
/// directory of them is given.
fn write(recordings: Option<&Path>) -> Result<()> {
    let mut page =
        parts::with(CONFORMANCE, &parts::read_page(CONFORMANCE)?, "testdata", &conform(Path::new(TEST_DATA))?)?;
    if let Some(folder) = recordings {
        page = parts::with(CONFORMANCE, &page, "recordings", &conform(folder)?)?;
    }
    parts::write_page(CONFORMANCE, &page)?;
    write_drives()
}

/// Writes docs/drives.md and the plots of the recorded drives.
fn write_drives() -> Result<()> {
    let measured = drives(&repository::root().join(PLOTS))?;
    parts::write_page(DRIVES, &parts::with(DRIVES, &parts::read_page(DRIVES)?, "drives", &measured)?)
}

fn is_current(page: &str, made: &str) -> Result<()> {
    if let Some((line, old, new)) = first_difference(&parts::read_page(page)?, made) {
        bail!("{page}:{line} is not current: run cargo xtask pages write\n  is         {old}\n  should be  {new}");
    }
    println!("{page} is current");
    Ok(())
}

/// Reads the files of a directory, by name.
fn files(folder: &Path) -> Result<BTreeMap<String, String>> {
    let listed = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text))
    };
    listed.map(file).collect()
}

/// Returns the output of `hoistway drives --markdown`, which writes its plots to the directory
/// `plots`, emptied before.
fn drives(plots: &Path) -> Result<String> {
    if plots.exists() {
        fs::remove_dir_all(plots).with_context(|| format!("cannot empty {}", plots.display()))?;
    }
    fs::create_dir_all(plots).with_context(|| format!("cannot make {}", plots.display()))?;
    let program = cargo::hoistway()?;
    let mut command = Command::new(&program);
    command.args(["drives", "--markdown"]).arg(repository::root().join(RECORDINGS)).arg("--plots").arg(plots);
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.success() {
        bail!("hoistway drives --markdown: {}", output.status);
    }
    String::from_utf8(output.stdout).context("the output of hoistway drives")
}

/// Writes docs/reproduced.md and its pictures: all published results, simulated by the program for
/// packages.
fn write_reproduced() -> Result<()> {
    programs::run(
        Command::new(cargo::packaged()?).args(["reproduce", "--page", "docs"]).current_dir(repository::root()),
    )
}

/// Returns the output of `hoistway conform --markdown` for the decision files in a directory.
fn conform(folder: &Path) -> Result<String> {
    let folder = repository::root().join(folder);
    let listed = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = listed.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.to_string_lossy().ends_with(".jsonl.gz"));
    // Sorted by name without extensions, so that a set precedes the sets whose names extend its
    // name.
    files.sort_by_key(|file| file.to_string_lossy().trim_end_matches(".jsonl.gz").to_owned());
    if files.is_empty() {
        bail!("no decision files (.jsonl.gz) in {}", folder.display());
    }
    let program = cargo::hoistway()?;
    let output = Command::new(&program)
        .args(["conform", "--markdown"])
        .args(&files)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.code().is_some_and(|code| EXIT_CODES.contains(&code)) {
        bail!("hoistway conform --markdown: {}", output.status);
    }
    String::from_utf8(output.stdout).context("the output of hoistway conform")
}

/// Finds the first line in which two texts differ: its number from 1, and the line of each.
fn first_difference<'a>(old: &'a str, new: &'a str) -> Option<(usize, &'a str, &'a str)> {
    let (mut old, mut new) = (old.lines(), new.lines());
    for line in 1.. {
        match (old.next(), new.next()) {
            (None, None) => return None,
            (old, new) if old == new => {}
            (old, new) => return Some((line, old.unwrap_or("(nothing)"), new.unwrap_or("(nothing)"))),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "# A\n\n<!-- begin: x, made by y -->\nold\n<!-- end: x -->\nrest\n";

    #[test]
    fn a_part_is_replaced_between_its_comments() {
        let generated = parts::with("a.md", EXAMPLE, "x", "new\n").expect("it has the comments");
        assert_eq!(generated, "# A\n\n<!-- begin: x, made by y -->\n\nnew\n\n<!-- end: x -->\nrest\n");
        assert_eq!(parts::with("a.md", &generated, "x", "new").expect("still"), generated, "once more changes nothing");
        assert!(parts::with("a.md", EXAMPLE, "z", "").is_err());
    }

    #[test]
    fn the_first_difference_has_its_line() {
        assert_eq!(first_difference("a\nb", "a\nb"), None);
        assert_eq!(first_difference("a\nb\nd", "a\nc"), Some((2, "b", "c")));
        assert_eq!(first_difference("a", "a\nc"), Some((2, "(nothing)", "c")));
    }
}
