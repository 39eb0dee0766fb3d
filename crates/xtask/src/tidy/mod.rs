//! Tidiness: lengths of functions and files, words in names and comments, references that lead
//! nowhere.

mod language;
mod lengths;
mod places;
mod references;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};

use crate::repository::{self, File};

/// Options of `cargo xtask tidy`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Print the number of findings of each crate and rule on language, excepted crates included
    #[arg(long)]
    count: bool,
    /// List the findings on language below this path from the root, for example `crates/core`,
    /// excepted crates included
    #[arg(long, value_name = "PATH", conflicts_with = "count")]
    list: Option<String>,
}

/// Directories whose names and comments are not yet as the rules on language want them. The list
/// only shrinks.
const LANGUAGE_EXCEPTIONS: &[&str] = &[];

/// Runs the task.
pub fn run(options: &Options) -> Result<()> {
    if options.count {
        return count();
    }
    if let Some(path) = &options.list {
        let files = repository::text_files()?;
        let listed = files.iter().filter(|file| file.path.starts_with(path.as_str())).flat_map(language::findings);
        listed.for_each(|finding| println!("{finding}"));
        return Ok(());
    }
    check()
}

/// Checks all files of the repository.
pub fn check() -> Result<()> {
    let files = repository::text_files()?;
    let mut findings: Vec<String> = files.iter().flat_map(of_file).collect();
    findings.extend(unneeded_exceptions(&files));
    if !findings.is_empty() {
        bail!("{} findings:\n  {}", findings.len(), findings.join("\n  "));
    }
    println!("tidy: {} files", files.len());
    Ok(())
}

/// The findings in a file.
fn of_file(file: &File) -> Vec<String> {
    let mut findings = places::findings(file);
    if file.path.ends_with(".rs") {
        findings.extend(lengths::long_functions(file));
        findings.extend(lengths::long_file(file));
        if !LANGUAGE_EXCEPTIONS.iter().any(|directory| file.path.starts_with(directory)) {
            findings.extend(language::findings(file).iter().map(ToString::to_string));
        }
    }
    if file.path.ends_with("Cargo.lock") {
        findings.extend(references::foreign_sources(file));
    }
    if file.path.ends_with(".md") {
        findings.extend(references::dead_links(file, &|target: &Path| repository::root().join(target).exists()));
    }
    findings
}

/// Exceptions for directories that have no findings on language any more, or no files.
fn unneeded_exceptions(files: &[File]) -> Vec<String> {
    let has_findings = |directory: &str| {
        files.iter().any(|file| file.path.starts_with(directory) && !language::findings(file).is_empty())
    };
    let unneeded = LANGUAGE_EXCEPTIONS.iter().filter(|directory| !has_findings(directory));
    unneeded
        .map(|directory| format!("{directory} has no findings: remove its exception in xtask/src/tidy/mod.rs"))
        .collect()
}

/// Prints a table: a row a crate, a column a rule.
fn count() -> Result<()> {
    let mut counts: BTreeMap<String, BTreeMap<language::Rule, usize>> = BTreeMap::new();
    for file in repository::text_files()? {
        let crate_name = file.path.split('/').take(2).collect::<Vec<_>>().join("/");
        for finding in language::findings(&file) {
            *counts.entry(crate_name.clone()).or_default().entry(finding.rule).or_default() += 1;
        }
    }
    println!("{:<18}{}", "", language::Rule::ALL.map(|rule| format!("{:>12}", rule.name())).concat());
    for (name, rules) in &counts {
        let figures = language::Rule::ALL.map(|rule| format!("{:>12}", rules.get(&rule).copied().unwrap_or(0)));
        println!("{name:<18}{}", figures.concat());
    }
    Ok(())
}
