//! A page of plain sections: facts and pictures of lines, without scripts.

use serde::Serialize;

use minijinja::{AutoEscape, Environment, Value, context};

use crate::ReportError;
use crate::data::Fact;
use crate::figures::{Lines, lines_svg};
use crate::footprint::{Footprint, footprint_svg};
use crate::intervals::{Intervals, Scatter, intervals_svg, scatter_svg};
use crate::page::{STYLE, serialised};

const TEMPLATE: &str = include_str!("../templates/sheet.html");

/// What the page shows.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// Which command made it, as "hoistway drives".
    pub command: String,
    /// The heading.
    pub title: String,
    /// A sentence below it.
    pub subtitle: String,
    /// The sections, in their order.
    pub sections: Vec<SheetSection>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One section.
#[derive(Clone, Debug, Default)]
pub struct SheetSection {
    /// Its heading.
    pub title: String,
    /// How it came about, in a sentence or two.
    pub intro: String,
    /// Its figures.
    pub facts: Vec<Fact>,
    /// Its pictures.
    pub pictures: Vec<Lines>,
    /// Its pictures of where a head goes, below the others.
    pub footprints: Vec<Footprint>,
    /// Its table, above the pictures.
    pub table: Option<SheetTable>,
    /// Its pictures of measurements with their spread.
    pub intervals: Vec<Intervals>,
    /// Its pictures of two figures against each other.
    pub scatters: Vec<Scatter>,
    /// Text to be copied as it is, line by line: commands.
    pub code: Vec<String>,
}

/// A table; the first cell of a row is its name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SheetTable {
    /// The heads of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
    /// The place of the row that stands out, if one does.
    pub marked: Option<usize>,
}

/// One self-contained HTML page, light or dark as its reader has it. It runs no script and, by its content security policy, reaches no
/// network. Names may hold any text.
///
/// # Errors
/// [`ReportError`] when the page's template fails.
pub fn sheet_page(sheet: &Sheet) -> Result<String, ReportError> {
    let mut pictures = 0;
    let mut drawn = |svg: String| {
        pictures += 1;
        // Each picture is a file of its own by making; in one page their titles need names of their own.
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
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.add_template("sheet.html", TEMPLATE)?;
    Ok(environment.get_template("sheet.html")?.render(context! {
        command => &sheet.command,
        title => &sheet.title,
        subtitle => &sheet.subtitle,
        notes => &sheet.notes,
        sections,
        style => Value::from_safe_string(STYLE.to_owned()),
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::LineOf;

    #[test]
    fn names_cannot_open_a_tag_and_pictures_have_titles_of_their_own() {
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
        assert!(!page.contains("<img") && !page.contains("<script"));
        for id in ["id=\"picture-1\"", "id=\"picture-2\"", "id=\"picture-3\"", "id=\"picture-5\""] {
            assert_eq!(page.matches(id).count(), 1, "{id}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}
