//! Where the repository is and what is in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A file of the repository, by its path from the root.
pub struct File {
    /// The path from the root, with slashes.
    pub path: String,
    /// The contents.
    pub text: String,
}

/// All text files that belong to the repository: those that git tracks, and new ones that it does
/// not ignore.
pub fn text_files() -> Result<Vec<File>> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root())
        .output()
        .context("git, which lists the repository's files")?;
    if !listed.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim());
    }
    let mut files = Vec::new();
    for path in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|path| !path.is_empty()) {
        // A file that was deleted and not yet committed is listed too; one that is not text has no
        // words.
        if let Ok(bytes) = std::fs::read(root().join(path))
            && let Ok(text) = String::from_utf8(bytes)
        {
            files.push(File { path: path.to_owned(), text });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    Ok(files)
}

/// The Rust files below a directory, given by its path from the root.
pub fn rust_files(directory: &str) -> Result<Vec<File>> {
    let mut files: Vec<File> = Vec::new();
    let mut open = vec![PathBuf::from(directory)];
    while let Some(directory) = open.pop() {
        let entries = std::fs::read_dir(root().join(&directory)).with_context(|| format!("{}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let path = directory.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(entry.path()).with_context(|| format!("{}", path.display()))?;
                files.push(File { path: path.to_string_lossy().replace('\\', "/"), text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}
