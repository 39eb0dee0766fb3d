//! Tidiness: lengths of functions and files, words that do not belong into the repository, links that lead nowhere.

use std::path::Path;

use anyhow::{Result, bail};

use crate::repository::{self, File};
use crate::tokens::{self, Token};

/// The longest body of a function, in lines between its braces.
const FUNCTION_LINES_MAX: usize = 70;
/// The longest file, in lines without its tests.
const FILE_LINES_MAX: usize = 800;

/// Checks all files of the repository.
pub fn run() -> Result<()> {
    let files = repository::text_files()?;
    let mut untidy = Vec::new();
    for file in &files {
        if file.path.ends_with(".rs") {
            untidy.extend(long_functions(file));
            untidy.extend(long_file(file));
        }
        untidy.extend(words(file));
        if file.path.ends_with("Cargo.lock") {
            untidy.extend(foreign_sources(file));
        }
        if file.path.ends_with(".md") {
            untidy.extend(dead_links(file, &|target| repository::root().join(target).exists()));
        }
    }
    if !untidy.is_empty() {
        bail!("{} things are untidy:\n  {}", untidy.len(), untidy.join("\n  "));
    }
    println!("tidy: {} files", files.len());
    Ok(())
}

fn long_functions(file: &File) -> Vec<String> {
    let tokens = tokens::tokens(&file.text);
    let mut long = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Some(name) = tokens.get(at + 1).filter(|_| token.is("fn")) else { continue };
        let Some((open, close)) = body(&tokens, at) else { continue };
        let lines = close.saturating_sub(open + 1);
        if lines > FUNCTION_LINES_MAX {
            long.push(format!(
                "{}:{}: the body of {} has {lines} lines; {FUNCTION_LINES_MAX} is the most",
                file.path, token.line, name.text
            ));
        }
    }
    long
}

/// The lines of the braces around the body of a function whose `fn` is at `at`; a function without a body has none.
fn body(tokens: &[Token], at: usize) -> Option<(usize, usize)> {
    let (mut depth, mut nested, mut open) = (0usize, 0usize, 0usize);
    for token in tokens.get(at..)? {
        match token.text.as_str() {
            "(" | "[" if token.is(&token.text) && depth == 0 => nested += 1,
            ")" | "]" if token.is(&token.text) && depth == 0 => nested = nested.saturating_sub(1),
            ";" if depth == 0 && nested == 0 => return None,
            "{" if token.is("{") && nested == 0 => {
                if depth == 0 {
                    open = token.line;
                }
                depth += 1;
            }
            "}" if token.is("}") && nested == 0 => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some((open, token.line));
                }
            }
            _ => {}
        }
    }
    None
}

