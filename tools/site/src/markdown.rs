//! Markdown to HTML: headings with anchors, links between pages, coloured code, tables that scroll.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::diagram;
use crate::figure;
use crate::highlight::{self, escape};
use crate::picture;

/// Blocks of code with longer lines have smaller letters, in two steps. Output of commands has not:
/// sessions on one page look alike.
const WIDE_LINE: usize = 105;
const WIDER_LINE: usize = 119;
/// The columns of a tab, as in the style sheet.
const TAB: usize = 4;

/// The head of the first column of a table of terms.
const TERM_COLUMN: &str = "term";

/// Longer code in a cell of a table may be broken between its words.
const CELL_CODE_MAX: usize = 40;

/// The parts of the site that the rendering of a document needs.
pub trait Links {
    /// The address of a link of the document, without its fragment.
    fn link(&mut self, target: &str) -> Result<String>;
    /// True if a file that the document could link exists.
    fn exists(&self, target: &str) -> bool;
    /// The title of the page that a link of the document leads to, if the table of contents has
    /// it.
    fn title(&self, target: &str) -> Option<String>;
    /// The content of a live figure.
    fn figure(&mut self, figure: &figure::Figure) -> Result<String>;
}

/// A rendered document.
#[derive(Debug, Default)]
pub struct Rendered {
    pub html: String,
    /// The text of the first heading.
    pub title: String,
    /// The first paragraph.
    pub description: String,
    pub headings: Vec<Heading>,
    /// The rows of tables of terms.
    pub terms: Vec<Term>,
    /// The text below each heading, for the search: the index of the heading, and the text.
    pub text: Vec<(usize, String)>,
    pub has_figure: bool,
}

/// A heading of a document.
#[derive(Debug)]
pub struct Heading {
    pub level: usize,
    pub id: String,
    pub text: String,
}

/// A row of a table whose first column is `term`.
#[derive(Debug)]
pub struct Term {
    pub id: String,
    pub name: String,
    pub meaning: String,
}

/// Renders a document.
pub fn render(text: &str, links: &mut dyn Links) -> Result<Rendered> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES;
    let events: Vec<Event> = Parser::new_ext(text, options).collect();
    let mut writer = Writer {
        rendered: Rendered::default(),
        ids: BTreeMap::new(),
        events: Vec::new(),
        in_table: false,
        has_terms: false,
        file: None,
        links,
    };
    let mut at = 0;
    while at < events.len() {
        at = writer.event(&events, at)?;
    }
    let mut page = String::with_capacity(text.len() * 2);
    html::push_html(&mut page, writer.events.into_iter());
    let mut rendered = writer.rendered;
    // The policy of the pages forbids styles in attributes.
    for side in ["right", "left", "center"] {
        page = page.replace(&format!(" style=\"text-align: {side}\""), &format!(" class=\"{side}\""));
    }
    // A heading of a column without text is an empty cell.
    for class in ["", " class=\"right\"", " class=\"left\"", " class=\"center\""] {
        page = page.replace(&format!("<th{class}></th>"), "<td></td>");
    }
    page = with_ids(&with_ids(&page, "<li>"), "<tr><td>");
    rendered.html = page;
    Ok(rendered)
}

struct Writer<'a, 'l> {
    rendered: Rendered,
    /// How often each anchor was used.
    ids: BTreeMap<String, usize>,
    events: Vec<Event<'a>>,
    in_table: bool,
    /// True in a table of terms.
    has_terms: bool,
    /// The file that the next block of code shows.
    file: Option<String>,
    links: &'l mut dyn Links,
}

