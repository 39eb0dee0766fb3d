//! Marks within a line of the reference of the commands in Markdown: options and names become code,
//! paths of the repository become links, and characters that Markdown would take for marks are
//! escaped.

/// The folders of the repository that texts name. Their paths are links from its root, which also
/// lead to the documents of the packages.
const LINKED: [&str; 2] = ["docs/", "examples/"];
/// Characters that surround a word and are not part of it.
const BEFORE: &[char] = &['(', '[', '\'', '"'];
const AFTER: &[char] = &['.', ',', ';', ':', ')', ']', '\'', '"'];

/// Marks the words of a line of a reference in Markdown: options and names become code, paths of
/// the repository become links. Parts between backticks are code already.
pub fn marked(line: &str) -> String {
    let mut text = String::with_capacity(line.len() * 2);
    for (index, part) in line.split('`').enumerate() {
        if index > 0 {
            text.push('`');
        }
        if index % 2 == 1 {
            text.push_str(part);
        } else {
            part.split_inclusive(char::is_whitespace).for_each(|word| text.push_str(&marked_word(word)));
        }
    }
    text
}

/// Marks a word with the punctuation and the space around it.
fn marked_word(word: &str) -> String {
    let inner = word.trim_end().trim_start_matches(BEFORE).trim_end_matches(AFTER);
    let start = word.len() - word.trim_start_matches(BEFORE).len();
    let (before, after) = (&word[..start], &word[start + inner.len()..]);
    let marked = match inner {
        path if LINKED.iter().any(|folder| path.starts_with(folder)) => format!("[{}]({path})", escaped(path)),
        name if is_option(name) || is_name(name) => format!("`{name}`"),
        other => escaped(other),
    };
    format!("{}{marked}{}", escaped(before), escaped(after))
}

/// True for an option, as `-o`, `--output` or `--sort=name`.
fn is_option(word: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic();
    match word.strip_prefix("--") {
        Some(long) => long.starts_with(is_letter),
        None => word.strip_prefix('-').is_some_and(|short| short.len() == 1 && short.starts_with(is_letter)),
    }
}

/// True for an identifier with an underscore, as `slice_idle` or `$NBD_URI`.
fn is_name(word: &str) -> bool {
    word.contains('_') && !word.contains(['[', ']', '<', '|'])
}

/// Escapes what Markdown would take for marks.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '<' | '*' | '_' | '[' | ']' | '#') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_names_in_texts_are_code() {
        assert_eq!(marked("with --seeds the first one"), "with `--seeds` the first one");
        assert_eq!(marked("(-p, -P or --sort=name); blktrace -o"), "(`-p`, `-P` or `--sort=name`); blktrace `-o`");
        assert_eq!(marked("as in cfq.slice_idle=8ms; $NBD_URI."), "as in `cfq.slice_idle=8ms`; `$NBD_URI`.");
        assert_eq!(marked("- for standard input, -1 and mq-deadline"), "- for standard input, -1 and mq-deadline");
    }

    #[test]
    fn paths_of_the_repository_are_links() {
        assert_eq!(marked("(docs/tar.md has the reason)."), "([docs/tar.md](docs/tar.md) has the reason).");
        assert_eq!(marked("pages in docs/elevators."), "pages in [docs/elevators](docs/elevators).");
    }

    #[test]
    fn code_stays_and_marks_are_escaped() {
        assert_eq!(marked("`a_b --c` <c> [x]"), "`a_b --c` \\<c> \\[x\\]");
        assert_eq!(marked("two  spaces\nand lines"), "two  spaces\nand lines");
    }
}
