//! `hoistway drives --probe`: measures a drive from outside.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use hoistway_drive::Profile;
use hoistway_drive::probe::ProbeReport;
use hoistway_report::ReportFile;
use hoistway_report::{Fact, Sheet, SheetSection, sheet_page};

use super::describe::facts;
use super::sections::{Section, sections};
use crate::cli::DrivesArgs;
use crate::output::Out;

/// Probes a drive and writes the findings as text, as JSON or as a page.
pub fn run(choice: &str, args: &DrivesArgs, out: &mut Out) -> Result<()> {
    let profile = Profile::choose(choice)?;
    let page = args.report.as_deref().map(ReportFile::new).transpose()?;
    let report = ProbeReport::measure(&profile, &args.only)?;
    let sections = sections(&report.findings);
    if let Some(page) = page {
        page.write(&sheet_page(&sheet(&report, &sections))?, &AtomicBool::new(false))?;
    }
    if args.json {
        out.json(&report)?;
        return Ok(());
    }
    write(&report, &sections, out)?;
    if let Some(path) = &args.report {
        out.line("")?;
        out.line(format_args!("The page is in {}.", path.display()))?;
    }
    Ok(())
}

fn title(report: &ProbeReport) -> String {
    format!("{}, measured from outside", report.drive)
}

fn write(report: &ProbeReport, sections: &[Section], out: &mut Out) -> Result<()> {
    out.heading(title(report))?;
    for section in sections {
        out.line("")?;
        out.heading(section.title)?;
        facts(&section.facts, out)?;
        for picture in &section.pictures {
            out.line("")?;
            section.draw(picture, out)?;
        }
    }
    let notes = report.notes();
    if !notes.is_empty() {
        out.line("")?;
        out.heading("Notes")?;
        notes.iter().try_for_each(|note| out.paragraph(2, note))?;
    }
    Ok(())
}

fn sheet(report: &ProbeReport, sections: &[Section]) -> Sheet {
    Sheet {
        command: "hoistway drives --probe".to_owned(),
        title: title(report),
        subtitle: "Measured with commands and a clock alone, as a real drive is measured.".to_owned(),
        facts: sections.iter().filter_map(Section::summary).collect(),
        sections: sections.iter().map(Section::to_sheet).collect(),
        notes: report.notes(),
        ..Sheet::default()
    }
}

impl Section {
    /// The first fact of the section under its title.
    fn summary(&self) -> Option<Fact> {
        let (label, value) = self.facts.first()?;
        Some(Fact { label: self.title.to_owned(), value: format!("{label}: {value}") })
    }

    /// The section of the HTML page.
    fn to_sheet(&self) -> SheetSection {
        let fact = |(label, value): &(&str, String)| Fact { label: (*label).to_owned(), value: value.clone() };
        SheetSection {
            title: self.title.to_owned(),
            intro: self.intro.to_owned(),
            facts: self.facts.iter().map(fact).collect(),
            pictures: self.pictures.clone(),
            ..SheetSection::default()
        }
    }
}
