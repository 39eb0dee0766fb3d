//! A page of plain sections: facts, tables and pictures.

use serde::Serialize;

use minijinja::{Value, context};

use crate::ReportError;
use crate::data::Fact;
use crate::figures::{Lines, lines_svg};
use crate::footprint::{Footprint, footprint_svg};
use crate::intervals::{Intervals, Scatter, intervals_svg, scatter_svg};
use crate::page::serialised;
use crate::template::render;

const TEMPLATE: &str = include_str!("../templates/sheet.html");

/// The content of a page.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// The command that made the page, such as "hoistway drives".
    pub command: String,
    /// The heading.
    pub title: String,
    /// The line below the heading.
    pub subtitle: String,
    /// The sections in their order.
    pub sections: Vec<SheetSection>,
    /// Limitations of the figures.
    pub notes: Vec<String>,
}

/// One section of a page.
#[derive(Clone, Debug, Default)]
pub struct SheetSection {
    /// The heading.
    pub title: String,
    /// The method in one or two sentences.
    pub intro: String,
    /// Names and values.
    pub facts: Vec<Fact>,
    /// Line charts.
    pub pictures: Vec<Lines>,
    /// Footprints of a disk's head, below the line charts.
    pub footprints: Vec<Footprint>,
    /// A table above the pictures.
    pub table: Option<SheetTable>,
    /// Measurements with intervals.
    pub intervals: Vec<Intervals>,
    /// Scatter charts.
    pub scatters: Vec<Scatter>,
    /// Commands to copy, one for each line.
    pub code: Vec<String>,
}

/// A table. The first cell of a row is its name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SheetTable {
    /// The headings of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// The index of an emphasised row.
    pub marked: Option<usize>,
}

/// Makes a self-contained HTML page.
///
/// Its only script is the choice of the theme, and its content security policy blocks the network.
/// Names may hold any text.
///
/// # Errors
/// [`ReportError`] if the template fails.
pub fn sheet_page(sheet: &Sheet) -> Result<String, ReportError> {
    let mut pictures = 0;
    let mut drawn = |svg: String| {
        pictures += 1;
        // Each picture is made as a file; their titles need unique ids within one page.
        let id = format!("picture-{pictures}");
        let svg = svg.replacen("id=\"title\"", &format!("id=\"{id}\""), 1);
        Value::from_safe_string(svg.replacen("aria-labelledby=\"title\"", &format!("aria-labelledby=\"{id}\""), 1))
    };
    let sections: Vec<Value> = sheet
        .sections
        .iter()
        .map(|section| {
            let pictures = section.pictures.iter().map(lines_svg);
            let pictures = pictures
                .chain(section.footprints.iter().map(footprint_svg))
                .chain(section.intervals.iter().map(intervals_svg))
                .chain(section.scatters.iter().map(scatter_svg));
            let pictures: Vec<Value> = pictures.map(&mut drawn).collect();
            context! {
                title => &section.title,
                intro => &section.intro,
                facts => serialised(&section.facts),
                table => serialised(&section.table),
                code => section.code.join("\n"),
                pictures,
            }
        })
        .collect();
    let content = context! {
        command => &sheet.command,
        title => &sheet.title,
        subtitle => &sheet.subtitle,
        notes => &sheet.notes,
        sections,
    };
    Ok(render(TEMPLATE, content)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::LineOf;

    #[test]
    fn names_cannot_open_a_tag_and_pictures_have_unique_titles() {
        const NAME: &str = "</style><img src=x onerror=alert(1)>";
        let line = LineOf { name: NAME.into(), points: vec![(0.0, 1.0), (1.0, 2.0)], dashed: false };
        let picture =
            Lines { title: NAME.into(), x: NAME.into(), y: NAME.into(), lines: vec![line], ..Lines::default() };
        let fact = Fact { label: NAME.into(), value: NAME.into() };
        let section = SheetSection {
            title: NAME.into(),
            intro: NAME.into(),
            facts: vec![fact],
            pictures: vec![picture.clone(), picture],
            footprints: vec![Footprint { title: NAME.into(), x: NAME.into(), y: NAME.into(), panels: Vec::new() }],
            table: Some(SheetTable { head: vec![NAME.into()], rows: vec![vec![NAME.into()]], marked: Some(0) }),
            intervals: vec![Intervals { title: NAME.into(), x: NAME.into(), ..Intervals::default() }],
            scatters: vec![Scatter { title: NAME.into(), kinds: vec![NAME.into()], ..Scatter::default() }],
            code: vec![NAME.into()],
        };
        let page = sheet_page(&Sheet {
            command: NAME.into(),
            title: NAME.into(),
            subtitle: NAME.into(),
            sections: vec![section],
            notes: vec![NAME.into()],
        });
        let page = page.expect("a page");
        assert!(!page.contains("<img") && page.matches("<script").count() == 1);
        for id in ["id=\"picture-1\"", "id=\"picture-2\"", "id=\"picture-3\"", "id=\"picture-5\""] {
            assert_eq!(page.matches(id).count(), 1, "{id}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}
