//! Rules on language: banned words in names and comments, doc comments that say nothing, comments
//! that are too long.

use std::fmt;

use crate::repository::File;
use hoistway_rusttokens::{Kind, comments, tokens};

/// A line of a comment ends at this column at most.
const COMMENT_COLUMNS_MAX: usize = 100;

/// Words without a technical referent, and words that treat machines as people. They are banned in
/// names and comments.
const BANNED: [&str; 13] = [
    concat!("to", "ld"),
    concat!("who", "ever"),
    concat!("who", "m"),
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("any", "body"),
    concat!("every", "body"),
    concat!("any", "one"),
    concat!("every", "one"),
    concat!("some", "one"),
    concat!("where", "ver"),
    concat!("some", "where"),
    concat!("li", "es"),
];
/// Verbs of speech: banned in names, where they stand for a format, a report or a notification.
const BANNED_IN_NAMES: [&str; 2] = [concat!("te", "ll"), concat!("te", "lls")];

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A banned word is part of a name.
    Name,
    /// A banned word is in a comment.
    Comment,
    /// A doc comment has one word.
    OneWord,
    /// A line of a comment is too long.
    Long,
}

impl Rule {
    pub const ALL: [Rule; 4] = [Rule::Name, Rule::Comment, Rule::OneWord, Rule::Long];

    /// The heading of the rule's column.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Name => "names",
            Rule::Comment => "comments",
            Rule::OneWord => "one word",
            Rule::Long => "long lines",
        }
    }
}

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    /// The path and the line, with a colon between.
    place: String,
    text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.text)
    }
}

/// The findings in a Rust file, in the order of the rules; none in other files.
pub fn findings(file: &File) -> Vec<Finding> {
    if !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut add = |rule, line: usize, text: String| {
        found.push(Finding { rule, place: format!("{}:{line}", file.path), text });
    };
    let mut last_name = None;
    for token in tokens(&file.text).into_iter().filter(|token| token.kind == Kind::Word) {
        let repeated = last_name.as_ref() == Some(&token.text);
        if let Some(word) = words_of(&token.text).into_iter().find(|word| is_banned_in_names(word))
            && !repeated
        {
            add(Rule::Name, token.line, format!("the name `{}` contains \"{word}\"", token.text));
        }
        last_name = Some(token.text);
    }
    let lines: Vec<&str> = file.text.lines().collect();
    for comment in comments(&file.text) {
        for word in comment.text.split(|c: char| !c.is_alphanumeric() && c != '_') {
            let word = word.to_lowercase();
            if BANNED.contains(&word.as_str()) {
                add(Rule::Comment, comment.line, format!("the comment contains \"{word}\""));
            }
        }
        let columns = lines.get(comment.line - 1).map_or(0, |line| line.chars().count());
        if comment.is_alone && columns > COMMENT_COLUMNS_MAX && can_be_wrapped(&comment.text) {
            add(
                Rule::Long,
                comment.line,
                format!("the comment ends at column {columns}; {COMMENT_COLUMNS_MAX} is the most"),
            );
        }
    }
    for (line, word) in one_word_documentation(&lines) {
        add(Rule::OneWord, line, format!("the doc comment is the word \"{word}\""));
    }
    found
}

/// Returns true if a word must not be part of a name.
fn is_banned_in_names(word: &str) -> bool {
    BANNED.contains(&word) || BANNED_IN_NAMES.contains(&word)
}

/// The words of a name in lower case: `two_words`, `TwoWords`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let starts = c == '_' || (c.is_uppercase() && was_lower);
        if starts {
            words.push(String::new());
        }
        if c != '_'
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words
}

/// A row of a table and a line with a link cannot be wrapped.
fn can_be_wrapped(text: &str) -> bool {
    let text = text.trim_start_matches(['/', '!']).trim();
    !text.starts_with('|') && !text.contains("://") && text.contains(' ')
}

/// The doc comments of one line and one word, with their lines.
fn one_word_documentation<'a>(lines: &[&'a str]) -> Vec<(usize, &'a str)> {
    let text = |index: usize| {
        let line = lines.get(index)?.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).filter(|text| !text.starts_with('/'))
    };
    let mut found = Vec::new();
    for index in 0..lines.len() {
        let alone = (index == 0 || text(index - 1).is_none()) && text(index + 1).is_none();
        if let Some(text) = text(index).map(str::trim).filter(|text| alone && !text.is_empty())
            && !text.contains(char::is_whitespace)
        {
            found.push((index + 1, text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<Rule> {
        let file = File { path: "a.rs".to_owned(), text: text.to_owned() };
        findings(&file).into_iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn banned_words_are_found_in_names_of_either_style() {
        let [first, _, _, fourth, ..] = BANNED;
        assert_eq!(rules(&format!("fn is_{first}() {{}}")), [Rule::Name]);
        let camel = format!("{}{}", fourth[..1].to_uppercase(), &fourth[1..]);
        assert_eq!(rules(&format!("struct {camel}Waits;")), [Rule::Name]);
        assert_eq!(rules(&format!("fn un{first}s() {{}} const S: &str = \"{first}\";")), []);
    }

    #[test]
    fn every_banned_word_is_found_in_names() {
        for word in BANNED.iter().chain(&BANNED_IN_NAMES) {
            assert_eq!(rules(&format!("fn {word}_it() {{}}")), [Rule::Name], "{word}");
        }
        assert_eq!(rules("fn intellect() {} fn satellites() {} fn families() {}"), []);
    }

    #[test]
    fn every_banned_word_is_found_in_comments() {
        for word in BANNED {
            assert_eq!(rules(&format!("// It is {word}.")), [Rule::Comment], "{word}");
        }
    }

    #[test]
    fn banned_words_are_found_in_comments() {
        let [first, second, ..] = BANNED;
        assert_eq!(rules(&format!("// It is {first}.")), [Rule::Comment]);
        assert_eq!(rules(&format!("let a = 1; // {second}")), [Rule::Comment]);
        assert_eq!(rules(&format!("/* {first} */")), [Rule::Comment]);
        let [.., place] = BANNED;
        assert_eq!(rules(&format!("// The block {place} there.")), [Rule::Comment]);
        let [speech, _] = BANNED_IN_NAMES;
        assert_eq!(rules(&format!("// The figures {speech} more.")), []);
        assert_eq!(rules("// A comment that names its subject."), []);
    }

    #[test]
    fn a_doc_comment_of_one_word_is_found() {
        assert_eq!(rules("/// It.\nfn a() {}"), [Rule::OneWord]);
        assert_eq!(rules("/// Two words.\nfn a() {}"), []);
        assert_eq!(rules("/// Longer\n/// text.\nfn a() {}"), []);
    }

    #[test]
    fn a_comment_above_100_columns_is_found() {
        let of = |columns: usize| format!("// {}{}", "ab ".repeat((columns - 3) / 3), "a".repeat((columns - 3) % 3));
        assert_eq!(rules(&of(100)), []);
        assert_eq!(rules(&of(101)), [Rule::Long]);
        assert_eq!(rules(&format!("// https://{}", "a".repeat(100))), []);
        assert_eq!(rules(&format!("/// | {} | b |", "a ".repeat(100))), []);
        assert_eq!(rules(&format!("fn a() {{}} // {}", "a ".repeat(100))), []);
    }
}
