//! A page of plain sections: facts, tables and pictures.

use minijinja::{Value, context};

use crate::ReportError;
use crate::answer::{BarTable, DrawnBars};
use crate::data::{Fact, Table};
use crate::figures::{Lines, lines_drawing};
use crate::footprint::{Footprint, footprint_drawing};
use crate::heat_map::{HeatMap, heat_map_drawing};
use crate::intervals::{Intervals, Scatter, intervals_drawing, scatter_drawing};
use crate::page::serialised;
use crate::svg::Space;
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
    /// The answer in one or two sentences; may be empty.
    pub verdict: String,
    /// Bars of the decisive figures, below the verdict.
    pub answer: Vec<BarTable>,
    /// Names and values below the answer.
    pub facts: Vec<Fact>,
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
    /// Line charts. Each picture of a page has two forms, for wide and for narrow windows.
    pub pictures: Vec<Lines>,
    /// Footprints of a disk's head, below the line charts.
    pub footprints: Vec<Footprint>,
    /// Figures over two variables, above the other pictures.
    pub heat_maps: Vec<HeatMap>,
    /// A table above the pictures.
    pub table: Option<Table>,
    /// Measurements with intervals.
    pub intervals: Vec<Intervals>,
    /// Scatter charts.
    pub scatters: Vec<Scatter>,
    /// Commands to copy, one for each line.
    pub code: Vec<String>,
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
            let mut both = |draw: &dyn Fn(Space) -> String| {
                context! { wide => drawn(draw(Space::Wide)), narrow => drawn(draw(Space::Narrow)) }
            };
            let mut pictures: Vec<Value> = Vec::new();
            pictures.extend(section.heat_maps.iter().map(|of| both(&|space| heat_map_drawing(of, space))));
            pictures.extend(section.pictures.iter().map(|of| both(&|space| lines_drawing(of, space))));
            pictures.extend(section.footprints.iter().map(|of| both(&|space| footprint_drawing(of, space))));
            pictures.extend(section.intervals.iter().map(|of| both(&|space| intervals_drawing(of, space))));
            pictures.extend(section.scatters.iter().map(|of| both(&|space| scatter_drawing(of, space))));
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
        verdict => &sheet.verdict,
        answer => serialised(&sheet.answer.iter().map(DrawnBars::from).collect::<Vec<_>>()),
        facts => serialised(&sheet.facts),
        notes => &sheet.notes,
        sections,
    };
    Ok(render(TEMPLATE, content)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::BarRow;
    use crate::figures::LineOf;

    #[test]
    fn names_cannot_open_a_tag_and_pictures_have_unique_titles() {
        const NAME: &str = "</style><img src=x onerror=alert(1)>";
        let line = LineOf { name: NAME.into(), points: vec![(0.0, 1.0), (1.0, 2.0)], dashed: false };
        let picture =
            Lines { title: NAME.into(), x: NAME.into(), y: NAME.into(), lines: vec![line], ..Lines::default() };
        let fact = Fact { label: NAME.into(), value: NAME.into() };
        let row = BarRow { name: NAME.into(), note: NAME.into(), is_marked: true, values: vec![1.0] };
        let section = SheetSection {
            title: NAME.into(),
            intro: NAME.into(),
            facts: vec![fact.clone()],
            pictures: vec![picture.clone(), picture],
            footprints: vec![Footprint { title: NAME.into(), x: NAME.into(), y: NAME.into(), panels: Vec::new() }],
            heat_maps: vec![HeatMap {
                title: NAME.into(),
                columns: vec![NAME.into()],
                rows: vec![NAME.into()],
                cells: vec![1.0],
                ..HeatMap::default()
            }],
            table: Some(Table { head: vec![NAME.into()], rows: vec![vec![NAME.into()]], marked: Some(0) }),
            intervals: vec![Intervals { title: NAME.into(), x: NAME.into(), ..Intervals::default() }],
            scatters: vec![Scatter { title: NAME.into(), kinds: vec![NAME.into()], ..Scatter::default() }],
            code: vec![NAME.into()],
        };
        let page = sheet_page(&Sheet {
            command: NAME.into(),
            title: NAME.into(),
            subtitle: NAME.into(),
            verdict: NAME.into(),
            answer: vec![BarTable {
                caption: NAME.into(),
                rows_are: NAME.into(),
                figures: vec![NAME.into()],
                rows: vec![row],
            }],
            facts: vec![fact.clone()],
            sections: vec![section],
            notes: vec![NAME.into()],
        });
        let page = page.expect("a page");
        assert!(!page.contains("<img") && page.matches("<script").count() == 1);
        for id in ["id=\"picture-1\"", "id=\"picture-2\"", "id=\"picture-3\"", "id=\"picture-12\""] {
            assert_eq!(page.matches(id).count(), 1, "{id}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}
