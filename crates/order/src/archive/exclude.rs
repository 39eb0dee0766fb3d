//! Exclude patterns as in GNU tar's `--exclude`: not anchored, and `*` matches slashes.

use rustc_hash::FxHashMap;

use crate::tree::FileKind;

/// A set of exclude patterns.
///
/// `*` matches any characters, `?` one character, `[a-z]` and `[[:digit:]]` one of several, `[!a]`
/// or `[^a]` one character that is not listed. A backslash makes the next character literal. A
/// pattern matches from the start of a path or after any slash, up to the end or any slash. A
/// pattern with a final slash matches directories only.
#[derive(Clone, Debug, Default)]
pub struct ExcludePatterns {
    /// Patterns with special characters, tried one by one.
    patterns: Vec<Pattern>,
    plain: Plain,
}

#[derive(Clone, Debug)]
struct Pattern {
    text: Vec<u8>,
    directories_only: bool,
}

/// Literal patterns as a trie of path components. One lookup per slash of a path covers all of
/// them.
#[derive(Clone, Debug, Default)]
struct Plain {
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    below: FxHashMap<Box<[u8]>, usize>,
    /// Set if a pattern ends here; true if it matches directories only.
    ends: Option<bool>,
}

impl ExcludePatterns {
    /// Creates an empty set.
    pub fn new() -> ExcludePatterns {
        ExcludePatterns::default()
    }

    /// Adds a pattern. The patterns "", "." and "./" match nothing; otherwise they would exclude
    /// everything.
    pub fn add(&mut self, pattern: &[u8]) {
        let ends = pattern.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
        let directories_only = ends < pattern.len();
        let text = &pattern[..ends];
        if matches!(text, b"" | b".") {
            return;
        }
        if text.iter().any(|byte| b"*?[\\".contains(byte)) {
            self.patterns.push(Pattern { text: text.to_vec(), directories_only });
        } else {
            self.plain.add(text, directories_only);
        }
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty() && self.plain.nodes.is_empty()
    }

    /// Returns true if a path of the given type is excluded.
    pub fn matches(&self, path: &[u8], kind: FileKind) -> bool {
        let is_directory = kind == FileKind::Directory;
        let behind_slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at + 1);
        std::iter::once(0).chain(behind_slashes).any(|from| {
            let text = &path[from..];
            self.plain.matches(text, is_directory)
                || self.patterns.iter().any(|pattern| pattern.matches(text, is_directory))
        })
    }
}

impl Pattern {
    fn matches(&self, text: &[u8], is_directory: bool) -> bool {
        matches_leading(&self.text, text, is_directory || !self.directories_only)
    }
}

impl Plain {
    fn add(&mut self, path: &[u8], directories_only: bool) {
        if self.nodes.is_empty() {
            self.nodes.push(Node::default());
        }
        let mut at = 0;
        for part in path.split(|byte| *byte == b'/') {
            let next = self.nodes.len();
            at = *self.nodes[at].below.entry(part.into()).or_insert(next);
            if at == next {
                self.nodes.push(Node::default());
            }
        }
        let ends = &mut self.nodes[at].ends;
        *ends = Some(ends.unwrap_or(true) && directories_only);
    }

    /// Returns true if a pattern equals the text or its part before a slash.
    fn matches(&self, text: &[u8], is_directory: bool) -> bool {
        let Some(mut node) = self.nodes.first() else { return false };
        let mut parts = text.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            let Some(next) = node.below.get(part) else { return false };
            node = &self.nodes[*next];
            // A component before a slash is a directory.
            if node.ends.is_some_and(|directories_only| !directories_only || is_directory || parts.peek().is_some()) {
                return true;
            }
        }
        false
    }
}

/// Returns true if a pattern matches the text up to a slash, or the whole text if `all_will_do`.
fn matches_leading(pattern: &[u8], text: &[u8], all_will_do: bool) -> bool {
    let (mut in_pattern, mut in_text) = (0, 0);
    // State after the last star. Only the last star needs backtracking, because it can match
    // everything.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let matched = match pattern[in_pattern..].first() {
            None if text[in_text..].first() == Some(&b'/') => return true,
            None if in_text == text.len() && all_will_do => return true,
            None => None,
            Some(b'*') => {
                in_pattern += 1;
                star = Some((in_pattern, in_text));
                continue;
            }
            Some(_) if in_text == text.len() => None,
            Some(_) => one(&pattern[in_pattern..], &text[in_text..]),
        };
        if let Some((pattern_bytes, text_bytes)) = matched {
            in_pattern += pattern_bytes;
            in_text += text_bytes;
            continue;
        }
        let Some((behind, ends)) = star.filter(|(_, ends)| *ends < text.len()) else { return false };
        let ends = ends + character(&text[ends..]).1;
        star = Some((behind, ends));
        (in_pattern, in_text) = (behind, ends);
    }
}

