//! The tokens and the comments of a Rust file, as far as the checks need them. The contents of
//! strings are left out.

#![forbid(unsafe_code)]

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind of the token.
    pub kind: Kind,
    /// The source text; empty for strings and characters.
    pub text: String,
    /// The line, counted from 1.
    pub line: usize,
}

/// A line of a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The text with its marks.
    pub text: String,
    /// The line, counted from 1.
    pub line: usize,
    /// True if no code precedes the comment in its line.
    pub is_alone: bool,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word: identifier, keyword or lifetime.
    Word,
    /// An integer.
    Integer,
    /// A floating-point number.
    Float,
    /// A string or character.
    Literal,
    /// A single character of punctuation.
    Mark,
}

impl Token {
    /// Returns true if the token is this word or mark.
    pub fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Mark) && self.text == text
    }
}

/// Reads the tokens of a file, in order.
pub fn tokens(text: &str) -> Vec<Token> {
    read(text).tokens
}

/// Reads the comments of a file, one a line, in order.
pub fn comments(text: &str) -> Vec<Comment> {
    read(text).comments
}

fn read(text: &str) -> Reader<'_> {
    let mut reader = Reader { rest: text, line: 1, tokens: Vec::new(), comments: Vec::new() };
    while !reader.rest.is_empty() {
        reader.step();
    }
    reader
}

/// Returns the tokens without those of items marked `#[cfg(test)]`.
pub fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let here = tokens.get(at..at + mark.len()).unwrap_or_default();
        if here.len() == mark.len() && here.iter().zip(mark).all(|(token, mark)| token.is(mark)) {
            at = end_of_item(tokens, at + mark.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Returns the index after the item at `at`: after its closing brace, or after a semicolon outside
/// of braces.
fn end_of_item(tokens: &[Token], mut at: usize) -> usize {
    let mut depth = 0usize;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.text.as_str() {
            "{" | "(" | "[" if token.kind == Kind::Mark => depth += 1,
            close @ ("}" | ")" | "]") if token.kind == Kind::Mark => {
                depth = depth.saturating_sub(1);
                if depth == 0 && close == "}" {
                    break;
                }
            }
            ";" if depth == 0 => break,
            _ => {}
        }
    }
    at
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
}

impl Reader<'_> {
    fn step(&mut self) {
        let rest = self.rest;
        let Some(first) = rest.chars().next() else { return };
        if rest.starts_with("//") {
            self.comment(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.comment(block_comment(rest));
        } else if let Some(len) = raw_string(rest) {
            self.push(Kind::Literal, len);
        } else if first == '"' || rest.starts_with("b\"") || rest.starts_with("c\"") {
            let open = if first == '"' { 1 } else { 2 };
            self.push(Kind::Literal, quoted(rest, open, '"'));
        } else if let Some(len) = character(rest) {
            self.push(Kind::Literal, len);
        } else if first.is_ascii_digit() {
            let (kind, len) = self.number();
            self.push(kind, len);
        } else if first.is_alphabetic() || first == '_' || first == '\'' {
            let more = rest.chars().skip(1).take_while(|c| c.is_alphanumeric() || *c == '_');
            self.push(Kind::Word, first.len_utf8() + more.map(char::len_utf8).sum::<usize>());
        } else if first.is_whitespace() {
            self.skip(first.len_utf8());
        } else {
            self.push(Kind::Mark, first.len_utf8());
        }
    }

    fn push(&mut self, kind: Kind, len: usize) {
        let text = if kind == Kind::Literal { String::new() } else { self.rest[..len].to_owned() };
        self.tokens.push(Token { kind, text, line: self.line });
        self.skip(len);
    }

    /// Takes a comment of this length.
    fn comment(&mut self, len: usize) {
        let is_alone = self.tokens.last().is_none_or(|token| token.line != self.line);
        let lines = self.rest[..len].lines().enumerate();
        let comments = lines.map(|(index, text)| Comment { text: text.to_owned(), line: self.line + index, is_alone });
        self.comments.extend(comments);
        self.skip(len);
    }

    fn skip(&mut self, len: usize) {
        let (gone, rest) = self.rest.split_at(len);
        self.line += gone.matches('\n').count();
        self.rest = rest;
    }

    /// Reads a number. The field of a tuple (`pair.0.1`) and the end of a range (`0..5`) have no
    /// fraction.
    fn number(&self) -> (Kind, usize) {
        let bytes = self.rest.as_bytes();
        let word = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let mut len = word(0);
        let radix = matches!(bytes.get(..2), Some(b"0x" | b"0o" | b"0b"));
        let is_field = self.tokens.last().is_some_and(|token| token.is("."));
        let mut float = false;
        let at = |index: usize| bytes.get(index).copied().unwrap_or(b' ');
        if !radix
            && !is_field
            && at(len) == b'.'
            && at(len + 1) != b'.'
            && !at(len + 1).is_ascii_alphabetic()
            && at(len + 1) != b'_'
        {
            float = true;
            len += 1 + word(len + 1);
        }
        let digits = &self.rest[..len];
        if !radix && (digits.contains("f32") || digits.contains("f64") || has_exponent(digits)) {
            float = true;
            if digits.ends_with(['e', 'E']) && matches!(at(len), b'+' | b'-') {
                len += 1 + word(len + 1);
            }
        }
        (if float { Kind::Float } else { Kind::Integer }, len)
    }
}

/// Returns true if an `e` is an exponent and not part of a suffix such as `usize`.
fn has_exponent(digits: &str) -> bool {
    digits.find(['e', 'E']).is_some_and(|at| digits[..at].bytes().all(|b| b.is_ascii_digit() || b == b'_' || b == b'.'))
}

fn block_comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0usize);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

