//! Builds the site: documents, generated references, pages of linked files, assets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::address;
use crate::contents::{self, Entry, Section};
use crate::figure::Figure;
use crate::frame::{Frame, Page};
use crate::highlight;
use crate::index::Index;
use crate::markdown::{self, Links, Rendered};
use crate::{c_api, python_api};

/// The file that marks a directory as a site, which may be emptied.
const MARK: &str = ".hoistway-site";
/// The folder of the pages of the commands.
const COMMANDS: &str = "commands";
const PYTHON_API: &str = "python/hoistway/_hoistway.pyi";
/// The header of the C library; its reference is made from it.
const C_API: &str = "crates/capi/include/hoistway.h";
/// The test that runs the sessions of documents; its constants list the documents.
const SESSION_TESTS: &str = "crates/cli/tests/it/console/mod.rs";
/// The document whose terms the search finds first.
const GLOSSARY: &str = "docs/glossary.md";
/// Files that are copied instead of shown.
const PICTURES: &[&str] = &["png", "svg", "jpg"];
/// The largest file that a page shows.
const SHOWN_MAX: usize = 200_000;

/// Builds the site and returns the number of its pages.
pub fn build(root: &Path, to: &Path, program: &Path, playground: Option<&Path>) -> Result<usize> {
    empty(to)?;
    let program = program.canonicalize().with_context(|| format!("the program {}", program.display()))?;
    let commands = commands(&program)?;
    let table =
        fs::read_to_string(root.join(contents::FILE)).with_context(|| format!("cannot read {}", contents::FILE))?;
    let entries: Vec<Entry> = commands.iter().map(|(path, text)| command_entry(path, text)).collect();
    let sections = contents::parse(&table, &entries)?;
    let has_playground = playground.is_some();
    let mut site = Site {
        root,
        program: &program,
        has_playground,
        titles: contents::entries(&sections).map(|(_, entry)| (entry.path.clone(), entry.title.clone())).collect(),
        documents: BTreeMap::new(),
        linked: BTreeSet::new(),
        folders: BTreeSet::new(),
        copies: BTreeSet::new(),
        waiting: Vec::new(),
    };
    site.load(&sections, commands)?;
    site.require_all_documents()?;
    site.require_tested_sessions()?;
    if let Some(built) = playground {
        copy_folder(built, &to.join("playground"))?;
        let page = to.join("playground/index.html");
        let html = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        fs::write(&page, linked_playground(&html)?).with_context(|| format!("cannot write {}", page.display()))?;
    }
    let version = version(&program)?;
    let frame = Frame {
        sections: &sections,
        version: &version,
        has_playground,
        address: &|entry| document_address(&entry.path),
    };
    site.write(to, &frame)
}

/// Empties the directory of the site. A directory with other files is refused.
fn empty(to: &Path) -> Result<()> {
    if to.exists() {
        let is_empty = fs::read_dir(to).with_context(|| format!("cannot read {}", to.display()))?.next().is_none();
        if !is_empty && !to.join(MARK).exists() {
            bail!("{} is not empty and holds no site: name another directory", to.display());
        }
        fs::remove_dir_all(to).with_context(|| format!("cannot empty {}", to.display()))?;
    }
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    write(&to.join(MARK), "")
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The pages of the commands, which the program writes: paths and texts.
fn commands(program: &Path) -> Result<Vec<(String, String)>> {
    let output = Command::new(program).args(["man", "--markdown"]).output().context("cannot start the program")?;
    if !output.status.success() {
        bail!("hoistway man --markdown: {}", String::from_utf8_lossy(&output.stderr));
    }
    command_pages(&String::from_utf8(output.stdout).context("the output of hoistway man")?)
}

/// Divides the reference of the commands into pages. Links to headings of commands become links to
/// their pages.
fn command_pages(text: &str) -> Result<Vec<(String, String)>> {
    // Each page begins with a heading of the first level; lines of code are indented or fenced.
    let mut pages: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# `") {
            let name = title.trim_end_matches('`').replace(' ', "-");
            pages.push((format!("{COMMANDS}/{name}.md"), String::new()));
        }
        let (_, page) = pages.last_mut().context("hoistway man --markdown begins with a heading")?;
        page.push_str(line);
        page.push('\n');
    }
    let paths: Vec<String> = pages.iter().map(|(path, _)| path.clone()).collect();
    for (_, page) in &mut pages {
        for path in &paths {
            let heading = address::between(&format!("{COMMANDS}/"), path.trim_end_matches(".md"));
            *page = page.replace(&format!("](#{heading})"), &format!("]({path})"));
        }
    }
    Ok(pages)
}

