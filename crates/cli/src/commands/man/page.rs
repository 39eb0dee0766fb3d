//! A manual page: the page of `clap_mangen` with a date, the usage line of the help as synopsis,
//! and sections from the tables.

use super::tables;
use crate::exit_status;

/// The longest line of the source of a page, in bytes.
const LINE_BYTES: usize = 80;

/// Properties that all pages share.
pub struct Edition {
    /// The date, as in 2026-11-27.
    pub date: String,
    /// The version of the program.
    pub version: &'static str,
}

/// A section of a page.
struct Section<'a> {
    /// The line `.SH ...`.
    heading: &'a str,
    lines: Vec<&'a str>,
}

/// Adapts a page of `clap_mangen` with this name. `usage` is the usage line of the help.
pub fn adapted(draft: &str, name: &str, usage: &str, edition: &Edition) -> String {
    let (head, sections) = split(draft);
    let mut text = String::with_capacity(draft.len() + 1024);
    for line in head {
        if line.starts_with(".TH ") {
            let (date, version) = (&edition.date, edition.version);
            text.push_str(&format!(".TH {name} 1 {date} \"hoistway {version}\" \"User Commands\"\n"));
        } else {
            push(&mut text, line);
        }
    }
    let mut extra = Vec::new();
    let mut version = Vec::new();
    for section in sections {
        match section.heading {
            ".SH EXTRA" => extra = section.lines,
            ".SH VERSION" => version = section.lines,
            ".SH SYNOPSIS" if !usage.is_empty() => {
                text.push_str(".SH SYNOPSIS\n");
                usage.lines().for_each(|line| text.push_str(&format!(".nf\n{}\n.fi\n", escaped(line))));
            }
            heading => push_section(&mut text, heading, &section.lines),
        }
    }
    let (notes, examples) = notes_and_examples(&extra);
    text.push_str(&exit_statuses(name));
    text.push_str(&files(name));
    push_section(&mut text, ".SH VERSION", &version);
    push_section(&mut text, ".SH NOTES", &notes);
    if !examples.is_empty() {
        text.push_str(".SH EXAMPLES\n.nf\n");
        examples.iter().for_each(|line| push(&mut text, &guarded(line)));
        text.push_str(".fi\n");
    }
    text.push_str(&see_also(name));
    text
}

/// Splits a page into the lines above the first section, and the sections.
fn split(draft: &str) -> (Vec<&str>, Vec<Section<'_>>) {
    let mut head = Vec::new();
    let mut sections: Vec<Section> = Vec::new();
    for line in draft.lines() {
        if line.starts_with(".SH ") {
            sections.push(Section { heading: line, lines: Vec::new() });
        } else {
            sections.last_mut().map_or(&mut head, |section| &mut section.lines).push(line);
        }
    }
    (head, sections)
}

/// Splits the text after the help into notes, and the lines of the examples. The paragraph with the
/// exit statuses is left out, because they have a section.
fn notes_and_examples<'a>(extra: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut notes = Vec::new();
    let mut examples = Vec::new();
    let mut in_examples = false;
    for line in extra {
        if *line == "Examples:" {
            in_examples = true;
        } else if let Some(line) = line.strip_prefix("  ").filter(|_| in_examples) {
            examples.push(line);
        } else {
            in_examples = false;
            if !line.starts_with(exit_status::PARAGRAPH) {
                notes.push(*line);
            }
        }
    }
    (notes, examples)
}

