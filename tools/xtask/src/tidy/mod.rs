//! Tidiness: lengths of functions and files, words in names and comments, references that lead
//! nowhere, the version of the kernel module.

mod kernel_version;
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
    /// Print the number of findings of each crate and rule on language
    #[arg(long)]
    count: bool,
    /// List the findings on language below this path from the root, for example `crates/core`
    #[arg(long, value_name = "PATH", conflicts_with = "count")]
    list: Option<String>,
}

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
    let findings: Vec<String> = files.iter().flat_map(of_file).collect();
    if !findings.is_empty() {
        bail!("{} findings:\n  {}", findings.len(), findings.join("\n  "));
    }
    println!("tidy: {} files", files.len());
    Ok(())
}

/// The findings in a file.
fn of_file(file: &File) -> Vec<String> {
    let mut findings = places::findings(file);
    // This crate has the version of the workspace.
    findings.extend(kernel_version::findings(file, env!("CARGO_PKG_VERSION")));
    if file.path.ends_with(".rs") {
        findings.extend(lengths::long_functions(file));
        findings.extend(lengths::long_file(file));
        findings.extend(language::findings(file).iter().map(ToString::to_string));
    }
    if file.path.ends_with("Cargo.lock") {
        findings.extend(references::foreign_sources(file));
    }
    if file.path.ends_with(".md") {
        findings.extend(references::dead_links(file, &|target: &Path| repository::root().join(target).exists()));
    }
    findings
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