fn long_file(file: &File) -> Option<String> {
    if file.path.contains("/tests/") || file.path.ends_with("/tests.rs") {
        return None;
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let tests = lines
        .windows(2)
        .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{'));
    let lines = tests.unwrap_or(lines.len());
    (lines > FILE_LINES_MAX)
        .then(|| format!("{}: {lines} lines without tests; {FILE_LINES_MAX} is the most", file.path))
}

/// What does not belong into the repository: it speaks of the project alone, and of no machine that it was written on.
/// The words are put together here so that this file does not hold them.
fn words(file: &File) -> Vec<String> {
    let is_data = file.path.contains("testdata/") || file.path.ends_with("Cargo.lock");
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let line_number = index + 1;
        let mut tell = |what: &str| found.push(format!("{}:{line_number}: {what}", file.path));
        for path in [concat!("/", "work/"), concat!("/tmp/", "target"), concat!("/", "root/"), concat!("/", "home/")] {
            if line.contains(path) {
                tell(&format!("{path} is a place on one machine"));
            }
        }
        if is_data {
            continue;
        }
        let lower = line.to_lowercase();
        for word in lower.split(|c: char| !c.is_alphanumeric()) {
            let singular = word.strip_suffix('s').unwrap_or(word);
            if [
                concat!("age", "nt"),
                concat!("pro", "mpt"),
                concat!("ll", "m"),
                concat!("chat", "gpt"),
                concat!("clau", "de"),
            ]
            .contains(&singular)
            {
                tell(&format!("the word {word:?}"));
            }
        }
        for whose in ["this", "my", "our", "previous", "next", "last", "coding"] {
            if lower.contains(&format!("{whose} {}", concat!("sess", "ion"))) {
                tell(&format!("{whose} {}", concat!("sess", "ion")));
            }
        }
        for host in [
            concat!("artifact", "ory"),
            concat!("index", "-url"),
            concat!("replace", "-with"),
            concat!("prox", "y.golang"),
        ] {
            if lower.contains(host) {
                tell(&format!("{host:?} names a registry"));
            }
        }
        if ["rs", "md", "toml", "txt", "py", "sh"].iter().any(|kind| file.path.ends_with(&format!(".{kind}")))
            && let Some(reference) = issue_reference(line)
        {
            tell(&format!("{reference} refers to an issue that the reader cannot see"));
        }
    }
    found
}

/// A `#` and one to five digits that stand alone, as issues are named; colours have quotes before them.
fn issue_reference(line: &str) -> Option<&str> {
    for (at, _) in line.match_indices('#') {
        let before = line[..at].chars().next_back();
        let digits = line[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let after = line[at + 1 + digits..].chars().next();
        let stands_alone =
            before.is_none_or(|c| c.is_whitespace() || c == '(') && after.is_none_or(|c| !c.is_alphanumeric());
        if (1..=5).contains(&digits) && stands_alone {
            return Some(&line[at..=at + digits]);
        }
    }
    None
}

fn foreign_sources(file: &File) -> Vec<String> {
    let canonical = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    let foreign = file.text.lines().enumerate().filter(|(_, line)| line.starts_with("source = ") && *line != canonical);
    foreign.map(|(index, line)| format!("{}:{}: {line} is not crates.io", file.path, index + 1)).collect()
}

/// Links to files that are not there; `exists` is asked with paths from the root.
fn dead_links(file: &File, exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let directory = Path::new(&file.path).parent().unwrap_or(Path::new(""));
    let mut dead = Vec::new();
    let mut in_code = false;
    for (index, line) in file.text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split(['#', ' ']).next().unwrap_or_default();
            let elsewhere = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !exists(&directory.join(target)) {
                dead.push(format!("{}:{}: the link to {target} leads nowhere", file.path, index + 1));
            }
        }
    }
    dead
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_body_of_71_lines_is_too_long_and_one_of_70_is_not() {
        let of = |lines: usize| {
            file(
                "a.rs",
                &format!("trait A {{ fn x(&self) -> [u8; 2]; }}\nfn long() {{\n{}}}\n", "a();\n".repeat(lines)),
            )
        };
        assert_eq!(long_functions(&of(70)), [""; 0]);
        assert_eq!(long_functions(&of(71)), ["a.rs:2: the body of long has 71 lines; 70 is the most"]);
    }

    #[test]
    fn tests_do_not_count_to_the_length_of_a_file() {
        let tests = "#[cfg(test)]\nmod tests {\n}\n".to_owned() + &"//\n".repeat(50);
        assert_eq!(long_file(&file("a.rs", &("//\n".repeat(800) + &tests))), None);
        assert!(long_file(&file("a.rs", &"//\n".repeat(801))).is_some());
    }

    #[test]
    fn words_that_do_not_belong_are_found_and_their_like_are_not() {
        let bad = [
            concat!("an age", "nt"),
            concat!("the pro", "mpts"),
            concat!("see /", "work/x"),
            concat!("in this sess", "ion"),
            concat!("mends #", "12."),
        ];
        for text in bad {
            assert_eq!(words(&file("a.md", text)).len(), 1, "{text}");
        }
        for text in ["a reagent", "promptly", "an NBD session", "a colour \"#123\"", "x#12", "&#8217;", "network/x"] {
            assert_eq!(words(&file("a.md", text)), [""; 0], "{text}");
        }
    }

    #[test]
    fn dead_links_are_found_from_the_folder_of_the_file() {
        let text = "[a](b.md) [c](../d.md#x) [e](https://f) [g](#h)\n```\n[i](j)\n```";
        let found = dead_links(&file("docs/a.md", text), &|path| path == Path::new("docs/b.md"));
        assert_eq!(found, ["docs/a.md:1: the link to ../d.md leads nowhere"]);
    }

    #[test]
    fn only_crates_io_is_a_source() {
        let text = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"registry+https://example.org/\"";
        assert_eq!(foreign_sources(&file("Cargo.lock", text)).len(), 1);
    }
}
