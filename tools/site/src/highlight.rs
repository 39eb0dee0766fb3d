//! Colours of code, as spans in HTML.

/// Escapes text for HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The lexical rules of a language.
struct Language {
    /// The text that begins a comment to the end of the line.
    comments: &'static [&'static str],
    /// The delimiters of comments over several lines.
    block: Option<(&'static str, &'static str)>,
    quotes: &'static [char],
    keywords: &'static [&'static str],
    /// `[section]` at the beginning of a line, and `key =`.
    has_sections: bool,
}

const C: Language = Language {
    comments: &["//"],
    block: Some(("/*", "*/")),
    quotes: &['"', '\''],
    keywords: &[
        "break", "case", "char", "const", "else", "enum", "extern", "for", "if", "int", "long", "return", "size_t",
        "sizeof", "static", "struct", "switch", "typedef", "uint16_t", "uint32_t", "uint64_t", "uint8_t", "int64_t",
        "unsigned", "void", "while",
    ],
    has_sections: false,
};
const RUST: Language = Language {
    comments: &["//"],
    block: Some(("/*", "*/")),
    quotes: &['"'],
    keywords: &[
        "as", "const", "else", "enum", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod", "move", "mut",
        "pub", "ref", "return", "self", "Self", "static", "struct", "trait", "type", "use", "where", "while", "true",
        "false", "crate",
    ],
    has_sections: false,
};
const PYTHON: Language = Language {
    comments: &["#"],
    block: Some(("\"\"\"", "\"\"\"")),
    quotes: &['"', '\''],
    keywords: &[
        "and", "as", "assert", "class", "def", "del", "elif", "else", "except", "False", "finally", "for", "from",
        "if", "import", "in", "is", "lambda", "None", "not", "or", "pass", "raise", "return", "True", "try", "while",
        "with", "yield",
    ],
    has_sections: false,
};
const SHELL: Language = Language {
    comments: &["#"],
    block: None,
    quotes: &['"', '\''],
    keywords: &[
        "case", "do", "done", "elif", "else", "esac", "exec", "exit", "export", "fi", "for", "function", "if", "in",
        "set", "then", "while",
    ],
    has_sections: false,
};
const SETTINGS: Language =
    Language { comments: &["#", ";"], block: None, quotes: &['"'], keywords: &["true", "false"], has_sections: true };
const JSON: Language =
    Language { comments: &[], block: None, quotes: &['"'], keywords: &["true", "false", "null"], has_sections: false };

/// The longest word that is kept on one line.
const WORD_MAX: usize = 36;

/// Escapes a line that may be broken between its words. A browser would also break a word at a
/// hyphen, so that `--set` became `--` and `set`.
pub fn words(line: &str) -> String {
    let word = |word: &str| {
        let is_kept = word.contains('-') && word.len() <= WORD_MAX;
        if is_kept { format!("<span class=\"word\">{}</span>", escape(word)) } else { escape(word) }
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Colours code in the language of a fence or of the end of a file's name.
pub fn code(language: &str, text: &str) -> String {
    let language = match language {
        "console" => return console(text),
        "c" | "h" => &C,
        "rust" | "rs" => &RUST,
        "python" | "py" | "pyi" => &PYTHON,
        "sh" | "bash" => &SHELL,
        "toml" | "ini" | "fio" | "conf" | "yaml" | "yml" | "service" | "udev" | "fstab" => &SETTINGS,
        "json" | "jsonl" | "ipynb" => &JSON,
        _ => return escape(text),
    };
    tokens(language, text)
}

/// A session: marks of commands are not selectable, commands stand out from their output.
fn console(text: &str) -> String {
    let mut html = String::new();
    let mut in_command = false;
    for line in text.lines() {
        let is_more = in_command && line.starts_with("> ");
        match line.split_at_checked(2) {
            Some((sign @ ("$ " | "# "), command)) => {
                html.push_str(&format!("<span class=\"sign\">{sign}</span><b>{}</b>", words(command)));
                in_command = true;
            }
            Some((sign, command)) if is_more => {
                html.push_str(&format!("<span class=\"sign\">{}</span><b>{}</b>", escape(sign), words(command)));
            }
            _ => {
                html.push_str(&escape(line));
                in_command = false;
            }
        }
        html.push('\n');
    }
    html
}

fn tokens(language: &Language, text: &str) -> String {
    let mut html = String::with_capacity(text.len() * 2);
    let mut rest = text;
    let mut is_line_start = true;
    while let Some(first) = rest.chars().next() {
        let (length, class) = token(language, rest, first, is_line_start);
        let (word, behind) = rest.split_at(length);
        match class {
            "" => html.push_str(&escape(word)),
            class => html.push_str(&format!("<span class=\"{class}\">{}</span>", escape(word))),
        }
        is_line_start = word.ends_with('\n') || (is_line_start && word.trim().is_empty());
        rest = behind;
    }
    html
}

/// The length and the class of the token at the beginning of `rest`.
fn token(language: &Language, rest: &str, first: char, is_line_start: bool) -> (usize, &'static str) {
    let line = rest.find('\n').unwrap_or(rest.len());
    if let Some((open, close)) = language.block.filter(|(open, _)| rest.starts_with(open)) {
        let end = rest[open.len()..].find(close).map_or(rest.len(), |at| open.len() + at + close.len());
        return (end, "comment");
    }
    if language.comments.iter().any(|comment| rest.starts_with(comment)) {
        return (line, "comment");
    }
    if language.has_sections && is_line_start && first == '[' {
        return (line, "keyword");
    }
    if language.quotes.contains(&first) {
        return (quoted(&rest[..line], first), "string");
    }
    if first.is_alphanumeric() || first == '_' {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = &rest[..end];
        let is_key = language.has_sections && is_line_start && rest[end..line].trim_start().starts_with('=');
        let class = match () {
            () if language.keywords.contains(&word) => "keyword",
            () if is_key => "key",
            () if first.is_ascii_digit() => "number",
            () => "",
        };
        return (end, class);
    }
    (first.len_utf8(), "")
}

/// The length of a quoted string at the beginning of a line's rest, which ends with the line at the
/// latest.
fn quoted(line: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in line.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_hyphens_are_kept_on_one_line() {
        assert_eq!(words("a --set=<b>  c"), "a <span class=\"word\">--set=&lt;b&gt;</span>  c");
        assert!(!words(&"long-".repeat(20)).contains("span"));
    }

    #[test]
    fn no_character_is_lost() {
        let text = "[a]\nkey = \"v\\\"w\" # <c>\n/* x\n y */ fn é() { 'a' }\n";
        for language in ["c", "rust", "python", "sh", "toml", "json", "text", ""] {
            let html = code(language, text);
            let mut plain = String::new();
            let mut in_tag = false;
            for c in html.chars() {
                match c {
                    '<' => in_tag = true,
                    '>' => in_tag = false,
                    c if !in_tag => plain.push(c),
                    _ => {}
                }
            }
            assert_eq!(plain, escape(text), "{language}");
        }
    }

    #[test]
    fn commands_stand_out_from_output() {
        assert_eq!(
            code("console", "$ ls > a\n> b\nout > x\n"),
            "<span class=\"sign\">$ </span><b>ls &gt; a</b>\n<span class=\"sign\">&gt; </span><b>b</b>\nout &gt; x\n"
        );
    }

    #[test]
    fn keys_and_sections_of_settings() {
        assert_eq!(
            code("toml", "[x]\na = 1\n"),
            "<span class=\"keyword\">[x]</span>\n<span class=\"key\">a</span> = <span class=\"number\">1</span>\n"
        );
    }
}
