//! `hoistway man`: manual pages from the declaration of the command line.

mod markdown;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use clap::{Command, CommandFactory};
use hoistway_report::ManualPage;

use crate::cli::{Cli, ManArgs};
use crate::exit_status;
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
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok();
    let date = date(epoch.as_deref(), env!("HOISTWAY_VERSION"));
    let adapted = |draft: &str, name: &str| completed(draft, name, usage(name), &date);
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        let name = command.get_name().to_owned();
        clap_mangen::Man::new(command).render(&mut page)?;
        out.bytes(adapted(&String::from_utf8(page)?, &name).as_bytes())?;
        return Ok(Exit::Success);
    };
    fs::create_dir_all(folder).with_context(|| format!("{}: the folder cannot be made", folder.display()))?;
    let drafts = tempfile::tempdir().context("a temporary folder cannot be made")?;
    clap_mangen::generate_to(command, drafts.path()).context("the pages cannot be made")?;
    for draft in fs::read_dir(drafts.path())? {
        let draft = draft?;
        let to = folder.join(draft.file_name());
        let name = to.file_stem().unwrap_or_default().to_string_lossy();
        fs::write(&to, adapted(&fs::read_to_string(draft.path())?, &name))
            .with_context(|| format!("{}: the page cannot be written", to.display()))?;
    }
    out.line(format_args!("wrote the manual pages into {}", folder.display()))?;
    Ok(Exit::Success)
}

/// Completes the draft of a page with this name from the tables.
fn completed(draft: &str, name: &str, usage: &str, date: &str) -> String {
    let page = ManualPage {
        name,
        date,
        version: concat!("hoistway ", env!("CARGO_PKG_VERSION")),
        usage,
        exit_statuses: exit_status::of(name),
        exit_paragraph: exit_status::PARAGRAPH,
        files: tables::files(name).collect(),
        related: tables::related(name),
        document_directory: "/usr/share/doc/hoistway/docs",
        documents: tables::documents(name).map(|document| format!("{document}.md")).collect(),
    };
    page.adapted(draft)
}

/// Collects the usage line of each command by the name of its page.
fn find_usages(command: &mut Command, found: &mut BTreeMap<String, String>) {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let usage = command.render_usage().to_string();
    let lines = usage.lines().map(|line| line.trim_start_matches("Usage:").trim()).collect::<Vec<_>>();
    found.insert(name, lines.join("\n"));
    command.get_subcommands_mut().for_each(|command| find_usages(command, found));
}

/// Returns the date of the pages in UTC: that of `SOURCE_DATE_EPOCH`, else of the commit of the
/// program, else of today.
fn date(epoch: Option<&str>, version: &str) -> String {
    let epoch: Option<DateTime<Utc>> =
        epoch.and_then(|seconds| DateTime::from_timestamp(seconds.trim().parse().ok()?, 0));
    let commit = version.strip_suffix(')').and_then(|version| version.rsplit(' ').next());
    match (epoch, commit) {
        (None, Some(commit)) => commit.to_owned(),
        (epoch, _) => epoch.unwrap_or_else(|| SystemTime::now().into()).format("%Y-%m-%d").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_dated_by_the_epoch_then_by_the_commit() {
        assert_eq!(date(Some("0"), ""), "1970-01-01");
        assert_eq!(date(Some("951782400"), "0.1.0 (1af454ec0000 2026-11-27)"), "2000-02-29");
        assert_eq!(date(Some("1795737600"), ""), "2026-11-27");
        assert_eq!(date(Some("13574649599"), ""), "2400-02-29");
        assert_eq!(date(None, "0.1.0 (1af454ec0000 2026-11-27)"), "2026-11-27");
        assert!(date(None, "0.1.0").starts_with("20"), "today");
    }

    #[test]
    fn usage_lines_are_found_by_the_name_of_the_page() {
        let mut usages = BTreeMap::new();
        let mut command = Cli::command();
        command.build();
        find_usages(&mut command, &mut usages);
        assert_eq!(usages["hoistway-tar"], "hoistway tar [OPTIONS] [PATH]...");
    }
}
