//! What a file says of modules: the items that it defines, its imports, and the paths that its code
//! names.

use hoistway_rusttokens::{Kind, Token, tokens, without_tests};

/// An import: `use PATH as NAME`.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name that it gives to the path; `*` for all names below it.
    pub(super) name: String,
    /// Whether other modules can use the name.
    pub(super) is_public: bool,
    pub(super) line: usize,
}

/// The items, imports and paths of a file.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// The names of items outside of braces, macros included.
    pub(super) items: Vec<String>,
    pub(super) imports: Vec<Import>,
    /// Paths of two and more words outside of imports, with their lines.
    pub(super) paths: Vec<(Vec<String>, usize)>,
}

/// Words before the name of an item.
const ITEMS: [&str; 10] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "mod", "macro_rules"];

/// Reads a file without its tests.
pub(super) fn scan(text: &str) -> Scan {
    let tokens = without_tests(&tokens(text));
    let mut scan = Scan::default();
    let (mut at, mut depth) = (0, 0usize);
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token.text.as_str() {
            "{" if token.is("{") => depth += 1,
            "}" if token.is("}") => depth = depth.saturating_sub(1),
            "use" if token.is("use") => at = import(&tokens, at, &mut scan.imports),
            word if token.kind == Kind::Word => {
                if depth == 0 && ITEMS.contains(&word) {
                    scan.items.extend(name_after(&tokens, at));
                }
                at = path(&tokens, at - 1, &mut scan.paths);
            }
            _ => {}
        }
    }
    scan
}

/// The name of the item whose keyword is before `at`; `const fn` and `macro_rules!` have a word or
/// a mark between.
fn name_after(tokens: &[Token], at: usize) -> Option<String> {
    let next = tokens.get(at)?;
    let next = if next.is("!") || next.is("mut") { tokens.get(at + 1)? } else { next };
    (next.kind == Kind::Word && next.text != "fn").then(|| next.text.clone())
}

/// Takes the path that begins at `at`; returns the index after it. A path in a visibility (`pub(in
/// PATH)`) does not count.
fn path(tokens: &[Token], at: usize, paths: &mut Vec<(Vec<String>, usize)>) -> usize {
    let is = |index: usize, text: &str| tokens.get(index).is_some_and(|token| token.is(text));
    let begins = at < 2 || !(is(at - 1, ":") && is(at - 2, ":"));
    let in_visibility = at >= 2 && is(at - 1, "in") && is(at - 2, "(");
    let mut words = vec![tokens[at].text.clone()];
    let mut end = at + 1;
    while is(end, ":") && is(end + 1, ":") && tokens.get(end + 2).is_some_and(|token| token.kind == Kind::Word) {
        words.push(tokens[end + 2].text.clone());
        end += 3;
    }
    if begins && !in_visibility && words.len() > 1 {
        paths.push((words, tokens[at].line));
    }
    end
}

/// Takes the tree of an import whose `use` is before `at`; returns the index after its semicolon.
fn import(tokens: &[Token], at: usize, imports: &mut Vec<Import>) -> usize {
    let before = |back: usize| at.checked_sub(back).and_then(|index| tokens.get(index));
    let is_public = before(2).is_some_and(|token| token.is("pub") || token.is(")"));
    let end = tokens[at..].iter().position(|token| token.is(";")).map_or(tokens.len(), |length| at + length);
    // `impl Trait + use<'a>` is no import.
    if !tokens.get(at).is_some_and(|token| token.is("<")) {
        tree(&tokens[at..end], &[], is_public, imports);
        return end + 1;
    }
    at
}

/// Takes one tree, `a::b::{c, d as e, *}`, below a path.
fn tree(tokens: &[Token], above: &[String], is_public: bool, imports: &mut Vec<Import>) {
    let mut path = above.to_vec();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let line = token.line;
        if token.is("{") {
            for branch in branches(&tokens[at..]) {
                tree(branch, &path, is_public, imports);
            }
            return;
        } else if token.is("*") {
            imports.push(Import { path, name: "*".to_owned(), is_public, line });
            return;
        } else if token.is("as") {
            let name = tokens.get(at).map_or_else(String::new, |token| token.text.clone());
            imports.push(Import { path, name, is_public, line });
            return;
        } else if token.kind == Kind::Word && (path.is_empty() || !token.is("self")) {
            path.push(token.text.clone());
        }
    }
    if let (Some(name), Some(token)) = (path.last().cloned(), tokens.first()) {
        imports.push(Import { path, name, is_public, line: token.line });
    }
}

/// The branches between a brace and its counterpart, split at the commas between them.
fn branches(tokens: &[Token]) -> Vec<&[Token]> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (at, token) in tokens.iter().enumerate() {
        if token.is("{") {
            depth += 1;
        } else if token.is("}") && depth > 0 {
            depth -= 1;
        } else if depth == 0 && (token.is(",") || token.is("}")) {
            found.push(&tokens[start..at]);
            start = at + 1;
            if token.is("}") {
                break;
            }
        }
    }
    found.retain(|branch| !branch.is_empty());
    found
}
