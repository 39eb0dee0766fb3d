//! Pages of figures that are measured part by part: where that is done, and what becomes of the parts.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::goals::{Goal, goal_rows, judge};
use crate::{pages, server, tools};

/// A part of a page, and the goals in it.
pub struct Part {
    pub text: String,
    pub goals: Vec<Goal>,
}

/// Writes parts, by their names, into a page, or prints them; an error if a goal is missed or was not measured.
pub fn tell(page: &str, parts: Vec<(&str, Part)>, write: bool) -> Result<()> {
    let (mut texts, mut goals) = (Vec::new(), Vec::new());
    for (name, part) in parts {
        let mut rows = String::new();
        goal_rows(&mut rows, &part.goals);
        texts.push((name, format!("{}\n{rows}", part.text)));
        goals.extend(part.goals);
    }
    if write {
        pages::put_parts(page, &texts)?;
    } else {
        texts.iter().for_each(|(_, text)| println!("{text}"));
    }
    judge(&goals)
}

/// The program that is measured: one that was named, or the one that is shipped, built now.
pub fn program(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(program) => program.canonicalize().with_context(|| program.display().to_string()),
        None => server::build(),
    }
}

/// The folder for images, made if it is not there: one that was named, or one of this name where cargo builds.
pub fn folder(named: Option<&Path>, usual: &str) -> Result<PathBuf> {
    let folder = match named {
        Some(folder) => folder.to_owned(),
        None => tools::target_directory()?.join(usual),
    };
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.canonicalize()?)
}
