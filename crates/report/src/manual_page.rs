//! A manual page: the page of `clap_mangen` with a date, the usage line of the help as synopsis,
//! and sections from the tables.

/// The longest line of the source of a page, in bytes.
const LINE_BYTES: usize = 80;

/// The parts of a manual page that the declaration of a command line does not have.
#[derive(Clone, Debug, Default)]
pub struct ManualPage<'a> {
    /// The name of the page.
    pub name: &'a str,
    /// The date, as in 2026-11-27.
    pub date: &'a str,
    /// The program and its version.
    pub version: &'a str,
    /// The usage line of the help.
    pub usage: &'a str,
    /// The exit statuses, each with its meaning as a phrase.
    pub exit_statuses: &'a [(&'a str, &'a str)],
    /// The first words of the paragraph of the help text that lists the exit statuses. The page
    /// has a section for them, so the paragraph is left out.
    pub exit_paragraph: &'a str,
    /// The files, each with its purpose as a sentence.
    pub files: Vec<(&'a str, &'a str)>,
    /// The related pages, each with its section.
    pub related: Vec<(&'a str, u8)>,
    /// The directory of documents.
    pub document_directory: &'a str,
    /// The related documents in that directory.
    pub documents: Vec<String>,
}

/// A section of a page.
struct Section<'a> {
    /// The line `.SH ...`.
    heading: &'a str,
    lines: Vec<&'a str>,
}

impl ManualPage<'_> {
    /// Makes the page from the draft of `clap_mangen`.
    pub fn adapted(&self, draft: &str) -> String {
        let (head, sections) = split(draft);
        let mut text = String::with_capacity(draft.len() + 1024);
        for line in head {
            if line.starts_with(".TH ") {
                let (name, date, version) = (self.name, self.date, self.version);
                text.push_str(&format!(".TH {name} 1 {date} \"{version}\" \"User Commands\"\n"));
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
                ".SH SYNOPSIS" if !self.usage.is_empty() => {
                    text.push_str(".SH SYNOPSIS\n");
                    self.usage.lines().for_each(|line| text.push_str(&format!(".nf\n{}\n.fi\n", escaped(line))));
                }
                heading => push_section(&mut text, heading, &section.lines),
            }
        }
        let (notes, examples) = notes_and_examples(&extra, self.exit_paragraph);
        let statuses = self.exit_statuses.iter().map(|(status, meaning)| (*status, sentence(meaning)));
        push_list(&mut text, ".SH \"EXIT STATUS\"", statuses);
        push_list(&mut text, ".SH FILES", self.files.iter().map(|(path, purpose)| (*path, (*purpose).to_owned())));
        push_section(&mut text, ".SH VERSION", &version);
        push_section(&mut text, ".SH NOTES", &notes);
        if !examples.is_empty() {
            text.push_str(".SH EXAMPLES\n.nf\n");
            examples.iter().for_each(|line| push(&mut text, &guarded(line)));
            text.push_str(".fi\n");
        }
        self.push_references(&mut text);
        text
    }

    /// Appends the section SEE ALSO, unless nothing is related.
    fn push_references(&self, text: &mut String) {
        if self.related.is_empty() && self.documents.is_empty() {
            return;
        }
        text.push_str(".SH \"SEE ALSO\"\n");
        let pages = self.related.iter().map(|(page, section)| format!(".BR {} ({section})", escaped(page)));
        let pages: Vec<String> = pages.collect();
        if !pages.is_empty() {
            text.push_str(&format!("{}\n", pages.join(",\n")));
        }
        if !self.documents.is_empty() {
            text.push_str(if pages.is_empty() { "" } else { ".PP\n" });
            let documents = escaped(&self.documents.join(",\n"));
            text.push_str(&format!("Documents in {}:\n{documents}\n", escaped(self.document_directory)));
        }
    }
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
fn notes_and_examples<'a>(extra: &[&'a str], exit_paragraph: &str) -> (Vec<&'a str>, Vec<&'a str>) {
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
            if exit_paragraph.is_empty() || !line.starts_with(exit_paragraph) {
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

/// Appends a section with a list of tags and texts, unless the list is empty.
fn push_list<'a>(text: &mut String, heading: &str, items: impl Iterator<Item = (&'a str, String)>) {
    for (index, (tag, meaning)) in items.enumerate() {
        if index == 0 {
            push(text, heading);
        }
        text.push_str(&format!(".TP\n{}\n", guarded(&escaped(tag))));
        push_wrapped(text, &escaped(&meaning));
    }
}

