//! `hoistway man`: manual pages from the declaration of the command line.

mod inline;
mod markdown;

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};

use crate::cli::{Cli, ManArgs};
use crate::failure::Exit;
use crate::output::Out;

/// Prints the page of the whole program, or writes the pages of all commands into a folder.
pub fn run(args: &ManArgs, out: &mut Out) -> Result<Exit> {
    if args.markdown {
        out.bytes(markdown::pages(Cli::command()).as_bytes())?;
        return Ok(Exit::Success);
    }
    let mut command = Cli::command();
    command.build();
    let mut usages = BTreeMap::new();
    find_usages(&mut command, &mut usages);
    let usage = |page: &str| usages.get(page).map_or("", String::as_str);
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        let name = command.get_name().to_owned();
        clap_mangen::Man::new(command).render(&mut page)?;
        out.bytes(adapted(&String::from_utf8(page)?, usage(&name)).as_bytes())?;
        return Ok(Exit::Success);
    };
    fs::create_dir_all(folder).with_context(|| format!("{}: the folder cannot be made", folder.display()))?;
    let drafts = tempfile::tempdir().context("a temporary folder cannot be made")?;
    clap_mangen::generate_to(command, drafts.path()).context("the pages cannot be made")?;
    for draft in fs::read_dir(drafts.path())? {
        let draft = draft?;
        let to = folder.join(draft.file_name());
        let name = to.file_stem().unwrap_or_default().to_string_lossy();
        fs::write(&to, adapted(&fs::read_to_string(draft.path())?, usage(&name)))
            .with_context(|| format!("{}: the page cannot be written", to.display()))?;
    }
    out.line(format_args!("wrote the manual pages into {}", folder.display()))?;
    Ok(Exit::Success)
}

/// Collects the usage line of each command by the name of its page.
fn find_usages(command: &mut Command, found: &mut BTreeMap<String, String>) {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let usage = command.render_usage().to_string();
    let lines = usage.lines().map(|line| line.trim_start_matches("Usage:").trim()).collect::<Vec<_>>();
    found.insert(name, lines.join("\n"));
    command.get_subcommands_mut().for_each(|command| find_usages(command, found));
}

/// Adapts a page of `clap_mangen`: indented lines, such as examples, are not filled; the section
/// behind the options is named NOTES, as in other pages; the synopsis is the usage line of the
/// help.
fn adapted(page: &str, usage: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut is_kept = false;
    let mut is_synopsis = false;
    for line in page.lines() {
        if line.starts_with(".SH ") {
            is_synopsis = line == ".SH SYNOPSIS" && !usage.is_empty();
            if is_synopsis {
                let lines = usage.replace('\\', "\\e").replace('-', "\\-").replace('\n', "\n.br\n");
                text.push_str(&format!("{line}\n{lines}\n"));
            }
        }
        if is_synopsis {
            continue;
        }
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
        assert_eq!(adapted(page, ""), expected);
    }

    #[test]
    fn the_synopsis_is_the_usage_line_of_the_help() {
        let page = ".SH SYNOPSIS\n\\fBhoistway tar\\fR [\\fB\\-f\\fR] [\\fIPATH\\fR]\n.SH DESCRIPTION\nIt archives.\n";
        let expected = ".SH SYNOPSIS\nhoistway tar [OPTIONS] [PATH]... \\-\\-run\n.SH DESCRIPTION\nIt archives.\n";
        assert_eq!(adapted(page, "hoistway tar [OPTIONS] [PATH]... --run"), expected);
        let mut usages = BTreeMap::new();
        let mut command = Cli::command();
        command.build();
        find_usages(&mut command, &mut usages);
        assert_eq!(usages["hoistway-tar"], "hoistway tar [OPTIONS] [PATH]...");
    }
}
