//! The frame of every page: head, navigation, table of the page's headings, links to the pages
//! before and after.

use crate::address::between;
use crate::contents::{Entry, Section};
use crate::highlight::escape;
use crate::markdown::Heading;

const FRAME: &str = include_str!("../assets/frame.html");
/// Pages have a list of their headings from this number on.
const HEADINGS_MIN: usize = 3;

/// The contents of a page within the frame.
pub struct Page<'a> {
    pub address: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub content: &'a str,
    pub headings: &'a [Heading],
    /// The file of the repository from which the page is made.
    pub source: Option<&'a str>,
    pub has_figure: bool,
    pub class: &'a str,
}

/// The parts that all pages have in common.
pub struct Frame<'a> {
    pub sections: &'a [Section],
    pub version: &'a str,
    pub has_playground: bool,
    /// The address of the page of an entry.
    pub address: &'a dyn Fn(&Entry) -> String,
}

impl Frame<'_> {
    /// Writes a page.
    pub fn page(&self, page: &Page) -> String {
        let to = |address: &str| between(page.address, address);
        let title = if page.title == "hoistway" { "hoistway".to_owned() } else { format!("{} - hoistway", page.title) };
        let script = format!("<script type=\"module\" src=\"{}\"></script>", to("playground/live-figure.js"));
        let playground = format!("<a href=\"{}\">Playground</a>", to("playground/index.html"));
        let values = [
            ("title", escape(&title)),
            ("description", escape(&shortened(page.description))),
            ("root", to("index.html").trim_end_matches("index.html").to_owned()),
            ("home", to("index.html")),
            ("contents", to("contents.html")),
            ("playground", if self.has_playground { playground } else { String::new() }),
            ("figures", if page.has_figure && self.has_playground { script } else { String::new() }),
            ("navigation", self.navigation(page)),
            ("headings", headings(page.headings)),
            ("class", page.class.to_owned()),
            ("neighbours", self.neighbours(page)),
            ("source", page.source.map_or(String::new(), |file| format!("Made from <code>{}</code>. ", escape(file)))),
            ("version", escape(self.version)),
            // The content is last, because it may contain the name of a value.
            ("content", page.content.to_owned()),
        ];
        let mut html = FRAME.to_owned();
        for (name, value) in values {
            html = html.replace(&format!("{{{{{name}}}}}"), &value);
        }
        html
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        crate::contents::entries(self.sections).map(|(_, entry)| entry)
    }

    /// The sections with their pages; only that of the page is open.
    fn navigation(&self, page: &Page) -> String {
        let mut html = String::new();
        for section in self.sections {
            let here = |entry: &Entry| (self.address)(entry) == page.address;
            let is_open = section.groups.iter().flat_map(|group| &group.entries).any(here);
            let open = if is_open { " open" } else { "" };
            html.push_str(&format!("<details{open}><summary>{}</summary>\n", escape(&section.title)));
            for group in &section.groups {
                if !group.title.is_empty() {
                    html.push_str(&format!("<p>{}</p>\n", escape(&group.title)));
                }
                html.push_str("<ul>\n");
                for entry in &group.entries {
                    let current = if here(entry) { " aria-current=\"page\"" } else { "" };
                    let address = between(page.address, &(self.address)(entry));
                    html.push_str(&format!("<li><a href=\"{address}\"{current}>{}</a></li>\n", escape(&entry.title)));
                }
                html.push_str("</ul>\n");
            }
            html.push_str("</details>\n");
        }
        html
    }

    /// Links to the pages before and after in the table of contents.
    fn neighbours(&self, page: &Page) -> String {
        let all: Vec<&Entry> = self.entries().collect();
        let Some(at) = all.iter().position(|entry| (self.address)(entry) == page.address) else { return String::new() };
        let link = |entry: &Entry, word: &str, class: &str| {
            let address = between(page.address, &(self.address)(entry));
            format!("<a class=\"{class}\" href=\"{address}\"><small>{word}</small>{}</a>", escape(&entry.title))
        };
        let before = at.checked_sub(1).map_or(String::new(), |at| link(all[at], "Previous", "before"));
        let after = all.get(at + 1).map_or(String::new(), |entry| link(entry, "Next", "after"));
        format!("<nav class=\"neighbours\" aria-label=\"Pages before and after\">{before}{after}</nav>")
    }
}

/// The list of a page's headings of the second level.
fn headings(all: &[Heading]) -> String {
    let second: Vec<&Heading> = all.iter().filter(|heading| heading.level == 2).collect();
    if second.len() < HEADINGS_MIN {
        return String::new();
    }
    let items: String = second
        .iter()
        .map(|heading| format!("<li><a href=\"#{}\">{}</a></li>\n", heading.id, escape(&heading.text)))
        .collect();
    format!(
        "<nav class=\"here\" aria-label=\"On this page\"><details open><summary>On this page</summary><ul>\n{items}</ul></details></nav>"
    )
}

/// A description of at most 200 characters, cut between words.
fn shortened(text: &str) -> String {
    if text.chars().count() <= 200 {
        return text.to_owned();
    }
    let cut: String = text.chars().take(197).collect();
    format!("{}...", cut.rsplit_once(' ').map_or(cut.as_str(), |(start, _)| start))
}