/// Makes a sentence of a phrase. A phrase that begins with an option or a name keeps its case.
fn sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(['.']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with this name and usage line.
    fn page(draft: &str, name: &str, usage: &str) -> String {
        let (date, version) = ("2026-11-27", "hoistway 0.1.0");
        ManualPage { name, date, version, usage, exit_paragraph: "Exit codes:", ..ManualPage::default() }.adapted(draft)
    }

    /// A section of a page, with its heading.
    fn section<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
        let start = page.find(&format!("\n.SH {heading}\n"))? + 1;
        let end = page[start + 1..].find("\n.SH ").map_or(page.len(), |end| start + end + 2);
        Some(&page[start..end])
    }

    #[test]
    fn the_title_has_date_and_version() {
        let page = page(".TH hoistway-tar 1  \"tar \" \n.SH NAME\nx", "hoistway-tar", "");
        let title = ".TH hoistway-tar 1 2026-11-27 \"hoistway 0.1.0\" \"User Commands\"\n.SH NAME\nx\n";
        assert!(page.starts_with(title), "{page}");
    }

    #[test]
    fn examples_keep_their_lines_in_a_section_of_their_own() {
        let draft = ".TH x 1\n.SH EXTRA\nFirst.\n\nExamples:\n  one    this\n  .\\-two  that\n\nAll else is filled.\n  kept\n\nExit codes: 0 success.";
        let page = page(draft, "hoistway-man", "");
        let notes = ".SH NOTES\nFirst.\n.PP\nAll else is filled.\n.nf\n  kept\n.fi\n";
        assert_eq!(section(&page, "NOTES"), Some(notes), "{page}");
        let examples = ".SH EXAMPLES\n.nf\none    this\n\\&.\\-two  that\n.fi\n";
        assert_eq!(section(&page, "EXAMPLES"), Some(examples), "{page}");
    }

    #[test]
    fn the_synopsis_is_the_usage_line_of_the_help() {
        let draft = ".TH x 1\n.SH SYNOPSIS\n\\fBhoistway tar\\fR [\\fB\\-f\\fR]\n.SH DESCRIPTION\nIt archives.\n";
        let page = page(draft, "hoistway-tar", "hoistway tar [PATH]... --run");
        let synopsis = ".SH SYNOPSIS\n.nf\nhoistway tar [PATH]... \\-\\-run\n.fi\n";
        assert_eq!(section(&page, "SYNOPSIS"), Some(synopsis));
        assert_eq!(section(&page, "DESCRIPTION"), Some(".SH DESCRIPTION\nIt archives.\n"));
    }

    #[test]
    fn sections_come_from_the_tables() {
        let page = ManualPage {
            name: "hoistway-serve",
            exit_statuses: &[("0", "success"), ("2", "invalid command line")],
            files: vec![("/etc/hoistway-a.toml", "The configuration.")],
            related: vec![("hoistway", 1), ("nbd-client", 8)],
            document_directory: "/usr/share/doc",
            documents: vec!["serve.md".to_owned(), "serve-config.md".to_owned()],
            ..ManualPage::default()
        };
        let page = page.adapted(".TH x 1\n.SH VERSION\nv1\n.SH EXTRA\nA note.");
        let statuses = ".SH \"EXIT STATUS\"\n.TP\n0\nSuccess.\n.TP\n2\nInvalid command line.\n";
        assert_eq!(section(&page, "\"EXIT STATUS\""), Some(statuses));
        let files = ".SH FILES\n.TP\n/etc/hoistway\\-a.toml\nThe configuration.\n";
        assert_eq!(section(&page, "FILES"), Some(files));
        let related = ".SH \"SEE ALSO\"\n.BR hoistway (1),\n.BR nbd\\-client (8)\n.PP\n\
                       Documents in /usr/share/doc:\nserve.md,\nserve\\-config.md\n";
        assert_eq!(section(&page, "\"SEE ALSO\""), Some(related));
        let order: Vec<&str> = page.lines().filter(|line| line.starts_with(".SH ")).collect();
        assert_eq!(order, [".SH \"EXIT STATUS\"", ".SH FILES", ".SH VERSION", ".SH NOTES", ".SH \"SEE ALSO\""]);
    }

    #[test]
    fn empty_tables_have_no_section() {
        let page = page(".TH x 1\n.SH NAME\nx\n", "x", "");
        assert_eq!(page.lines().filter(|line| line.starts_with(".SH ")).count(), 1, "{page}");
    }

    #[test]
    fn long_lines_are_wrapped_and_blank_lines_are_space() {
        let long = "word ".repeat(17) + "'quoted' " + &"word ".repeat(3);
        let draft = format!(".TH x 1\n.SH OPTIONS\n.TP\n\\fB\\-\\-tag\\fR\n{long}\n.br\n\n.br\nValues:\n.TP\nb\nc\n");
        let page = page(&draft, "hoistway-man", "");
        let options = section(&page, "OPTIONS").expect("options");
        assert!(options.lines().all(|line| line.len() <= LINE_BYTES), "{options}");
        assert!(options.contains("word\n.sp\nValues:\n.TP\nb\nc\n"), "{options}");
    }
}
