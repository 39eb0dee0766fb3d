//! Lengths of functions and files.

use hoistway_rusttokens::{self as rust_tokens, Token};
use hoistway_workspace::repository::File;

/// The longest body of a function, in lines between its braces.
const FUNCTION_LINES_MAX: usize = 70;
/// The longest file, in lines without its tests.
const FILE_LINES_MAX: usize = 800;

/// Finds the functions whose bodies are too long.
pub fn long_functions(file: &File) -> Vec<String> {
    let tokens = rust_tokens::tokens(&file.text);
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

/// Returns the lines of the braces around the body of the function whose `fn` is at `at`, None if
/// it has no body.
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

/// Reports a file that is too long without its tests.
pub fn long_file(file: &File) -> Option<String> {
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
}