impl<'a> Writer<'a, '_> {
    /// Takes the event at an index, and returns the index after what it took.
    fn event(&mut self, events: &[Event<'a>], at: usize) -> Result<usize> {
        match &events[at] {
            Event::Start(Tag::Heading { level, .. }) => {
                let end = end_of(events, at, |tag| matches!(tag, TagEnd::Heading(_)));
                self.heading(*level, &events[at + 1..end])?;
                return Ok(end + 1);
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let end = end_of(events, at, |tag| *tag == TagEnd::CodeBlock);
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                let code = plain(&events[at + 1..end]);
                self.code(&info, &code)?;
                return Ok(end + 1);
            }
            Event::Start(Tag::Paragraph) if self.rendered.description.is_empty() => {
                let end = end_of(events, at, |tag| *tag == TagEnd::Paragraph);
                self.rendered.description = plain(&events[at + 1..end]);
                self.events.push(events[at].clone());
            }
            Event::Start(Tag::Table(_)) => self.table(events, at),
            Event::Start(Tag::TableRow) if self.has_terms => {
                self.term(events, at);
                return Ok(at + 2);
            }
            Event::End(TagEnd::Table) => {
                self.in_table = false;
                self.events.push(events[at].clone());
                self.html("</div>");
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let page = self.page_of(dest_url, &events[at + 1..]);
                let dest_url = self.address(dest_url)?.into();
                let (link_type, title, id) = (*link_type, title.clone(), id.clone());
                self.events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                if let Some(page) = page {
                    self.remember(&page);
                    self.events.push(Event::Text(page.into()));
                    return Ok(at + 2);
                }
            }
            Event::Start(Tag::Image { dest_url, .. }) if self.has_variants(dest_url) => {
                let end = end_of(events, at, |tag| *tag == TagEnd::Image);
                self.picture(dest_url, &plain(&events[at + 1..end]))?;
                return Ok(end + 1);
            }
            Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                let dest_url = self.address(dest_url)?.into();
                let (link_type, title, id) = (*link_type, title.clone(), id.clone());
                self.events.push(Event::Start(Tag::Image { link_type, dest_url, title, id }));
            }
            Event::Code(text) if self.in_table => {
                self.remember(text);
                let class = if text.chars().count() > CELL_CODE_MAX { " class=\"long\"" } else { "" };
                self.html(format!("<code{class}>{}</code>", highlight::words(text)));
            }
            Event::Html(text) | Event::InlineHtml(text) => self.comment(text)?,
            event => {
                if let Event::Text(text) | Event::Code(text) = event {
                    self.remember(text);
                }
                if let Event::SoftBreak | Event::HardBreak | Event::End(_) = event {
                    self.remember(" ");
                }
                self.events.push(event.clone());
            }
        }
        Ok(at + 1)
    }

    fn html(&mut self, text: impl Into<CowStr<'a>>) {
        self.events.push(Event::Html(text.into()));
    }

    /// Adds text to what the search finds below the last heading.
    fn remember(&mut self, text: &str) {
        let heading = self.rendered.headings.len().saturating_sub(1);
        match self.rendered.text.last_mut() {
            Some((last, all)) if *last == heading => all.push_str(text),
            _ => self.rendered.text.push((heading, text.to_owned())),
        }
    }

    /// The address of a link with its fragment.
    fn address(&mut self, target: &str) -> Result<String> {
        if target.contains("://") || target.starts_with("mailto:") || target.starts_with('#') {
            return Ok(target.to_owned());
        }
        let (file, fragment) = target.split_once('#').map_or((target, None), |(file, fragment)| (file, Some(fragment)));
        let address = self.links.link(file)?;
        Ok(fragment.map_or(address.clone(), |fragment| format!("{address}#{fragment}")))
    }

    /// Writes a picture with its variants.
    fn picture(&mut self, target: &str, text: &str) -> Result<()> {
        let address = self.address(target)?;
        let [narrow, dark, narrow_dark] = picture::VARIANTS.map(|suffix| picture::variant(target, suffix));
        let variants = [self.address(&narrow)?, self.address(&dark)?, self.address(&narrow_dark)?];
        self.html(picture::html(&address, &variants, text));
        Ok(())
    }

    /// True if a picture has all its variants.
    fn has_variants(&self, target: &str) -> bool {
        picture::VARIANTS.iter().all(|suffix| self.links.exists(&picture::variant(target, suffix)))
    }

    /// The title of the linked page, if the text of the link, which follows, is the name of a file:
    /// pages of the site have titles, not files.
    fn page_of(&self, target: &str, following: &[Event]) -> Option<String> {
        let [Event::Text(text), Event::End(TagEnd::Link), ..] = following else { return None };
        let file = target.split('#').next().unwrap_or_default();
        (text.ends_with(".md") && file.ends_with(text.as_ref())).then(|| self.links.title(file)).flatten()
    }

    fn heading(&mut self, level: HeadingLevel, inner: &[Event<'a>]) -> Result<()> {
        let text = plain(inner);
        let id = self.id(&text);
        let level = level as usize;
        if level == 1 && self.rendered.title.is_empty() {
            self.rendered.title.clone_from(&text);
        }
        self.rendered.headings.push(Heading { level, id: id.clone(), text: text.clone() });
        self.html(format!("<h{level} id=\"{id}\">"));
        let mut at = 0;
        while at < inner.len() {
            at = self.event(inner, at)?;
        }
        self.remember(" ");
        let anchor = format!("<a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to {}\">#</a>", escape(&text));
        self.html(if level == 1 { "</h1>\n".to_owned() } else { format!(" {anchor}</h{level}>\n") });
        Ok(())
    }

    /// The anchor of a heading or a term.
    fn id(&mut self, text: &str) -> String {
        let slug = slug(text);
        let used = self.ids.entry(slug.clone()).or_insert(0);
        let id = if *used == 0 { slug.clone() } else { format!("{slug}-{used}") };
        *used += 1;
        id
    }

    /// Begins the table at an index.
    fn table(&mut self, events: &[Event<'a>], at: usize) {
        self.in_table = true;
        let end = end_of(events, at, |tag| *tag == TagEnd::TableCell);
        self.has_terms = plain(&events[at..end]) == TERM_COLUMN;
        self.html("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">");
        self.events.push(events[at].clone());
    }

    /// Begins the row of a table of terms at an index, and its first cell, which has the anchor.
    fn term(&mut self, events: &[Event<'a>], at: usize) {
        self.events.extend_from_slice(&events[at..at + 2]);
        let row = &events[..end_of(events, at, |tag| *tag == TagEnd::TableRow)];
        let cell_end = end_of(row, at, |tag| *tag == TagEnd::TableCell);
        let (name, meaning) = (plain(&row[at..cell_end]), plain(&row[cell_end..]));
        let id = self.id(&name);
        self.html(format!("<a id=\"{id}\"></a>"));
        self.rendered.terms.push(Term { id, name, meaning });
    }

    /// Writes a block of code with the name of its file, or with what its session needs.
    fn code(&mut self, info: &str, code: &str) -> Result<()> {
        let mut words = info.split([' ', ',']).filter(|word| !word.is_empty());
        let language = words.next().unwrap_or_default();
        if language == "mermaid" {
            let drawn = diagram::svg(code, "The drawing of the table below")?;
            self.html(format!(
                "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Diagram\">{drawn}</div>\n"
            ));
            return Ok(());
        }
        self.remember(code);
        let needs: Vec<&str> = words.clone().filter_map(|word| word.strip_prefix("needs=")).collect();
        let label = match self.file.take() {
            Some(file) => file,
            None if language == "console" && words.any(|word| word == "no-run") => {
                "an example, not run by the tests".to_owned()
            }
            None if language == "console" && !needs.is_empty() => format!("needs {}", needs.join(", ")),
            None => String::new(),
        };
        let label = if label.is_empty() { label } else { format!("<p class=\"label\">{}</p>", escape(&label)) };
        let name = if language == "console" { "Session" } else { "Code" };
        let coloured = highlight::code(language, code);
        let columns = |line: &str| line.chars().map(|letter| if letter == '\t' { TAB } else { 1 }).sum::<usize>();
        let size = match code.lines().map(columns).max() {
            Some(longest) if language != "console" && longest > WIDER_LINE => " wider",
            Some(longest) if language != "console" && longest > WIDE_LINE => " wide",
            _ => "",
        };
        let language = format!("{language}{size}");
        self.html(format!(
            "<div class=\"code {}\">{label}<pre tabindex=\"0\" role=\"group\" aria-label=\"{name}\"><code>{coloured}</code></pre></div>\n",
            escape(language.trim())
        ));
        Ok(())
    }

    /// Takes HTML of a document: comments are instructions, the rest is kept.
    fn comment(&mut self, text: &CowStr<'a>) -> Result<()> {
        let trimmed = text.trim();
        if let Some(figure) = figure::parse(trimmed)? {
            let html = self.links.figure(&figure).context("a live figure")?;
            self.rendered.has_figure = true;
            self.html(html);
        } else if let Some(file) = trimmed.strip_prefix("<!-- file: ").and_then(|rest| rest.strip_suffix(" -->")) {
            self.file = Some(file.to_owned());
        } else if !trimmed.starts_with("<!--") {
            self.events.push(Event::Html(text.clone()));
        }
        Ok(())
    }
}

/// Makes the empty anchors at the beginning of elements the ids of these elements:
/// `<li><a id="x"></a>` becomes `<li id="x">`. Items of lists get a link to themselves, too.
fn with_ids(page: &str, start: &str) -> String {
    let (element, cell) = start.split_once('>').unwrap_or((start, ""));
    let mark = format!("{start}<a id=\"");
    let mut parts = page.split(&mark);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (id, rest) = part.split_once("\"></a>").unwrap_or((part, ""));
        let link = format!("<a class=\"anchor\" href=\"#{id}\" aria-label=\"Link to {id}\">#</a>");
        let link = if element == "<li" { link } else { String::new() };
        text.push_str(&format!("{element} id=\"{id}\">{cell}{link}{rest}"));
    }
    text
}

/// The index of the event that ends the one at `at`. Elements of these kinds do not nest.
fn end_of(events: &[Event], at: usize, is_end: impl Fn(&TagEnd) -> bool) -> usize {
    let end = events[at..].iter().position(|event| matches!(event, Event::End(tag) if is_end(tag)));
    end.map_or(events.len() - 1, |end| at + end)
}

/// The text of events without their marks.
fn plain(events: &[Event]) -> String {
    let text = events.iter().map(|event| match event {
        Event::Text(text) | Event::Code(text) => text.to_string(),
        Event::SoftBreak | Event::HardBreak => " ".to_owned(),
        _ => String::new(),
    });
    text.collect()
}

/// The anchor of a heading, as hosts of repositories make it.
fn slug(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;

    impl Links for Fixed {
        fn link(&mut self, target: &str) -> Result<String> {
            Ok(target.replace(".md", ".html"))
        }

        fn exists(&self, target: &str) -> bool {
            target.starts_with("docs/themed")
        }

        fn title(&self, target: &str) -> Option<String> {
            (target == "docs/b.md").then(|| "All of B".to_owned())
        }

        fn figure(&mut self, figure: &figure::Figure) -> Result<String> {
            Ok(format!("<figure>{}</figure>", figure.job))
        }
    }

    fn html(text: &str) -> String {
        render(text, &mut Fixed).expect("a document").html
    }

    #[test]
    fn pictures_with_variants_have_one_for_each_theme() {
        assert!(html("![a *b*](docs/themed.png)").contains("<img src=\"docs/themed-dark.png\" alt=\"a b\""));
        assert!(!html("![a *b*](docs/plain.png)").contains("<picture"));
    }

    #[test]
    fn headings_have_the_anchors_of_hosts() {
        assert_eq!(slug("Predict: `trace whatif`, A_b"), "predict-trace-whatif-a_b");
        let rendered = render("# T\n\nFirst.\n\n## A b\n\n## A b\n", &mut Fixed).expect("a document");
        let ids: Vec<_> = rendered.headings.iter().map(|heading| heading.id.as_str()).collect();
        assert_eq!(ids, ["t", "a-b", "a-b-1"]);
        let text: Vec<_> = rendered.text.iter().map(|(heading, text)| (*heading, text.trim())).collect();
        assert_eq!(text, [(0, "T First."), (1, "A b"), (2, "A b")], "what the search finds");
        assert_eq!((rendered.title.as_str(), rendered.description.as_str()), ("T", "First."));
    }

    #[test]
    fn links_lead_to_pages_and_keep_fragments() {
        assert!(html("[a](b.md#c) [d](https://e/f.md) [g](#h)").contains("href=\"b.html#c\""));
        assert!(html("[d](https://e/f.md)").contains("href=\"https://e/f.md\""));
    }

    #[test]
    fn a_link_whose_text_is_its_file_has_the_title_of_the_page() {
        assert!(html("[docs/b.md](docs/b.md#c)").contains("href=\"docs/b.html#c\">All of B</a>"));
        assert!(html("[b.md](docs/b.md)").contains(">All of B</a>"));
        assert!(html("[x.md](x.md)").contains(">x.md</a>"), "a page without a title");
        assert!(html("[b](docs/b.md)").contains(">b</a>"));
    }

    #[test]
    fn blocks_with_long_lines_have_smaller_letters_but_for_sessions() {
        let long = "x".repeat(WIDE_LINE + 1);
        assert!(html(&format!("```text\n{long}\n```")).contains("class=\"code text wide\""));
        assert!(html(&format!("```\n{long}\n```")).contains("class=\"code wide\""));
        assert!(html(&format!("```c\n\t\t\t\t{long}\n```")).contains("class=\"code c wider\""));
        assert!(html(&format!("```console\n$ {long}\n```")).contains("class=\"code console\""));
        assert!(html("```text\nx\n```").contains("class=\"code text\""));
    }

    #[test]
    fn long_code_in_a_cell_may_be_broken() {
        let long = "rw=randread ".repeat(5);
        let cell = |code: &str| html(&format!("| a |\n|---|\n| `{code}` |\n"));
        assert!(cell(long.trim()).contains("<code class=\"long\">rw=randread rw="));
        assert!(cell("rw=randread").contains("<code>rw=randread</code>"));
        assert!(cell("a --b").contains("<code>a <span class=\"word\">--b</span></code>"));
        assert!(html(&format!("`{}`", long.trim())).contains("<code>rw="), "outside of a table");
    }

    #[test]
    fn tables_scroll_and_have_no_styles() {
        let html = html("| a | b |\n|---|---:|\n| 1 | 2 |\n");
        assert!(html.contains("<div class=\"scroll\"") && html.contains("<td class=\"right\">2</td>"), "{html}");
    }

    #[test]
    fn rows_of_terms_and_items_with_anchors_have_ids_and_links() {
        let rendered =
            render("| term | meaning |\n|---|---|\n| arm, `a_b` | It *moves*. |\n", &mut Fixed).expect("a table");
        assert!(rendered.html.contains("<tr id=\"arm-a_b\"><td>arm, <code>"), "{}", rendered.html);
        let term = &rendered.terms[0];
        assert_eq!((term.name.as_str(), term.meaning.as_str()), ("arm, a_b", "It moves."));
        assert!(html("| a | b |\n|---|---|\n| c | d |\n").contains("<tr><td>c"), "a table of other things");
        let item = html("- <a id=\"x--y\"></a>`--y`: it\n");
        assert!(item.contains("<li id=\"x--y\"><a class=\"anchor\" href=\"#x--y\""), "{item}");
        assert!(item.contains("</a><code>--y</code>: it</li>"), "{item}");
    }

    #[test]
    fn comments_are_instructions() {
        let html = html(
            "<!-- begin: x -->\n\n<!-- file: a.toml -->\n```toml\na = 1\n```\n\n<!-- figure: job=j drive=d elevators=e -->\n",
        );
        assert!(!html.contains("<!--") && html.contains("<p class=\"label\">a.toml</p>"), "{html}");
        assert!(html.contains("<figure>j</figure>"), "{html}");
    }
}
