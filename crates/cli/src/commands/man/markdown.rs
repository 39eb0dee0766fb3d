//! The reference of the commands as Markdown, from the declaration of the command line: for the
//! site, whose generator makes a page of each heading of the first level.

use clap::{Arg, Command};

/// Writes the pages of the program and of all its visible commands, one after the other.
pub fn pages(mut command: Command) -> String {
    command.build();
    let mut text = page(&command);
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
        text.push_str(&page(inner));
    }
    text
}

/// The page of a command with its subcommands; that of the program lists the commands only.
fn page(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let name = name(command);
    let mut text = format!("# `{name}`\n\nReference: {}.\n\n", escaped(about.trim_end_matches('.')));
    text.push_str(&description(command));
    if name == "hoistway" {
        text.push_str("**Commands**\n\n");
        for inner in visible(command) {
            let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("- `{}`: {}\n", self::name(inner), escaped(&about)));
        }
        text.push('\n');
        return text;
    }
    for inner in visible(command) {
        text.push_str(&section(inner, 2));
    }
    text
}

/// The section of a subcommand, and the sections of those below it.
fn section(command: &Command, level: usize) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text =
        format!("{} `{}`\n\n{}.\n\n", "#".repeat(level), name(command), escaped(about.trim_end_matches('.')));
    text.push_str(&description(command));
    for inner in visible(command) {
        text.push_str(&section(inner, level + 1));
    }
    text
}

fn name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or(command.get_name())
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
}

/// Usage, long description, arguments, options and examples of a command.
fn description(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.lines().map(|line| line.trim_start_matches("Usage:").trim()).collect::<Vec<_>>().join("\n");
    let mut text = format!("```text\n{usage}\n```\n\n");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    if let Some(long) = command.get_long_about().map(ToString::to_string) {
        let long = long.strip_prefix(&about).unwrap_or(&long).trim_start_matches('.').trim();
        text.push_str(&prose(long));
    }
    let mut list = |title: &str, arguments: Vec<&Arg>| {
        if !arguments.is_empty() {
            text.push_str(&format!("**{title}**\n\n"));
            arguments.iter().for_each(|argument| text.push_str(&item(argument)));
            text.push('\n');
        }
    };
    list("Arguments", command.get_positionals().filter(|argument| !argument.is_hide_set()).collect());
    let options = || command.get_opts().chain(flags(command)).filter(|argument| !argument.is_hide_set());
    list("Options", options().filter(|argument| argument.get_help_heading().is_none()).collect());
    let mut headings: Vec<&str> = Vec::new();
    for heading in options().filter_map(Arg::get_help_heading) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        list(heading, options().filter(|argument| argument.get_help_heading() == Some(heading)).collect());
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        text.push_str(&prose(&after.to_string()));
    }
    text
}

/// The options without values.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let named = command.get_arguments().filter(|argument| !argument.is_positional());
    named.filter(|argument| {
        !argument.get_action().takes_values() && argument.get_id() != "help" && argument.get_id() != "version"
    })
}

/// An argument with its values, default and help.
fn item(argument: &Arg) -> String {
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
    let help = help.split("\n\n").map(|part| escaped(&part.split_whitespace().collect::<Vec<_>>().join(" ")));
    let mut text = format!("- `{shown}`: {}", help.collect::<Vec<_>>().join(" "));
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
    if !defaults.is_empty() && argument.get_action().takes_values() && !argument.is_hide_default_value_set() {
        text.push_str(&format!(". Default: `{}`", defaults.join(" ")));
    }
    text.push('\n');
    text
}

/// Help in Markdown: indented lines are code, `Examples:` and the like are emphasised.
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
            text.push_str(&escaped(line));
        }
        text.push('\n');
    }
    if in_code {
        text.push_str("```\n");
    }
    text.push('\n');
    // A blank line before the end of a block belongs behind it.
    text.replace("\n\n```\n", "\n```\n")
}

/// Escapes what Markdown would take for marks, outside of code.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut in_code = false;
    for c in text.chars() {
        in_code ^= c == '`';
        if !in_code && matches!(c, '<' | '*' | '_' | '[' | ']' | '#') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_visible_command_has_a_page_with_its_options() {
        let text = pages(Cli::command());
        for name in ["", " compare", " serve", " trace", " tar"] {
            assert!(text.contains(&format!("# `hoistway{name}`\n\nReference: ")), "{name}");
        }
        assert!(text.contains("## `hoistway trace view`"), "subcommands are sections");
        assert!(text.contains("- `--drive "), "options are items");
        assert!(text.contains("- `hoistway compare`: Run a workload"), "the program's page lists the commands");
    }

    #[test]
    fn examples_are_code_and_marks_are_escaped() {
        assert_eq!(prose("Use a_b.\n  one *\n\nEnd."), "Use a\\_b.\n\n```text\none *\n```\n\nEnd.\n\n");
        assert_eq!(escaped("`a_b` <c>"), "`a_b` \\<c>");
    }
}