/// Appends a section, unless it is empty. Indented lines keep their breaks, other lines are filled.
/// Blank lines become paragraphs in notes, and vertical space between options.
fn push_section(text: &mut String, heading: &str, lines: &[&str]) {
    let blank = if heading == ".SH NOTES" { ".PP" } else { ".sp" };
    let mut is_kept = false;
    // A blank line, or a break, precedes the next text.
    let mut gap = None;
    let mut is_tag = false;
    let mut is_empty = true;
    for line in lines {
        let keeps = line.starts_with("  ");
        if keeps != is_kept && !line.is_empty() {
            text.push_str(if keeps { "" } else { ".fi\n" });
        }
        if line.is_empty() || *line == ".br" {
            gap = if line.is_empty() { Some(blank) } else { gap.or(Some(".br")) };
            continue;
        }
        if is_empty {
            push(text, heading);
            is_empty = false;
        } else if let Some(gap) = gap.filter(|_| !matches!(*line, ".TP" | ".PP" | ".RE")) {
            push(text, gap);
        }
        gap = None;
        if keeps && !is_kept {
            text.push_str(".nf\n");
        }
        is_kept = keeps;
        if keeps || is_tag || line.starts_with('.') {
            push(text, line);
        } else {
            push_wrapped(text, line);
        }
        // The tag of an item has to be one line.
        is_tag = *line == ".TP";
    }
    if is_kept {
        text.push_str(".fi\n");
    }
}