fn command_entry(path: &str, text: &str) -> Entry {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let title = lines.next().unwrap_or_default().trim_start_matches("# ").replace('`', "");
    let description = lines.next().unwrap_or_default().trim_start_matches("Reference: ").to_owned();
    Entry { title, path: path.to_owned(), description }
}

fn version(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("-V").output().context("cannot start the program")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("hoistway ").to_owned())
}

fn is_api(path: &str) -> bool {
    path == PYTHON_API || path == C_API
}

/// The address of the page of a document or of a generated reference.
fn document_address(path: &str) -> String {
    match path {
        PYTHON_API => "python/api.html".to_owned(),
        C_API => "c-api.html".to_owned(),
        document => address::of_document(document),
    }
}

struct Site<'a> {
    root: &'a Path,
    program: &'a Path,
    has_playground: bool,
    /// The titles of the table of contents, by document.
    titles: BTreeMap<String, String>,
    documents: BTreeMap<String, Rendered>,
    /// Files that pages show.
    linked: BTreeSet<String>,
    folders: BTreeSet<String>,
    copies: BTreeSet<String>,
    /// Documents that are linked and not rendered yet.
    waiting: Vec<String>,
}

/// The links of one document.
struct DocumentLinks<'s, 'a> {
    site: &'s mut Site<'a>,
    path: String,
}

impl DocumentLinks<'_, '_> {
    /// The file of the repository that a link names. The reference of the commands names them from
    /// the root.
    fn resolve(&self, target: &str) -> Option<String> {
        address::resolve(if self.path.starts_with(COMMANDS) { "" } else { &self.path }, target)
    }
}

impl Links for DocumentLinks<'_, '_> {
    fn link(&mut self, target: &str) -> Result<String> {
        let path = self.resolve(target).with_context(|| format!("the link to {target} leaves the repository"))?;
        let to = self.site.address(&path).with_context(|| format!("{}: the link to {target}", self.path))?;
        Ok(address::between(&document_address(&self.path), &to))
    }

    fn exists(&self, target: &str) -> bool {
        self.resolve(target).is_some_and(|path| self.site.root.join(path).is_file())
    }

    fn title(&self, target: &str) -> Option<String> {
        self.site.titles.get(&self.resolve(target)?).cloned()
    }

    fn figure(&mut self, figure: &Figure) -> Result<String> {
        figure.html(self.site.root, self.site.program)
    }
}

