//! The check of a built site: every link and anchor leads to a target, nothing is loaded from other
//! hosts, and every page has a title and a description.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::address;

/// The facts about a page that the check uses.
#[derive(Default)]
struct Facts {
    anchors: BTreeSet<String>,
    /// Attributes that name other files: the element, and the value.
    references: Vec<(String, String)>,
}

/// Returns the faults of the site in a directory, one a line.
pub fn findings(site: &Path) -> Result<Vec<String>> {
    let mut files = BTreeSet::new();
    collect(site, "", &mut files)?;
    let mut pages: BTreeMap<&str, Facts> = BTreeMap::new();
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.ends_with(".html")) {
        let html = fs::read_to_string(site.join(file)).with_context(|| format!("cannot read {file}"))?;
        found.extend(faults_of_page(file, &html));
        pages.insert(file, facts(&html));
    }
    for (page, facts) in &pages {
        for (element, value) in &facts.references {
            let fault = fault(page, element, value, &files, &pages);
            found.extend(fault.map(|fault| format!("{page}: {fault}")));
        }
    }
    for file in files.iter().filter(|file| file.ends_with(".css") || file.ends_with(".js")) {
        let text = fs::read_to_string(site.join(file)).with_context(|| format!("cannot read {file}"))?;
        if file.ends_with(".css") && (text.contains("url(http") || text.contains("@import")) {
            found.push(format!("{file}: loads a style or picture from another place"));
        }
    }
    Ok(found)
}

/// Faults of a page alone.
fn faults_of_page(page: &str, html: &str) -> Vec<String> {
    let mut found = Vec::new();
    let title =
        html.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).map_or("", |(title, _)| title);
    if title.trim().is_empty() || title.starts_with(" - ") {
        found.push(format!("{page}: no title"));
    }
    let description =
        html.split_once("<meta name=\"description\" content=\"").and_then(|(_, rest)| rest.split_once('"'));
    if description.is_none_or(|(text, _)| text.trim().is_empty()) {
        found.push(format!("{page}: no description"));
    }
    for (word, fault) in [
        (" style=\"", "a style in an attribute"),
        ("<script>", "a script in the page"),
        (" onclick=", "a script in an attribute"),
    ] {
        if html.contains(word) {
            found.push(format!("{page}: {fault}, which the policy of the page forbids"));
        }
    }
    let ids =
        html.match_indices(" id=\"").map(|(at, word)| html[at + word.len()..].split('"').next().unwrap_or_default());
    let mut seen = BTreeSet::new();
    found.extend(ids.filter(|id| !seen.insert(*id)).map(|id| format!("{page}: two elements have the id {id}")));
    found
}

/// Reads the anchors and references of a page, which the generator wrote: attributes have double
/// quotes, and `<` in text is escaped.
fn facts(html: &str) -> Facts {
    let mut facts = Facts::default();
    for tag in html.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        let element = tag.split([' ', '\n']).next().unwrap_or_default();
        for attribute in [" id=\"", " href=\"", " src=\"", " srcset=\"", " action=\""] {
            let Some((_, rest)) = tag.split_once(attribute) else { continue };
            let value = rest.split('"').next().unwrap_or_default().replace("&amp;", "&");
            if attribute == " id=\"" {
                facts.anchors.insert(value);
            } else {
                facts.references.push((element.to_owned(), value));
            }
        }
    }
    facts
}

/// Returns what is wrong with a reference of a page.
fn fault(
    page: &str,
    element: &str,
    value: &str,
    files: &BTreeSet<String>,
    pages: &BTreeMap<&str, Facts>,
) -> Option<String> {
    if value.contains("://") || value.starts_with("//") || value.starts_with("data:") {
        // An icon `data:,` keeps browsers from a request for one.
        let is_fault = element != "a" && value != "data:,";
        return is_fault.then(|| format!("<{element}> loads {value} from another host"));
    }
    if value.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = value.split_once('#').unwrap_or((value, ""));
    let target = if path.is_empty() { Some(page.to_owned()) } else { address::resolve(page, path) };
    let Some(target) = target.filter(|target| files.contains(target)) else {
        return Some(format!("the link to {value} leads nowhere"));
    };
    let decoded = percent_decoded(fragment);
    let anchors = pages.get(target.as_str()).map(|facts| &facts.anchors);
    let is_missing = !fragment.is_empty() && anchors.is_some_and(|anchors| !anchors.contains(&decoded));
    is_missing.then(|| format!("the link to {value} leads to no heading of {target}"))
}

/// Decodes the `%xx` of a fragment.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let code = behind.get(..2).filter(|_| first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Collects the files below a directory as paths from the root of the site.
fn collect(folder: &Path, prefix: &str, files: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.insert(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> String {
        format!("<title>t</title><meta name=\"description\" content=\"d\">{body}")
    }

    #[test]
    fn dead_links_anchors_and_other_hosts_are_found() {
        let folder = tempfile::tempdir().expect("a directory");
        let put = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
        put(
            "a.html",
            &page(
                "<a href=\"b.html#x\">1</a><a href=\"b.html#y\">2</a><a href=\"c.html\">3</a><a href=\"https://e/\">4</a><img src=\"https://e/f.png\"><a href=\"#z\">5</a>",
            ),
        );
        put("b.html", &page("<h2 id=\"x\">X</h2>"));
        put("d.html", "<p style=\"a\" id=\"p\"></p><p id=\"p\"></p>");
        let found = findings(folder.path()).expect("a site");
        assert_eq!(
            found,
            [
                "d.html: no title",
                "d.html: no description",
                "d.html: a style in an attribute, which the policy of the page forbids",
                "d.html: two elements have the id p",
                "a.html: the link to b.html#y leads to no heading of b.html",
                "a.html: the link to c.html leads nowhere",
                "a.html: <img> loads https://e/f.png from another host",
                "a.html: the link to #z leads to no heading of a.html",
            ]
        );
    }
}
