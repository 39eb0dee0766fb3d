//! The reference of the commands as Markdown, from the declaration of the command line: for the
//! site, whose generator makes a page of each heading of the first level.

use clap::{Arg, Command};

use hoistway_report::marked;

/// Writes the pages of the program and of all its visible commands, one after the other.
pub fn pages(mut command: Command) -> String {
    command.build();
    let mut text = page(&command);
    visible(&command).for_each(|inner| text.push_str(&page(inner)));
    text
}

/// The page of a command with its subcommands; that of the program lists the commands only.
fn page(command: &Command) -> String {
    let name = name(command);
    let mut text = format!("# `{name}`\n\nReference: {}.\n\n", marked(about(command).trim_end_matches('.')));
    text.push_str(&description(command, 2));
    if name == "hoistway" {
        text.push_str("## Commands\n\n");
        for inner in visible(command) {
            let name = self::name(inner);
            text.push_str(&format!("- [`{name}`](#{}): {}\n", name.replace(' ', "-"), marked(&about(inner))));
        }
        text.push('\n');
        return text;
    }
    visible(command).for_each(|inner| text.push_str(&section(inner, 2)));
    text
}

/// The section of a subcommand, and the sections of those below it.
fn section(command: &Command, level: usize) -> String {
    let about = about(command);
    let mut text = format!("{} `{}`\n\n{}.\n\n", "#".repeat(level), name(command), marked(about.trim_end_matches('.')));
    text.push_str(&description(command, level + 1));
    visible(command).for_each(|inner| text.push_str(&section(inner, level + 1)));
    text
}

fn name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or(command.get_name())
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
}

/// Usage, long description, arguments, options and notes of a command. Its parts have headings of
/// a level.
fn description(command: &Command, level: usize) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.lines().map(|line| line.trim_start_matches("Usage:").trim()).collect::<Vec<_>>().join("\n");
    let mut text = format!("```text\n{usage}\n```\n\n");
    if let Some(long) = command.get_long_about().map(ToString::to_string) {
        let long = long.strip_prefix(&about(command)).unwrap_or(&long).trim_start_matches('.').trim();
        text.push_str(&prose(long));
    }
    let mut list = |title: &str, arguments: Vec<&Arg>| {
        if !arguments.is_empty() {
            text.push_str(&heading(title, level));
            arguments.iter().for_each(|argument| text.push_str(&item(command, argument)));
            text.push('\n');
        }
    };
    list("Arguments", command.get_positionals().filter(|argument| !argument.is_hide_set()).collect());
    let options = || command.get_opts().chain(flags(command)).filter(|argument| !argument.is_hide_set());
    list("Options", options().filter(|argument| argument.get_help_heading().is_none()).collect());
    let mut groups: Vec<&str> = Vec::new();
    for group in options().filter_map(Arg::get_help_heading) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        list(group, options().filter(|argument| argument.get_help_heading() == Some(group)).collect());
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        text.push_str(&notes(&after.to_string(), level));
    }
    text
}

fn heading(title: &str, level: usize) -> String {
    format!("{} {title}\n\n", "#".repeat(level))
}

/// The options without values.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let named = command.get_arguments().filter(|argument| !argument.is_positional());
    named.filter(|argument| {
        !argument.get_action().takes_values() && argument.get_id() != "help" && argument.get_id() != "version"
    })
}

/// An argument with its anchor, values, default and help.
fn item(command: &Command, argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default().iter().map(|name| name.as_str());
    let values = if argument.get_action().takes_values() { values.collect::<Vec<_>>() } else { Vec::new() };
    let mut names: Vec<String> = Vec::new();
    names.extend(argument.get_short().map(|short| format!("-{short}")));
    names.extend(argument.get_long().map(|long| format!("--{long}")));
    let shown = match (names.is_empty(), values.is_empty()) {
        (true, _) => values.join(" "),
        (false, true) => names.join(", "),
        (false, false) => format!("{} {}", names.join(", "), values.join(" ")),
    };
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.split("\n\n").map(|part| marked(&part.split_whitespace().collect::<Vec<_>>().join(" ")));
    let help = help.collect::<Vec<_>>().join(" ");
    let mut text = format!("- <a id=\"{}\"></a>`{shown}`: {help}", anchor(command, argument));
    let possible = argument.get_possible_values();
    let possible: Vec<&str> =
        possible.iter().filter(|value| !value.is_hide_set()).map(clap::builder::PossibleValue::get_name).collect();
    let is_hidden = argument.is_hide_possible_values_set() || !argument.get_action().takes_values();
    if !possible.is_empty() && !is_hidden {
        text.push_str(&format!(
            ". Values: {}",
            possible.iter().map(|v| format!("`{v}`")).collect::<Vec<_>>().join(", ")
        ));
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = defaults.join(" ");
    if !default.is_empty() && argument.get_action().takes_values() && !argument.is_hide_default_value_set() {
        text.push_str(&format!(". Default: `{default}`"));
    }
    if let Some(aliases) = argument.get_visible_aliases() {
        let aliases: Vec<_> = aliases.iter().map(|alias| format!("`--{alias}`")).collect();
        text.push_str(&format!(". The same: {}", aliases.join(", ")));
    }
    text.push('\n');
    text
}

/// The anchor of an argument, unique among all commands: `trace-view--output` for the option of
/// `hoistway trace view`.
fn anchor(command: &Command, argument: &Arg) -> String {
    let name = name(command).replace(' ', "-");
    let command = name.strip_prefix("hoistway-").unwrap_or(&name);
    match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => format!("{command}--{long}"),
        (None, Some(short)) => format!("{command}--{short}"),
        (None, None) => format!("{command}--{}", argument.get_id()),
    }
}

