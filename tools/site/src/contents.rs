//! The table of contents: docs/README.md.
//!
//! A heading of the second level begins a section, one of the third a group, and each item
//! `- [title](file): description` is a page. The comment `<!-- site: commands -->` stands for the
//! pages of the commands, which only the site has.

use anyhow::{Result, bail};

use crate::address;

/// The table of contents, from the root of the repository.
pub const FILE: &str = "docs/README.md";
/// The place of the pages of the commands.
const COMMANDS: &str = "<!-- site: commands -->";

/// A section of the site, such as the tutorial.
#[derive(Debug, Default)]
pub struct Section {
    pub title: String,
    pub intro: String,
    pub groups: Vec<Group>,
}

/// Pages under one heading of the third level; the first group of a section has no title.
#[derive(Debug, Default)]
pub struct Group {
    pub title: String,
    pub entries: Vec<Entry>,
}

/// A page in the table of contents.
#[derive(Debug, Clone)]
pub struct Entry {
    pub title: String,
    /// The file from the root of the repository, or the name of a generated page.
    pub path: String,
    pub description: String,
}

/// Reads the table of contents. `commands` are the generated pages of the commands.
pub fn parse(text: &str, commands: &[Entry]) -> Result<Vec<Section>> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(title) = line.strip_prefix("## ") {
            sections.push(Section { title: title.to_owned(), groups: vec![Group::default()], ..Section::default() });
            continue;
        }
        let Some(section) = sections.last_mut() else { continue };
        if let Some(title) = line.strip_prefix("### ") {
            section.groups.push(Group { title: title.to_owned(), entries: Vec::new() });
        } else if let Some(item) = line.strip_prefix("- ") {
            let Some(entry) = entry(item) else {
                bail!("{FILE}:{}: `{line}` is not `- [title](file): description`", index + 1);
            };
            section.groups.last_mut().expect("a section has a group").entries.push(entry);
        } else if line == COMMANDS {
            section.groups.last_mut().expect("a section has a group").entries.extend_from_slice(commands);
        } else if section.intro.is_empty() && section.groups.len() == 1 && !line.starts_with("<!--") {
            section.intro = line.to_owned();
        }
    }
    sections.iter_mut().for_each(|section| section.groups.retain(|group| !group.entries.is_empty()));
    Ok(sections)
}

fn entry(item: &str) -> Option<Entry> {
    let (title, rest) = item.strip_prefix('[')?.split_once("](")?;
    let (file, description) = rest.split_once("): ")?;
    let path = address::resolve(FILE, file)?;
    Some(Entry { title: title.replace('`', ""), path, description: description.to_owned() })
}

/// All entries in their order.
pub fn entries(sections: &[Section]) -> impl Iterator<Item = (&Section, &Entry)> {
    sections.iter().flat_map(|section| {
        section.groups.iter().flat_map(move |group| group.entries.iter().map(move |entry| (section, entry)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_groups_and_commands_are_read() {
        let text = "# D\n\nx\n\n## Reference\n\nLook up.\n\n### Commands\n\n<!-- site: commands -->\n\n### C\n\n- [`h`](../crates/h.h): the header\n";
        let command = Entry { title: "compare".into(), path: "commands/compare.md".into(), description: "d".into() };
        let sections = parse(text, &[command]).expect("a table of contents");
        assert_eq!(sections.len(), 1);
        assert_eq!(sections[0].intro, "Look up.");
        let paths: Vec<_> = entries(&sections).map(|(_, entry)| entry.path.as_str()).collect();
        assert_eq!(paths, ["commands/compare.md", "crates/h.h"]);
        assert!(parse("## A\n- no link\n", &[]).is_err());
    }
}
