//! Rules on comments: doc comments of one word, lines that are too long.

use hoistway_rusttokens::comments;
use hoistway_workspace::repository::File;

/// A line of a comment ends at this column at most.
const COMMENT_COLUMNS_MAX: usize = 100;

/// The findings in a Rust file; none in other files.
pub fn findings(file: &File) -> Vec<String> {
    if !file.path.ends_with(".rs") {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    for comment in comments(&file.text) {
        let columns = lines.get(comment.line - 1).map_or(0, |line| line.chars().count());
        if comment.is_alone && columns > COMMENT_COLUMNS_MAX && can_be_wrapped(&comment.text) {
            found.push(format!(
                "{}:{}: the comment ends at column {columns}; {COMMENT_COLUMNS_MAX} is the most",
                file.path, comment.line
            ));
        }
    }
    for (line, word) in one_word_documentation(&lines) {
        found.push(format!("{}:{line}: the doc comment is the word \"{word}\"", file.path));
    }
    found
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

    fn found(text: &str) -> Vec<String> {
        findings(&File { path: "a.rs".to_owned(), text: text.to_owned() })
    }

    #[test]
    fn a_doc_comment_of_one_word_is_found() {
        assert_eq!(found("/// It.\nfn a() {}"), ["a.rs:1: the doc comment is the word \"It.\""]);
        assert_eq!(found("/// Two words.\nfn a() {}"), [""; 0]);
        assert_eq!(found("/// Longer\n/// text.\nfn a() {}"), [""; 0]);
    }

    #[test]
    fn a_comment_above_100_columns_is_found() {
        let of = |columns: usize| format!("// {}{}", "ab ".repeat((columns - 3) / 3), "a".repeat((columns - 3) % 3));
        assert_eq!(found(&of(100)), [""; 0]);
        assert_eq!(found(&of(101)), ["a.rs:1: the comment ends at column 101; 100 is the most"]);
        assert_eq!(found(&format!("// https://{}", "a".repeat(100))), [""; 0]);
        assert_eq!(found(&format!("/// | {} | b |", "a ".repeat(100))), [""; 0]);
        assert_eq!(found(&format!("fn a() {{}} // {}", "a ".repeat(100))), [""; 0]);
    }
}