fn raw_string(rest: &str) -> Option<usize> {
    let prefix = ["r", "br", "cr"]
        .into_iter()
        .find(|prefix| rest.strip_prefix(prefix).is_some_and(|after| after.trim_start_matches('#').starts_with('"')))?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let close = format!("\"{}", "#".repeat(hashes));
    let open = prefix.len() + hashes + 1;
    Some(rest[open..].find(&close).map_or(rest.len(), |at| open + at + close.len()))
}

fn quoted(rest: &str, open: usize, close: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest[open..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == close => return open + at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character literal. In contrast to a lifetime, a quote closes it after one
/// character or an escape.
fn character(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('\'').or_else(|| rest.strip_prefix("b'"))?;
    let open = rest.len() - body.len();
    let mut chars = body.chars();
    match chars.next()? {
        '\\' => Some(quoted(rest, open, '\'')),
        c => (chars.next()? == '\'').then_some(open + c.len_utf8() + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str, kind: Kind) -> Vec<String> {
        tokens(text).into_iter().filter(|token| token.kind == kind).map(|token| token.text).collect()
    }

    #[test]
    fn fractions_and_exponents_are_floats_and_fields_ranges_and_suffixes_are_not() {
        assert_eq!(kinds("1.5 + 2. + 1e9 + 2e-3 + 1f64", Kind::Float), ["1.5", "2.", "1e9", "2e-3", "1f64"]);
        assert_eq!(kinds("a.0.1 + 0..5 + 1usize + 0xe5 + 1.max(2)", Kind::Float), [""; 0]);
    }

    #[test]
    fn comments_strings_and_characters_hide_what_is_in_them() {
        let text = "/* a /* b */ */ x // y\n \"dyn \\\" z\" r#\"w\"v\"# 'q' '\\'' b'k' 'life k";
        assert_eq!(kinds(text, Kind::Word), ["x", "'life", "k"]);
        assert_eq!(tokens(text).last().map(|token| token.line), Some(2));
    }

    #[test]
    fn items_of_tests_are_left_out() {
        let text = "fn a() {} #[cfg(test)] mod tests { fn b() { [1; 2]; } } fn c() {} #[cfg(test)] use x; fn d() {}";
        let words: Vec<String> = without_tests(&tokens(text)).into_iter().map(|token| token.text).collect();
        assert_eq!(words.join(" "), "fn a ( ) { } fn c ( ) { } fn d ( ) { }");
    }
}