/// The text after the options: examples, notes and exit codes, each below a heading.
fn notes(help: &str, level: usize) -> String {
    let mut sections: Vec<(&str, String)> = Vec::new();
    for line in help.trim().lines() {
        let last = sections.last().map_or("", |(title, _)| *title);
        let (title, rest) = match line.split_once(':') {
            Some(("Examples", "")) => ("Examples", ""),
            Some((title @ "Exit codes", rest)) => (title, rest.trim()),
            _ if line.is_empty() || line.starts_with("  ") => (last, line),
            _ => ("Notes", line),
        };
        if title != last {
            sections.push((title, String::new()));
        }
        if let Some((_, text)) = sections.last_mut() {
            text.push_str(rest);
            text.push('\n');
        }
    }
    let sections =
        sections.iter().map(|(title, text)| heading(title, level) + prose(text.trim_matches('\n')).trim_start());
    sections.collect()
}

/// Help in Markdown: indented lines are code.
fn prose(help: &str) -> String {
    let mut text = String::new();
    let mut in_code = false;
    for line in help.lines() {
        let is_code = line.starts_with("  ") || (in_code && line.is_empty());
        if is_code != in_code {
            text.push_str(if is_code { "\n```text\n" } else { "```\n\n" });
            in_code = is_code;
        }
        if is_code {
            text.push_str(line.strip_prefix("  ").unwrap_or(line));
        } else {
            text.push_str(&marked(line));
        }
        text.push('\n');
    }
    if in_code {
        text.push_str("```\n");
    }
    text.push('\n');
    // A blank line before the end of a block belongs after it; one is enough before a block.
    text.replace("\n\n```\n", "\n```\n").replace("\n\n\n```text", "\n\n```text")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// The lines outside of code.
    fn lines(text: &str) -> impl Iterator<Item = &str> {
        text.split("```").step_by(2).flat_map(str::lines)
    }

    #[test]
    fn every_visible_command_has_a_page_with_its_options() {
        let text = pages(Cli::command());
        for name in ["", " compare", " serve", " trace", " tar"] {
            assert!(text.contains(&format!("# `hoistway{name}`\n\nReference: ")), "{name}");
        }
        assert!(text.contains("## `hoistway trace view`"), "subcommands are sections");
        assert!(text.contains("- <a id=\"compare--drive\"></a>`--drive "), "options are items with anchors");
        assert!(
            text.contains("- [`hoistway compare`](#hoistway-compare): Simulate a workload"),
            "the commands are links"
        );
        assert!(!text.contains("Default: ``"), "an empty default is left out");
    }

    #[test]
    fn groups_of_options_and_notes_are_headings() {
        let text = pages(Cli::command());
        let (_, serve) = text.split_once("\n# `hoistway serve`\n").expect("the page of serve");
        let serve = serve.split("\n# ").next().expect("its text");
        let found: Vec<_> = lines(serve).filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(found, ["Options", "Listening", "Monitoring", "Other modes", "Examples", "Notes", "Exit codes"]);
        let (_, info) = text.split_once("\n## `hoistway trace info`\n").expect("a subcommand");
        assert_eq!(info.lines().find_map(|line| line.strip_prefix("### ")), Some("Arguments"));
        assert!(lines(&text).all(|line| !line.starts_with("**")), "a group is a paragraph");
    }

    #[test]
    fn anchors_are_unique_and_the_links_of_the_program_lead_to_commands() {
        let text = pages(Cli::command());
        let anchors =
            |start| lines(&text).filter_map(move |line: &str| line.strip_prefix(start)?.split(['"', '`']).next());
        let mut seen = BTreeSet::new();
        assert!(anchors("- <a id=\"").all(|anchor| seen.insert(anchor)), "an anchor is used twice");
        let titles: BTreeSet<_> = anchors("# `").map(|title| title.replace(' ', "-")).collect();
        for linked in text.split("](#").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(titles.contains(linked), "{linked}");
        }
    }

    #[test]
    fn links_lead_to_files_of_the_repository() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let text = pages(Cli::command());
        let links: BTreeSet<_> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(links.contains("docs/hosts.md"), "{links:?}");
        for link in links.into_iter().filter(|link| !link.starts_with('#')) {
            assert!(!root.join("docs").exists() || root.join(link).exists(), "{link}");
        }
    }

    #[test]
    fn options_in_texts_are_code() {
        for line in lines(&pages(Cli::command())) {
            let text: String = line.split('`').step_by(2).collect();
            let option = text.split([' ', '(']).find(|word| word.starts_with("--") && word.len() > 2);
            assert_eq!(option, None, "{line}");
        }
    }

    #[test]
    fn examples_notes_and_exit_codes_are_sections() {
        let help = "Examples:\n  one *\n\nUse a_b.\n\nExit codes: 0 success.";
        let expected =
            "## Examples\n\n```text\none *\n```\n\n## Notes\n\nUse `a_b`.\n\n## Exit codes\n\n0 success.\n\n";
        assert_eq!(notes(help, 2), expected);
    }

    #[test]
    fn indented_lines_are_code() {
        assert_eq!(prose("Use it.\n  one *\n\nEnd."), "Use it.\n\n```text\none *\n```\n\nEnd.\n\n");
        assert_eq!(prose("A file:\n\n  one"), "A file:\n\n```text\none\n```\n\n");
    }
}