fn push(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Appends a text in lines of at most [`LINE_BYTES`], as far as its words allow.
fn push_wrapped(text: &mut String, line: &str) {
    let mut current = String::new();
    for word in line.split_whitespace() {
        if !current.is_empty() && current.len() + 1 + word.len() > LINE_BYTES {
            push(text, &guarded(&current));
            current.clear();
        }
        if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(word);
    }
    push(text, &guarded(&current));
}

/// Protects a line that would begin with a control character.
fn guarded(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

/// Escapes text for a page.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga")
}

/// An item of a list: a tag and its text.
fn item(text: &mut String, tag: &str, meaning: &str) {
    text.push_str(&format!(".TP\n{}\n", guarded(&escaped(tag))));
    push_wrapped(text, &escaped(meaning));
}

/// The section EXIT STATUS.
fn exit_statuses(name: &str) -> String {
    let mut text = ".SH \"EXIT STATUS\"\n".to_owned();
    for (status, meaning) in exit_status::of(name) {
        item(&mut text, status, &sentence(meaning));
    }
    text
}

/// Makes a sentence of a phrase. A phrase that begins with an option or a name keeps its case.
fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

/// The section FILES, empty if the command has none.
fn files(name: &str) -> String {
    let mut text = String::new();
    for (path, purpose) in tables::files(name) {
        if text.is_empty() {
            text.push_str(".SH FILES\n");
        }
        item(&mut text, path, purpose);
    }
    text
}

/// The section SEE ALSO, empty if nothing is related.
fn see_also(name: &str) -> String {
    let pages: Vec<String> =
        tables::related(name).iter().map(|(page, section)| format!(".BR {} ({section})", escaped(page))).collect();
    let mut text = String::new();
    if !pages.is_empty() {
        text.push_str(&format!(".SH \"SEE ALSO\"\n{}\n", pages.join(",\n")));
    }
    let documents: Vec<&str> = tables::documents(name).collect();
    if !documents.is_empty() {
        text.push_str(if text.is_empty() { ".SH \"SEE ALSO\"\n" } else { ".PP\n" });
        text.push_str("Documents in /usr/share/doc/hoistway/docs:\n");
        text.push_str(&format!("{}.md\n", documents.join(".md,\n")).replace('-', "\\-"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edition() -> Edition {
        Edition { date: "2026-11-27".to_owned(), version: "0.1.0" }
    }

    /// A section of a page, with its heading.
    fn section<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
        let start = page.find(&format!("\n.SH {heading}\n"))? + 1;
        let end = page[start + 1..].find("\n.SH ").map_or(page.len(), |end| start + end + 2);
        Some(&page[start..end])
    }

    #[test]
    fn the_title_has_date_and_version() {
        let page = adapted(".TH hoistway-tar 1  \"tar \" \n.SH NAME\nx", "hoistway-tar", "", &edition());
        let title = ".TH hoistway-tar 1 2026-11-27 \"hoistway 0.1.0\" \"User Commands\"\n.SH NAME\nx\n";
        assert!(page.starts_with(title), "{page}");
    }

    #[test]
    fn examples_keep_their_lines_in_a_section_of_their_own() {
        let draft = ".TH x 1\n.SH EXTRA\nFirst.\n\nExamples:\n  one    this\n  .\\-two  that\n\nAll else is filled.\n  kept\n\nExit codes: 0 success.";
        let page = adapted(draft, "hoistway-man", "", &edition());
        let notes = ".SH NOTES\nFirst.\n.PP\nAll else is filled.\n.nf\n  kept\n.fi\n";
        assert_eq!(section(&page, "NOTES"), Some(notes), "{page}");
        let examples = ".SH EXAMPLES\n.nf\none    this\n\\&.\\-two  that\n.fi\n";
        assert_eq!(section(&page, "EXAMPLES"), Some(examples), "{page}");
    }

    #[test]
    fn the_synopsis_is_the_usage_line_of_the_help() {
        let draft = ".TH x 1\n.SH SYNOPSIS\n\\fBhoistway tar\\fR [\\fB\\-f\\fR]\n.SH DESCRIPTION\nIt archives.\n";
        let page = adapted(draft, "hoistway-tar", "hoistway tar [PATH]... --run", &edition());
        let synopsis = ".SH SYNOPSIS\n.nf\nhoistway tar [PATH]... \\-\\-run\n.fi\n";
        assert_eq!(section(&page, "SYNOPSIS"), Some(synopsis));
        assert_eq!(section(&page, "DESCRIPTION"), Some(".SH DESCRIPTION\nIt archives.\n"));
    }

    #[test]
    fn sections_come_from_the_tables() {
        let page = adapted(".TH x 1\n.SH VERSION\nv1\n.SH EXTRA\nA note.", "hoistway-serve", "", &edition());
        let statuses = section(&page, "\"EXIT STATUS\"").expect("statuses");
        assert!(statuses.contains(".TP\n2\nInvalid command line or configuration.\n"), "{statuses}");
        let files = section(&page, "FILES").expect("files");
        assert!(files.contains(".TP\n/etc/hoistway.toml\nThe configuration that hoistway.service reads"), "{files}");
        let related = section(&page, "\"SEE ALSO\"").expect("references");
        assert!(related.starts_with(".SH \"SEE ALSO\"\n.BR hoistway (1),\n.BR hoistway\\-ctl (1),\n"), "{related}");
        assert!(related.ends_with("\n.BR systemd.socket (5)\n.PP\nDocuments in /usr/share/doc/hoistway/docs:\nserve.md,\nserve\\-config.md,\nserve\\-control.md,\nmonitoring.md\n"), "{related}");
        let order: Vec<&str> = page.lines().filter(|line| line.starts_with(".SH ")).collect();
        assert_eq!(order, [".SH \"EXIT STATUS\"", ".SH FILES", ".SH VERSION", ".SH NOTES", ".SH \"SEE ALSO\""]);
    }

    #[test]
    fn a_command_without_files_has_no_such_section() {
        let page = adapted(".TH x 1\n", "hoistway-man", "", &edition());
        assert_eq!(section(&page, "FILES"), None);
        assert!(section(&page, "\"EXIT STATUS\"").is_some_and(|text| text.ends_with(".TP\n130\nInterrupted.\n")));
        assert_eq!(section(&page, "\"SEE ALSO\""), Some(".SH \"SEE ALSO\"\n.BR hoistway (1)\n"));
    }

    #[test]
    fn long_lines_are_wrapped_and_blank_lines_are_space() {
        let long = "word ".repeat(17) + "'quoted' " + &"word ".repeat(3);
        let draft = format!(".TH x 1\n.SH OPTIONS\n.TP\n\\fB\\-\\-tag\\fR\n{long}\n.br\n\n.br\nValues:\n.TP\nb\nc\n");
        let page = adapted(&draft, "hoistway-man", "", &edition());
        let options = section(&page, "OPTIONS").expect("options");
        assert!(options.lines().all(|line| line.len() <= LINE_BYTES), "{options}");
        assert!(options.contains("word\n.sp\nValues:\n.TP\nb\nc\n"), "{options}");
    }
}