impl Site<'_> {
    /// Renders the documents of the table of contents, and those that they link.
    fn load(&mut self, sections: &[Section], commands: Vec<(String, String)>) -> Result<()> {
        let texts: BTreeMap<String, String> = commands.into_iter().collect();
        self.waiting = contents::entries(sections).map(|(_, entry)| entry.path.clone()).collect();
        self.waiting.extend(["README.md".to_owned(), contents::FILE.to_owned()]);
        while let Some(path) = self.waiting.pop() {
            if self.documents.contains_key(&path) {
                continue;
            }
            let text = match texts.get(&path) {
                Some(text) => text.clone(),
                None => self.text(&path, sections)?,
            };
            let mut links = DocumentLinks { site: self, path: path.clone() };
            let rendered = markdown::render(&text, &mut links).with_context(|| path.clone())?;
            self.documents.insert(path, rendered);
        }
        Ok(())
    }

    /// The text of a document, or of the reference that is made from a file.
    fn text(&self, path: &str, sections: &[Section]) -> Result<String> {
        let file = self.root.join(path);
        if path == PYTHON_API {
            return python_api::page(file.parent().unwrap_or(&file));
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))?;
        Ok(match path {
            C_API => c_api::page(path, &text),
            "README.md" => front(&text, sections, self.has_playground),
            contents::FILE => with_commands(&text, sections),
            _ => text,
        })
    }

    /// The address of a file or folder of the repository, which becomes a part of the site.
    fn address(&mut self, path: &str) -> Result<String> {
        let file = self.root.join(path);
        let extension = path.rsplit('.').next().unwrap_or_default();
        if path.starts_with(COMMANDS) {
            return Ok(document_address(path));
        }
        if file.is_dir() {
            let readme = format!("{path}/README.md");
            let readme = readme.trim_start_matches('/').to_owned();
            if self.root.join(&readme).is_file() {
                self.waiting.push(readme.clone());
                return Ok(document_address(&readme));
            }
            self.folders.insert(path.to_owned());
            return Ok(address::of_folder(path));
        }
        if !file.is_file() {
            bail!("{path} does not exist");
        }
        if extension == "md" || is_api(path) {
            self.waiting.push(path.to_owned());
            return Ok(document_address(path));
        }
        if PICTURES.contains(&extension) {
            self.copies.insert(path.to_owned());
            return Ok(address::of_copy(path));
        }
        self.linked.insert(path.to_owned());
        Ok(address::of_listing(path))
    }

    /// Requires that the table of contents has every document of docs.
    fn require_all_documents(&self) -> Result<()> {
        for folder in ["docs", "docs/elevators"] {
            for entry in fs::read_dir(self.root.join(folder))? {
                let path = format!("{folder}/{}", entry?.file_name().to_string_lossy());
                if path.ends_with(".md") && !self.documents.contains_key(&path) {
                    bail!("{path} is missing in {}", contents::FILE);
                }
            }
        }
        Ok(())
    }

    /// Requires that the tests run the sessions of every document that has some.
    fn require_tested_sessions(&self) -> Result<()> {
        let source = fs::read_to_string(self.root.join(SESSION_TESTS))
            .with_context(|| format!("cannot read {SESSION_TESTS}"))?;
        let [documents, directories, packages] =
            ["DOCUMENTS", "DIRECTORIES", "PACKAGES"].map(|name| strings(&source, name));
        for (path, rendered) in &self.documents {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let package = path.strip_suffix("/README.md").and_then(|package| package.rsplit_once('/'));
            let is_run = documents.contains(&path.as_str())
                || directories.contains(&folder)
                || package.is_some_and(|(parent, _)| packages.contains(&parent));
            let is_record = path.ends_with("-benchmarks.md");
            if rendered.html.contains("<div class=\"code console\"") && !is_run && !is_record {
                bail!(
                    "{path} has sessions that no test runs: add it to {SESSION_TESTS}, or use another language than console"
                );
            }
        }
        Ok(())
    }

    fn write(&self, to: &Path, frame: &Frame) -> Result<usize> {
        let mut index = Index::default();
        let mut pages = 0;
        for (path, rendered) in &self.documents {
            let at = document_address(path);
            let generated = path.starts_with(COMMANDS);
            let page = Page {
                address: &at,
                title: &rendered.title,
                description: &rendered.description,
                content: &rendered.html,
                headings: &rendered.headings,
                source: (!generated).then_some(path.as_str()),
                has_figure: rendered.has_figure,
                class: if path == "README.md" { "front" } else { "page" },
            };
            write(&to.join(&at), &frame.page(&page))?;
            pages += 1;
            for (heading, text) in &rendered.text {
                match rendered.headings.get(*heading) {
                    Some(found) if found.level > 1 => {
                        index.add(&format!("{at}#{}", found.id), &rendered.title, &found.text, text);
                    }
                    _ => index.add(&at, &rendered.title, "", text),
                }
            }
            for term in &rendered.terms {
                let add = if path == GLOSSARY { Index::add_term } else { Index::add };
                add(&mut index, &format!("{at}#{}", term.id), &rendered.title, &term.name, &term.meaning);
            }
        }
        pages += self.write_listings(to, frame)? + self.write_folders(to, frame)?;
        for path in &self.copies {
            let file = to.join(address::of_copy(path));
            fs::create_dir_all(file.parent().unwrap_or(to))?;
            fs::copy(self.root.join(path), &file).with_context(|| format!("cannot copy {path}"))?;
        }
        self.write_assets(to, &index)?;
        Ok(pages)
    }

    /// Writes the pages that show files, each with a link to the file itself.
    fn write_listings(&self, to: &Path, frame: &Frame) -> Result<usize> {
        for path in &self.linked {
            let bytes = fs::read(self.root.join(path)).with_context(|| format!("cannot read {path}"))?;
            let raw = format!("{}/{path}", address::SOURCES);
            let copy = to.join(&raw);
            fs::create_dir_all(copy.parent().unwrap_or(to))?;
            fs::write(&copy, &bytes).with_context(|| format!("cannot write {}", copy.display()))?;
            let name = path.rsplit('/').next().unwrap_or(path);
            let download = format!(
                "<p><a href=\"{0}\" download>Download {0}</a>, {1} bytes</p>\n",
                highlight::escape(name),
                bytes.len()
            );
            let shown = match String::from_utf8(bytes) {
                Ok(text) if text.len() <= SHOWN_MAX => {
                    let language = path.rsplit('.').next().unwrap_or_default();
                    let language =
                        if text.starts_with("#!") && text.lines().next().is_some_and(|line| line.ends_with("sh")) {
                            "sh"
                        } else {
                            language
                        };
                    format!(
                        "<div class=\"code\"><pre tabindex=\"0\" role=\"group\" aria-label=\"The file\"><code>{}</code></pre></div>",
                        highlight::code(language, &text)
                    )
                }
                _ => String::new(),
            };
            self.write_source(to, frame, path, &address::of_listing(path), &(download + &shown))?;
        }
        Ok(self.linked.len())
    }

    /// Writes the pages that list folders. Files that have a page are links.
    fn write_folders(&self, to: &Path, frame: &Frame) -> Result<usize> {
        for path in &self.folders {
            let at = address::of_folder(path);
            let mut names: Vec<String> = Vec::new();
            for entry in fs::read_dir(self.root.join(path))? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if !name.starts_with('.') && name != "target" {
                    names.push(if entry.file_type()?.is_dir() { format!("{name}/") } else { name });
                }
            }
            names.sort();
            let items: String = names
                .iter()
                .map(|name| {
                    let inner = format!("{path}/{}", name.trim_end_matches('/'));
                    let escaped = highlight::escape(name);
                    match self.known(&inner) {
                        Some(known) => format!(
                            "<li><a href=\"{}\"><code>{escaped}</code></a></li>\n",
                            address::between(&at, &known)
                        ),
                        None => format!("<li><code>{escaped}</code></li>\n"),
                    }
                })
                .collect();
            self.write_source(
                to,
                frame,
                path,
                &at,
                &format!("<p>A folder of the repository.</p>\n<ul>\n{items}</ul>"),
            )?;
        }
        Ok(self.folders.len())
    }

    fn known(&self, path: &str) -> Option<String> {
        match () {
            () if self.documents.contains_key(path) => Some(document_address(path)),
            () if self.linked.contains(path) => Some(address::of_listing(path)),
            () if self.folders.contains(path) => Some(address::of_folder(path)),
            () => None,
        }
    }

    fn write_source(&self, to: &Path, frame: &Frame, path: &str, at: &str, content: &str) -> Result<()> {
        let description = format!("{path}, a file or folder of the repository of hoistway.");
        let content = format!("<h1><code>{}</code></h1>\n{content}", highlight::escape(path));
        let page = Page {
            address: at,
            title: path,
            description: &description,
            content: &content,
            headings: &[],
            source: None,
            has_figure: false,
            class: "listing",
        };
        write(&to.join(at), &frame.page(&page))
    }

    fn write_assets(&self, to: &Path, index: &Index) -> Result<()> {
        let assets = to.join("assets");
        // The colours and charts are those of reports.
        let style = hoistway_report::chart_style_sheet() + include_str!("../assets/site.css");
        write(&assets.join("site.css"), &style)?;
        write(&assets.join("site.js"), include_str!("../assets/site.js"))?;
        write(&assets.join("icon.svg"), include_str!("../assets/icon.svg"))?;
        write(&assets.join("search-index.js"), &index.script())?;
        write(&assets.join("theme.js"), hoistway_report::THEME_SCRIPT)
    }
}