/// Matches one character. Returns the lengths of the matched pattern and text in bytes.
fn one(pattern: &[u8], text: &[u8]) -> Option<(usize, usize)> {
    let (found, found_bytes) = character(text);
    let pattern_bytes = match pattern {
        [b'?', ..] => 1,
        [b'[', ..] => match bracket(pattern, found) {
            Some((true, bytes)) => bytes,
            Some((false, _)) => return None,
            // An unclosed bracket is literal.
            None if found == u32::from(b'[') => 1,
            None => return None,
        },
        [b'\\', escaped @ ..] if !escaped.is_empty() => {
            let (wanted, bytes) = character(escaped);
            if wanted != found {
                return None;
            }
            1 + bytes
        }
        _ => {
            let (wanted, bytes) = character(pattern);
            if wanted != found {
                return None;
            }
            bytes
        }
    };
    Some((pattern_bytes, found_bytes))
}

/// Matches a bracket expression. Returns the result and the length of the expression; `None` if it
/// is not closed.
fn bracket(pattern: &[u8], found: u32) -> Option<(bool, usize)> {
    let mut at = 1;
    let negated = matches!(pattern.get(at), Some(b'!' | b'^'));
    at += usize::from(negated);
    let first = at;
    let mut is_in = false;
    loop {
        match pattern.get(at)? {
            b']' if at > first => return Some((is_in != negated, at + 1)),
            b'[' if pattern.get(at + 1) == Some(&b':') => {
                let name = &pattern[at + 2..];
                let length = name.windows(2).position(|ends| ends == b":]")?;
                is_in |= class(&name[..length], found);
                at += length + 4;
            }
            _ => {
                let (low, bytes) = member(&pattern[at..])?;
                at += bytes;
                let mut high = low;
                if pattern.get(at) == Some(&b'-') && !matches!(pattern.get(at + 1), None | Some(b']')) {
                    let (end, bytes) = member(&pattern[at + 1..])?;
                    high = end;
                    at += 1 + bytes;
                }
                is_in |= (low..=high).contains(&found);
            }
        }
    }
}

/// Returns a character of a bracket expression and its length. The character may be escaped.
fn member(pattern: &[u8]) -> Option<(u32, usize)> {
    match pattern {
        [b'\\', escaped @ ..] if !escaped.is_empty() => {
            let (wanted, bytes) = character(escaped);
            Some((wanted, bytes + 1))
        }
        [] => None,
        _ => Some(character(pattern)),
    }
}

fn class(name: &[u8], found: u32) -> bool {
    let Some(found) = char::from_u32(found) else { return false };
    match name {
        b"alpha" => found.is_alphabetic(),
        b"digit" => found.is_ascii_digit(),
        b"alnum" => found.is_alphanumeric(),
        b"upper" => found.is_uppercase(),
        b"lower" => found.is_lowercase(),
        b"space" => found.is_whitespace(),
        b"blank" => matches!(found, ' ' | '\t'),
        b"punct" => found.is_ascii_punctuation(),
        b"print" => !found.is_control(),
        b"graph" => !found.is_control() && !found.is_whitespace(),
        b"cntrl" => found.is_control(),
        b"xdigit" => found.is_ascii_hexdigit(),
        _ => false,
    }
}

