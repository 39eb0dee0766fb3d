//! Tidiness: lengths of functions and files, comments, dead links, the version of the kernel
//! module.

mod kernel_version;
mod language;
mod lengths;
mod places;
mod references;

use std::path::Path;

use anyhow::{Result, bail};

use hoistway_workspace::repository::{self, File};

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
    let exists = |target: &Path| repository::root().join(target).exists();
    // This crate has the version of the workspace.
    findings.extend(kernel_version::findings(file, env!("CARGO_PKG_VERSION")));
    if file.path.ends_with(".rs") {
        findings.extend(lengths::long_functions(file));
        findings.extend(lengths::long_file(file));
        findings.extend(language::findings(file));
        findings.extend(references::dead_names(file, &exists));
    }
    if file.path.ends_with("Cargo.lock") {
        findings.extend(references::foreign_sources(file));
    }
    if file.path.ends_with(".md") {
        findings.extend(references::dead_links(file, &exists));
    }
    findings
}