/// The strings of a constant list in a source.
fn strings<'a>(source: &'a str, name: &str) -> Vec<&'a str> {
    let list = source.split_once(&format!("const {name}: &[&str] = &[")).and_then(|(_, rest)| rest.split_once("];"));
    list.map_or(Vec::new(), |(list, _)| list.split('"').skip(1).step_by(2).collect())
}

/// The front page: the README, with links to the beginnings below its first paragraph, and the
/// sections of the site in place of its table of documents.
fn front(readme: &str, sections: &[Section], has_playground: bool) -> String {
    let (before, behind) = readme.split_once("\n![").unwrap_or((readme, ""));
    let playground = "<li><a href=\"playground/index.html\">Playground</a></li>";
    let playground = if has_playground { playground } else { "" };
    let start = format!(
        "<ul class=\"start\"><li><a href=\"first-comparison.html\">Your first comparison</a></li>\
         <li><a href=\"install.html\">Install</a></li>{playground}</ul>\n"
    );
    let (middle, rest) = behind.split_once("\n## Documentation\n").unwrap_or((behind, ""));
    let rest = rest
        .split("\n\n")
        .filter(|paragraph| !paragraph.trim_start().starts_with('|'))
        .collect::<Vec<_>>()
        .join("\n\n");
    let mut cards = String::from("<ul class=\"cards\">\n");
    for section in sections {
        let list: String = section
            .groups
            .iter()
            .flat_map(|group| &group.entries)
            .take(4)
            .map(|entry| {
                format!(
                    "<li><a href=\"{}\">{}</a></li>",
                    document_address(&entry.path),
                    highlight::escape(&entry.title)
                )
            })
            .collect();
        cards.push_str(&format!(
            "<li><b>{}</b><p>{}</p><ul>{list}</ul></li>\n",
            section.title,
            highlight::escape(&section.intro)
        ));
    }
    cards.push_str("</ul>\n");
    format!("{before}\n{start}\n![{middle}\n## Documentation\n\n{cards}\n{rest}")
}

