//! The comparison of two builds: the repository is copied into two directories, each is
//! built from nothing, and all packages must be the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use hoistway_workspace::cargo::Workspace;
use hoistway_workspace::programs;

use crate::{Options, Source, tree};

/// Builds the packages in two copies of the repository and keeps those of the first.
pub(crate) fn run(source: &Source, options: &Options, to: &Path) -> Result<()> {
    let base = source.workspace.target_directory.join("twice");
    // The second directory has a longer name, so that lengths differ too.
    let [first, second] = ["first", "second-directory"].map(|name| base.join(name));
    for directory in [&first, &second] {
        println!("== {}", directory.display());
        let root = directory.join("hoistway");
        tree::renew(directory)?;
        let mut clone = Command::new("git");
        clone.args(["clone", "--quiet", "--local"]).arg(source.root().canonicalize()?).arg(&root);
        programs::run(&mut clone)?;
        let workspace = Workspace { root, target_directory: directory.join("target") };
        share_tools(source, &workspace)?;
        crate::build(&Source::of(workspace)?, options, &directory.join("dist"))?;
        // Both together are large.
        fs::remove_dir_all(directory.join("target"))?;
    }
    let different = differences(&first.join("dist"), &second.join("dist"))?;
    if !different.is_empty() {
        bail!("the packages of two builds differ: {}", different.join(", "));
    }
    crate::empty(to)?;
    for file in tree::files_below(&first.join("dist"))? {
        tree::copy(&first.join("dist").join(&file), &to.join(&file), 0o644)?;
    }
    println!("the two builds are the same, byte for byte");
    Ok(())
}

/// Uses the environment with Zig and maturin of the repository, which is large.
fn share_tools(source: &Source, workspace: &Workspace) -> Result<()> {
    crate::binaries::tools(source)?;
    let name = "packages-tools";
    let tools = std::path::absolute(source.workspace.target_directory.join(name))?;
    tree::link(&tools.to_string_lossy(), &workspace.target_directory.join(name))
}

/// The names of files that only one of two directories has, or that differ.
fn differences(first: &Path, second: &Path) -> Result<Vec<String>> {
    let mut names: Vec<PathBuf> = tree::files_below(first)?;
    names.extend(tree::files_below(second)?);
    names.sort();
    names.dedup();
    let is_same = |name: &PathBuf| match (fs::read(first.join(name)), fs::read(second.join(name))) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    };
    if names.is_empty() {
        return Err(anyhow::anyhow!("no package was built")).context("two builds");
    }
    Ok(names.iter().filter(|name| !is_same(name)).map(|name| name.display().to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_and_a_changed_file_differ() {
        let directory = tempfile::tempdir().expect("a directory");
        let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
        for (root, file, text) in
            [(&one, "a", "1"), (&other, "a", "1"), (&one, "b", "1"), (&other, "b", "2"), (&one, "c", "")]
        {
            tree::write(&root.join(file), text, 0o644).expect("a file");
        }
        assert_eq!(differences(&one, &other).expect("readable"), ["b", "c"]);
    }
}
