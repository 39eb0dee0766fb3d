//! Generated parts of pages: docs/conformance.md has the counts of recorded decisions, which `hoistway conform --markdown` prints, and
//! docs/drives.md what `hoistway drives --markdown` measures, with a plot of each recorded drive in docs/drives.
//!
//! What is made from the repository's own data is made anew by every check and must be what the page has. The part on the whole
//! recordings of decisions, which are not in the repository, is made by whoever has them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repository;
use crate::tools::{self, cargo};

const CONFORMANCE: &str = "docs/conformance.md";
const DRIVES: &str = "docs/drives.md";
/// Where the plots of the page of drives lie.
const PLOTS: &str = "docs/drives";
const TEST_DATA: &str = "testdata/decisions";
const RECORDINGS: &str = "crates/drive/testdata";
/// Exit codes of `hoistway conform`: all is identical; something differs, which the page tells.
const TOLD: [i32; 2] = [0, 3];

/// Checks that the pages are current.
pub fn check() -> Result<()> {
    let made = with_part(CONFORMANCE, &read(CONFORMANCE)?, "testdata", &conform(Path::new(TEST_DATA))?)?;
    is_current(CONFORMANCE, &made)?;
    let plots = tools::target_directory()?.join("drives-plots");
    let measured = drives(&plots)?;
    is_current(DRIVES, &with_part(DRIVES, &read(DRIVES)?, "drives", &measured)?)?;
    let (old, new) = (files(&repository::root().join(PLOTS))?, files(&plots)?);
    for name in old.keys().chain(new.keys()) {
        if old.get(name) != new.get(name) {
            bail!("{PLOTS}/{name} is not what `hoistway drives` draws: run cargo xtask pages write");
        }
    }
    println!("{PLOTS} is current");
    Ok(())
}

/// Writes the parts on the repository's own data, and that on the whole recordings of decisions if a folder of them is named.
pub fn write(recordings: Option<&str>) -> Result<()> {
    let mut page = with_part(CONFORMANCE, &read(CONFORMANCE)?, "testdata", &conform(Path::new(TEST_DATA))?)?;
    if let Some(folder) = recordings {
        page = with_part(CONFORMANCE, &page, "recordings", &conform(Path::new(folder))?)?;
    }
    put(CONFORMANCE, &page)?;
    let measured = drives(&repository::root().join(PLOTS))?;
    put(DRIVES, &with_part(DRIVES, &read(DRIVES)?, "drives", &measured)?)
}

fn is_current(page: &str, made: &str) -> Result<()> {
    if let Some((line, old, new)) = first_difference(&read(page)?, made) {
        bail!(
            "{page}:{line} is not what is found now: run cargo xtask pages write\n  is         {old}\n  should be  {new}"
        );
    }
    println!("{page} is current");
    Ok(())
}

fn put(page: &str, text: &str) -> Result<()> {
    fs::write(repository::root().join(page), text).with_context(|| format!("cannot write {page}"))?;
    println!("wrote {page}");
    Ok(())
}

fn read(page: &str) -> Result<String> {
    fs::read_to_string(repository::root().join(page)).with_context(|| format!("cannot read {page}"))
}

/// The files of a folder by name.
fn files(folder: &Path) -> Result<BTreeMap<String, String>> {
    let listed = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), text))
    };
    listed.map(file).collect()
}

/// What `hoistway drives --markdown` prints; its plots are all that is in `plots` then.
fn drives(plots: &Path) -> Result<String> {
    if plots.exists() {
        fs::remove_dir_all(plots).with_context(|| format!("cannot empty {}", plots.display()))?;
    }
    fs::create_dir_all(plots).with_context(|| format!("cannot make {}", plots.display()))?;
    let program = hoistway()?;
    let mut command = Command::new(&program);
    command.args(["drives", "--markdown"]).arg(repository::root().join(RECORDINGS)).arg("--plots").arg(plots);
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.success() {
        bail!("hoistway drives --markdown: {}", output.status);
    }
    String::from_utf8(output.stdout).context("what hoistway drives prints")
}

/// Writes docs/reproduced.md and its pictures: all published results, run by a program that is built for speed.
pub fn write_reproduced() -> Result<()> {
    tools::run(cargo().args([
        "run",
        "--release",
        "--quiet",
        "--package",
        "hoistway-cli",
        "--",
        "reproduce",
        "--page",
        "docs",
    ]))
}

/// The program, built.
fn hoistway() -> Result<PathBuf> {
    tools::run(cargo().args(["build", "--quiet", "--package", "hoistway-cli"]))?;
    Ok(tools::target_directory()?.join("debug/hoistway"))
}

/// What `hoistway conform --markdown` prints for the decision files in a folder.
fn conform(folder: &Path) -> Result<String> {
    let folder = repository::root().join(folder);
    let listed = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = listed.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.to_string_lossy().ends_with(".jsonl.gz"));
    // By name without its endings, so that a set stands before those that are named after it.
    files.sort_by_key(|file| file.to_string_lossy().trim_end_matches(".jsonl.gz").to_owned());
    if files.is_empty() {
        bail!("no decision files (.jsonl.gz) in {}", folder.display());
    }
    let program = hoistway()?;
    let output = Command::new(&program)
        .args(["conform", "--markdown"])
        .args(&files)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.code().is_some_and(|code| TOLD.contains(&code)) {
        bail!("hoistway conform --markdown: {}", output.status);
    }
    String::from_utf8(output.stdout).context("what hoistway conform prints")
}

/// Puts parts into a page, each between its comments.
pub fn put_parts(file: &str, parts: &[(&str, String)]) -> Result<()> {
    let mut page = read(file)?;
    for (name, part) in parts {
        page = with_part(file, &page, name, part)?;
    }
    put(file, &page)
}

/// The page with a part replaced: what stands between the comments `begin: NAME` and `end: NAME`.
fn with_part(file: &str, page: &str, name: &str, part: &str) -> Result<String> {
    let missing = || format!("{file} has no `<!-- begin: {name}` with an `<!-- end: {name} -->` behind it");
    let begin = page.find(&format!("<!-- begin: {name}")).with_context(missing)?;
    let start = page.get(begin..).and_then(|rest| rest.find("-->")).map(|at| begin + at + 3).with_context(missing)?;
    let end = page.find(&format!("<!-- end: {name} -->")).filter(|end| *end >= start).with_context(missing)?;
    Ok(format!("{}\n\n{}\n\n{}", &page[..start], part.trim(), &page[end..]))
}

/// The first line in which two texts differ, from 1, and what either has there.
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
        let made = with_part("a.md", EXAMPLE, "x", "new\n").expect("it has the comments");
        assert_eq!(made, "# A\n\n<!-- begin: x, made by y -->\n\nnew\n\n<!-- end: x -->\nrest\n");
        assert_eq!(with_part("a.md", &made, "x", "new").expect("still"), made, "once more changes nothing");
        assert!(with_part("a.md", EXAMPLE, "z", "").is_err());
    }

    #[test]
    fn the_first_difference_is_told_with_its_line() {
        assert_eq!(first_difference("a\nb", "a\nb"), None);
        assert_eq!(first_difference("a\nb\nd", "a\nc"), Some((2, "b", "c")));
        assert_eq!(first_difference("a", "a\nc"), Some((2, "(nothing)", "c")));
    }
}
