//! `hoistway man`: manual pages, from the declaration of the command line.

use std::fs;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::cli::{Cli, ManArgs};
use crate::failure::Exit;
use crate::output::Out;

/// Prints the page of the whole program, or writes those of all commands into a folder.
pub fn run(args: &ManArgs, out: &mut Out) -> Result<Exit> {
    let command = Cli::command();
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        out.bytes(set(&String::from_utf8(page)?).as_bytes())?;
        return Ok(Exit::Success);
    };
    fs::create_dir_all(folder).with_context(|| format!("{}: the folder cannot be made", folder.display()))?;
    let drafts = tempfile::tempdir().context("a temporary folder cannot be made")?;
    clap_mangen::generate_to(command, drafts.path()).context("the pages cannot be made")?;
    for draft in fs::read_dir(drafts.path())? {
        let draft = draft?;
        let to = folder.join(draft.file_name());
        fs::write(&to, set(&fs::read_to_string(draft.path())?))
            .with_context(|| format!("{}: the page cannot be written", to.display()))?;
    }
    out.line(format_args!("wrote the manual pages into {}", folder.display()))?;
    Ok(Exit::Success)
}

/// A page whose examples keep their lines: what is indented is not filled. What stands behind the options is called notes, as other pages have it.
fn set(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut is_kept = false;
    for line in page.lines() {
        let keeps = line.starts_with("  ");
        if keeps != is_kept {
            text.push_str(if keeps { ".nf\n" } else { ".fi\n" });
            is_kept = keeps;
        }
        text.push_str(if line == ".SH EXTRA" { ".SH NOTES" } else { line });
        text.push('\n');
    }
    if is_kept {
        text.push_str(".fi\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines() {
        let page = ".SH EXTRA\nExamples:\n  one    this\n  two    that\n\nAll else is filled.\n  end";
        let expected =
            ".SH NOTES\nExamples:\n.nf\n  one    this\n  two    that\n.fi\n\nAll else is filled.\n.nf\n  end\n.fi\n";
        assert_eq!(set(page), expected);
    }
}
