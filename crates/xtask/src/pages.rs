//! Generated parts of pages: docs/conformance.md has the counts of recorded decisions, which `hoistway conform --markdown` prints.
//!
//! The part on the test data is made anew by every check and must be what the page has. That on the whole recordings, which are
//! not in the repository, is made by whoever has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::repository;
use crate::tools::{self, cargo};

const PAGE: &str = "docs/conformance.md";
const TEST_DATA: &str = "testdata/decisions";
/// Exit codes of `hoistway conform`: all is identical; something differs, which the page tells.
const TOLD: [i32; 2] = [0, 3];

/// Checks that the page is current.
pub fn check() -> Result<()> {
    let page = read()?;
    let made = with_part(&page, "testdata", &conform(Path::new(TEST_DATA))?)?;
    if let Some((line, old, new)) = first_difference(&page, &made) {
        bail!(
            "{PAGE}:{line} is not what `hoistway conform` finds: run cargo xtask pages write\n  is         {old}\n  should be  {new}"
        );
    }
    println!("{PAGE} is current");
    Ok(())
}

/// Writes the part on the test data, and that on the recordings if a folder of them is named.
pub fn write(recordings: Option<&str>) -> Result<()> {
    let mut page = with_part(&read()?, "testdata", &conform(Path::new(TEST_DATA))?)?;
    if let Some(folder) = recordings {
        page = with_part(&page, "recordings", &conform(Path::new(folder))?)?;
    }
    fs::write(repository::root().join(PAGE), page).with_context(|| format!("cannot write {PAGE}"))?;
    println!("wrote {PAGE}");
    Ok(())
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

fn read() -> Result<String> {
    fs::read_to_string(repository::root().join(PAGE)).with_context(|| format!("cannot read {PAGE}"))
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
    tools::run(cargo().args(["build", "--quiet", "--package", "hoistway-cli"]))?;
    let program = tools::target_directory()?.join("debug/hoistway");
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

/// The page with a part replaced: what stands between the comments `begin: NAME` and `end: NAME`.
fn with_part(page: &str, name: &str, part: &str) -> Result<String> {
    let missing = || format!("{PAGE} has no `<!-- begin: {name}` with an `<!-- end: {name} -->` behind it");
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
        let made = with_part(EXAMPLE, "x", "new\n").expect("it has the comments");
        assert_eq!(made, "# A\n\n<!-- begin: x, made by y -->\n\nnew\n\n<!-- end: x -->\nrest\n");
        assert_eq!(with_part(&made, "x", "new").expect("still"), made, "once more changes nothing");
        assert!(with_part(EXAMPLE, "z", "").is_err());
    }

    #[test]
    fn the_first_difference_is_told_with_its_line() {
        assert_eq!(first_difference("a\nb", "a\nb"), None);
        assert_eq!(first_difference("a\nb\nd", "a\nc"), Some((2, "b", "c")));
        assert_eq!(first_difference("a", "a\nc"), Some((2, "(nothing)", "c")));
    }
}