/// The table of contents with the pages of the commands.
fn with_commands(text: &str, sections: &[Section]) -> String {
    let commands: String = contents::entries(sections)
        .filter(|(_, entry)| entry.path.starts_with(COMMANDS))
        .map(|(_, entry)| format!("- [`{}`](../{}): {}\n", entry.title, entry.path, entry.description))
        .collect();
    text.replace("<!-- site: commands -->", commands.trim_end())
}

/// The page of the playground with links to the pages of the site. The playground alone has none.
fn linked_playground(html: &str) -> Result<String> {
    const MARK: &str = "<!-- site: links -->";
    ensure!(html.contains(MARK), "the page of the playground has no {MARK}");
    let links = [("index.html", "Home"), ("elevators.html", "Elevators"), ("playground.html", "How to use this page")];
    let links: String = links.iter().map(|(file, title)| format!("<a href=\"../{file}\">{title}</a>")).collect();
    Ok(html.replace(MARK, &format!("<nav class=\"site\" aria-label=\"Site\">{links}</nav>")))
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (inner, outer): (PathBuf, PathBuf) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&inner, &outer)?;
        } else {
            fs::copy(&inner, &outer).with_context(|| format!("cannot copy {}", inner.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strings_of_a_list_are_read() {
        assert_eq!(strings("const A: &[&str] = &[\"x\", \"y/z\"];", "A"), ["x", "y/z"]);
        assert_eq!(strings("", "A"), [""; 0]);
    }

    #[test]
    fn the_front_page_has_the_sections_in_place_of_the_table() {
        let sections = contents::parse("## Tutorial\n\nLearn.\n\n- [One](one.md): the first\n", &[]).expect("contents");
        let page = front("# h\n\nIt is.\n\n![p](p.png)\n\n## Documentation\n\n| a |\n|---|\n\nEnd.\n", &sections, true);
        assert!(page.contains("href=\"playground/index.html\"") && page.contains("href=\"one.html\""), "{page}");
        assert!(page.contains("End.") && !page.contains("| a |"), "{page}");
    }

    #[test]
    fn the_program_lists_the_pages_of_its_commands() {
        let text = "# `hoistway`\n\n- [`hoistway tar`](#hoistway-tar): it\n\n# `hoistway tar`\n\n[a](#b)\n";
        let pages = command_pages(text).expect("two pages");
        let paths: Vec<_> = pages.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["commands/hoistway.md", "commands/hoistway-tar.md"]);
        assert!(pages[0].1.contains("](commands/hoistway-tar.md): it"), "{}", pages[0].1);
        assert!(pages[1].1.contains("[a](#b)"), "a link within the page");
    }

    #[test]
    fn the_playground_leads_back_to_the_site() {
        let page = linked_playground("<p>p</p><!-- site: links -->").expect("a page with the mark");
        assert!(page.contains("<a href=\"../index.html\">Home</a>"), "{page}");
        assert!(linked_playground("<p>p</p>").is_err());
    }

    #[test]
    fn a_folder_with_other_files_is_not_emptied() {
        let folder = tempfile::tempdir().expect("a directory");
        fs::write(folder.path().join("a"), "").expect("a file");
        assert!(empty(folder.path()).is_err());
        fs::write(folder.path().join(MARK), "").expect("a file");
        empty(folder.path()).expect("a site is emptied");
        assert!(!folder.path().join("a").exists());
    }
}
