//! The reference of the Python interface, from its sources: signatures and docstrings of the public
//! names.

use std::path::Path;

use anyhow::{Context, Result};

/// Writes the page of the package in a folder, in Markdown. The public names are those of `__all__`
/// in `__init__.py`.
pub fn page(folder: &Path) -> Result<String> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let init = read("__init__.py")?;
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".pyi") || (name.ends_with(".py") && name.starts_with('_')) {
            sources.push((name.clone(), read(&name)?));
        }
    }
    sources.sort();
    let mut page =
        "# Python API\n\nReference: the public names of the package `hoistway`, from its signatures and docstrings. \
                    [hoistway in Python](../../docs/python.md) shows how to use them.\n\n"
            .to_owned();
    let all = init.split_once("__all__ = [").map_or("", |(_, rest)| rest.split(']').next().unwrap_or(""));
    for name in all.split(',').map(|name| name.trim().trim_matches('"')).filter(|name| !name.is_empty()) {
        // A name may have a stub and a source: that with more text has the docstrings.
        let found = sources.iter().filter_map(|(_, text)| definition(text, name)).max_by_key(String::len);
        if let Some(text) = found {
            page.push_str(&text);
        }
    }
    let trace = read("trace.py")?;
    for line in trace.lines().filter(|line| line.starts_with("def ") && !line.starts_with("def _")) {
        let name = line["def ".len()..].split('(').next().unwrap_or_default();
        let text = definition(&trace, name).unwrap_or_default();
        page.push_str(&text.replacen(&format!("## `{name}"), &format!("## `trace.{name}"), 1));
    }
    Ok(page)
}

/// The section of a class or function at the top level of a source.
fn definition(text: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = |line: &str, word: &str| {
        line.strip_prefix(word)
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with(['(', ':']))
    };
    let at = lines.iter().position(|line| starts(line, "class ") || starts(line, "def "))?;
    let is_class = lines[at].starts_with("class ");
    let (signature, body) = signature(&lines, at);
    let (docstring, _) = docstring(&lines, body);
    let mut page = format!("## `{name}{}`\n\n", if is_class { "" } else { "()" });
    if !is_class || signature.contains('(') {
        page.push_str(&format!("```python\n{signature}\n```\n\n"));
    }
    page.push_str(&docstring);
    if is_class {
        let end = lines[at + 1..]
            .iter()
            .position(|line| !line.is_empty() && !line.starts_with([' ', ')']))
            .map_or(lines.len(), |n| at + 1 + n);
        page.push_str(&members(&lines[..end], at + 1));
    }
    Some(page)
}

/// The public attributes and methods of a class, as a list.
fn members(lines: &[&str], from: usize) -> String {
    let mut list = String::new();
    let mut at = from;
    while at < lines.len() {
        let line = lines[at];
        let name = line.strip_prefix("    def ").and_then(|rest| rest.split('(').next());
        if let Some(name) = name.filter(|name| !name.starts_with('_') || *name == "__init__") {
            let is_property = at > 0 && lines[at - 1].trim() == "@property";
            let (signature, body) = signature(lines, at);
            let (text, behind) = docstring(lines, body);
            let shown = match (is_property, signature.split_once("->")) {
                (true, Some((_, kind))) => format!("{name}: {}", kind.trim()),
                (true, None) => name.to_owned(),
                (false, _) => signature.trim_start_matches("def ").replace('\n', " "),
            };
            let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(").replace(", )", ")");
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            list.push_str(&format!("- `{shown}`{}{text}\n", if text.is_empty() { "" } else { "<br>" }));
            at = behind.max(at + 1);
        } else {
            at += 1;
        }
    }
    if list.is_empty() { list } else { format!("{list}\n") }
}

/// The signature of a definition without its colon, and the line after it.
fn signature(lines: &[&str], at: usize) -> (String, usize) {
    let indent = lines[at].len() - lines[at].trim_start().len();
    let mut taken = Vec::new();
    for (index, line) in lines.iter().enumerate().skip(at) {
        taken.push(line.get(indent..).unwrap_or_default());
        let line = line.trim_end().trim_end_matches("...").trim_end();
        if line.ends_with(':') {
            let text = taken.join("\n");
            return (text.trim_end_matches("...").trim_end().trim_end_matches(':').to_owned(), index + 1);
        }
    }
    (taken.join("\n"), lines.len())
}

/// The docstring at a line in Markdown, and the line after it.
fn docstring(lines: &[&str], at: usize) -> (String, usize) {
    let Some(first) = lines.get(at).map(|line| line.trim()) else { return (String::new(), at) };
    let Some(first) = first.strip_prefix("\"\"\"") else { return (String::new(), at) };
    if let Some(whole) = first.strip_suffix("\"\"\"") {
        return (format!("{}\n\n", whole.replace("``", "`")), at + 1);
    }
    let indent = lines[at].len() - lines[at].trim_start().len();
    let mut text = vec![first.replace("``", "`")];
    let mut in_session = false;
    for (index, line) in lines.iter().enumerate().skip(at + 1) {
        let end = line.strip_suffix("\"\"\"");
        let line = end.unwrap_or(line);
        let line = line.get(indent..).unwrap_or_else(|| line.trim());
        let is_session = line.starts_with(">>>") || (in_session && !line.is_empty());
        if is_session != in_session {
            text.push(if is_session { "```python".to_owned() } else { "```".to_owned() });
            in_session = is_session;
        }
        text.push(if is_session { line.to_owned() } else { line.replace("``", "`") });
        if end.is_some() {
            if in_session {
                text.push("```".to_owned());
            }
            return (format!("{}\n\n", text.join("\n").trim()), index + 1);
        }
    }
    (format!("{}\n\n", text.join("\n")), lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_its_members_and_a_function_its_signature() {
        let text = "class A:\n    \"\"\"An A.\"\"\"\n\n    @property\n    def size(self) -> int:\n        \"\"\"Its size.\"\"\"\n        return 1\n\n    def run(\n        self,\n        n: int,\n    ) -> str: ...\n    def _hidden(self): ...\n\ndef f(a: int) -> None:\n    \"\"\"Does ``a``.\n\n    >>> f(1)\n    2\n    \"\"\"\n";
        assert_eq!(
            definition(text, "A").as_deref(),
            Some("## `A`\n\nAn A.\n\n- `size: int`<br>Its size.\n- `run(self, n: int) -> str`\n\n")
        );
        assert_eq!(
            definition(text, "f").as_deref(),
            Some("## `f()`\n\n```python\ndef f(a: int) -> None\n```\n\nDoes `a`.\n\n```python\n>>> f(1)\n2\n```\n\n")
        );
        assert_eq!(definition(text, "g"), None);
    }
}