/// Returns the first character and its length. An invalid byte has a value above all characters.
fn character(bytes: &[u8]) -> (u32, usize) {
    let Some(first) = bytes.first() else { return (0, 0) };
    if first.is_ascii() {
        return (u32::from(*first), 1);
    }
    let most = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(most) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&most[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(character) => (u32::from(character), character.len_utf8()),
        None => (0x0011_0000 + u32::from(*first), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let mut excludes = ExcludePatterns::new();
        excludes.add(pattern.as_bytes());
        excludes.matches(path.as_bytes(), FileKind::File)
    }

    #[test]
    fn a_pattern_matches_from_behind_any_slash_and_a_star_matches_slashes() {
        assert!(matches("*.o", "src/deep/a.o"));
        assert!(matches("deep", "src/deep"));
        assert!(matches("src/*.o", "src/deep/a.o"));
        assert!(matches("src/*.o", "./src/deep/a.o"));
        assert!(!matches("src/*.o", "mysrc/a.o"), "a part of a name is no begin");
        assert!(!matches("a.o", "src/aa.o"));
        assert!(matches("s*c", "x/src"));
    }

    #[test]
    fn the_contents_of_an_excluded_directory_are_excluded() {
        assert!(matches("deep", "src/deep/a/b"));
        assert!(matches("deep/", "src/deep/a/b"));
        assert!(matches("d*p", "src/deep/a/b"));
        assert!(!matches("dee", "src/deep/a/b"));
    }

    #[test]
    fn a_question_mark_is_one_character_however_many_bytes_it_has() {
        assert!(matches("?", "ä"));
        assert!(!matches("??", "ä"));
        assert!(matches("a?c", "abc") && !matches("a?c", "ac"));
        let mut excludes = ExcludePatterns::new();
        excludes.add(b"a?c");
        assert!(excludes.matches(b"a\xffc", FileKind::File), "nor does it matter what the byte is");
    }

    #[test]
    fn brackets_have_ranges_classes_and_their_opposite() {
        assert!(matches("[a-c]x", "bx") && !matches("[a-c]x", "dx"));
        assert!(matches("[!a-c]x", "dx") && matches("[^a-c]x", "dx") && !matches("[!a-c]x", "bx"));
        assert!(matches("[]a]", "]") && matches("[]a]", "a"));
        assert!(matches("v[[:digit:]]", "v7") && !matches("v[[:digit:]]", "vx"));
        assert!(matches("[ä-ü]", "ö"));
        assert!(matches("a[b", "a[b"), "one that is not closed is a bracket");
        assert!(matches("[a-]", "-"));
    }

    #[test]
    fn a_backslash_takes_the_meaning_away() {
        assert!(matches(r"\*", "*") && !matches(r"\*", "x"));
        assert!(matches(r"[\]]", "]"));
        assert!(matches(r"a\\b", r"a\b"));
    }

    #[test]
    fn a_pattern_that_would_match_everything_matches_nothing() {
        for pattern in ["", "/", ".", "./", ".//"] {
            for path in ["x", ".", "./x", "/"] {
                assert!(!matches(pattern, path), "{pattern} {path}");
            }
        }
    }

    #[test]
    fn a_slash_at_the_end_means_directories() {
        for pattern in ["build/", "b*d/", "src/build/", "[b]uild//"] {
            let mut excludes = ExcludePatterns::new();
            excludes.add(pattern.as_bytes());
            assert!(excludes.matches(b"src/build", FileKind::Directory), "{pattern}");
            assert!(excludes.matches(b"src/build/x", FileKind::File), "{pattern}");
            for kind in [FileKind::File, FileKind::Symlink] {
                assert!(!excludes.matches(b"src/build", kind), "{pattern}");
            }
        }
        let mut excludes = ExcludePatterns::new();
        for pattern in ["a/", "b", "b/", "a"] {
            excludes.add(pattern.as_bytes());
        }
        assert!(excludes.matches(b"a", FileKind::File) && excludes.matches(b"b", FileKind::File), "without it wins");
    }

    proptest::proptest! {
        #[test]
        fn plain_patterns_match_what_they_would_match_as_patterns(pattern in "[ab./]{1,6}", path in "[ab./]{1,12}", is_directory: bool) {
            let kind = if is_directory { FileKind::Directory } else { FileKind::File };
            let mut plain = ExcludePatterns::new();
            plain.add(pattern.as_bytes());
            let mut tried = ExcludePatterns::new();
            if !plain.is_empty() {
                // A backslash before a letter has no effect except that the pattern is not literal.
                tried.add(format!("\\{pattern}").as_bytes());
                proptest::prop_assert!(plain.patterns.is_empty() && !tried.patterns.is_empty());
            }
            proptest::prop_assert_eq!(plain.matches(path.as_bytes(), kind), tried.matches(path.as_bytes(), kind));
        }
    }
}
