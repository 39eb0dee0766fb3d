//! Sections of pages of figures: the program and the directory that are measured, and the output.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hoistway_workspace::{cargo, parts, programs};

use crate::goals::{Goal, goal_rows, judge};

/// A section of a page, and its goals.
pub struct Section {
    pub text: String,
    pub goals: Vec<Goal>,
}

/// Writes sections, by their names, into a page, or prints them. Fails if a goal is missed or was
/// not measured.
pub fn publish(page: &str, sections: Vec<(&str, Section)>, write: bool) -> Result<()> {
    let (mut texts, mut goals) = (Vec::new(), Vec::new());
    for (name, section) in sections {
        let mut rows = String::new();
        goal_rows(&mut rows, &section.goals);
        texts.push((name, format!("{}\n{rows}", section.text)));
        goals.extend(section.goals);
    }
    if write {
        parts::put(page, &texts)?;
    } else {
        texts.iter().for_each(|(_, text)| println!("{text}"));
    }
    judge(&goals)
}

/// Returns the program to measure: the named one, or the one for packages, built now.
pub fn program(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(program) => program.canonicalize().with_context(|| program.display().to_string()),
        None => cargo::packaged(),
    }
}

/// Returns the program to run simulations with: the named one, or the one of the profile `release`,
/// built now.
pub fn simulator(named: Option<&Path>) -> Result<PathBuf> {
    if named.is_some() {
        return program(named);
    }
    programs::run(cargo::command().args(["build", "--quiet", "--release", "-p", "hoistway"]))?;
    Ok(cargo::target_directory()?.join("release/hoistway"))
}

/// Creates the directory for images: the named one, or `usual` in the directory that cargo builds
/// into.
pub fn folder(named: Option<&Path>, usual: &str) -> Result<PathBuf> {
    let folder = match named {
        Some(folder) => folder.to_owned(),
        None => cargo::target_directory()?.join(usual),
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.canonicalize()?)
}
