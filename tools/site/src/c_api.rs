//! The reference of the C interface, from the comments of its header.

/// Writes the page of a header, in Markdown: a section for each declaration, with its comment.
pub fn page(path: &str, header: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let mut page = format!(
        "# C API: `{name}`\n\nReference: the functions, types and constants of the C library, from the comments of its header. \
         [The C library](../../../docs/c-library.md) shows how to build a program with it.\n\n"
    );
    let header = header.split_once("*/").map_or(header, |(first, rest)| {
        page.push_str(&prose(first));
        rest
    });
    let mut rest = header;
    while let Some(at) = comment(rest) {
        let Some((text, behind)) = rest[at + 2..].split_once("*/") else { break };
        let behind = behind.trim_start_matches(['\n', ' ']);
        let end = declaration(behind);
        let declared = behind[..end].trim_end();
        match title(declared) {
            Some(title) => page.push_str(&format!("## `{title}`\n\n{}\n```c\n{declared}\n```\n\n", prose(text))),
            None => page.push_str(&prose(text)),
        }
        rest = &behind[end..];
    }
    page
}

/// The place of the next comment that begins a line.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("/*") { Some(0) } else { text.find("\n/*").map(|at| at + 1) }
}

/// The length of the declarations after a comment: up to a blank line outside of braces.
fn declaration(text: &str) -> usize {
    let (mut depth, mut length) = (0i32, 0);
    for line in text.split_inclusive('\n') {
        if (line.trim().is_empty() && depth <= 0) || line.starts_with("/*") || line.starts_with("#endif") {
            break;
        }
        depth += line.matches('{').count() as i32 - line.matches('}').count() as i32;
        length += line.len();
    }
    length
}

/// The name that a declaration declares first.
fn title(declared: &str) -> Option<String> {
    if let Some(rest) = declared.strip_prefix("#define ") {
        return rest.split([' ', '(']).next().map(str::to_owned);
    }
    let first = declared.split(['(', '{', ';']).next()?.trim();
    let name = first.rsplit([' ', '*']).next()?;
    let starts = ["struct ", "enum "].iter().any(|word| first.starts_with(word));
    match () {
        () if declared.starts_with('#') || name.is_empty() || !name.contains("hoistway") => None,
        () if declared.split(['{', ';']).next()?.contains('(') => Some(format!("{name}()")),
        () if starts => Some(first.to_owned()),
        () => Some(name.to_owned()),
    }
}

/// The text of a comment in Markdown; code in it is indented by four blanks.
fn prose(comment: &str) -> String {
    let lines = comment.trim_start_matches("/*").lines().map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix('*').unwrap_or(line);
        line.strip_prefix(' ').unwrap_or(line).trim_end()
    });
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("SPDX-")).collect();
    // Names of identifiers are no emphasis.
    let text = lines.iter().map(|line| {
        if line.starts_with("    ") { (*line).to_owned() } else { line.replace('_', "\\_").replace('*', "\\*") }
    });
    format!("{}\n\n", text.collect::<Vec<_>>().join("\n").trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_has_its_comment_and_declaration() {
        let header = "/*\n * Library.\n */\n#ifndef A\n\n/* Ends a_b. */\nint hoistway_end(int a,\n\tint b);\n\n/* Sizes. */\nstruct hoistway_size {\n\tint a; /* x */\n\n\tint b;\n};\n";
        let page = page("a/h.h", header);
        assert!(page.contains("Library."), "{page}");
        assert!(
            page.contains("## `hoistway_end()`\n\nEnds a\\_b.\n\n\n```c\nint hoistway_end(int a,\n\tint b);\n```"),
            "{page}"
        );
        assert!(page.contains("## `struct hoistway_size`") && page.contains("int b;\n};\n```"), "{page}");
    }
}
