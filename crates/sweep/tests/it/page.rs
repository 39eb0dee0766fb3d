//! The page of results.

use hoistway_sweep::{PageError, PageOptions, Results, page};

use crate::{plan, run_in};

fn results() -> Results {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(
        "drives = [\"sata-7200-2006\", \"ssd-sata-consumer\"]\nelevators = [\"cfq\", \"bfq\"]\nseeds = \"1-2\"\n\
         [vary]\n\"cfq.slice_idle\" = [0, 8]\n\"job.reader.bs\" = [\"64k\", \"4k\", \"4kk\"]\n",
    );
    run_in(folder.path(), &plan, 2);
    Results::read(folder.path()).unwrap()
}

#[test]
fn a_page_has_heat_maps_effects_a_front_and_errors() {
    let sheet = page(&results(), &PageOptions::default()).unwrap();
    let titles: Vec<&str> = sheet.sections.iter().map(|section| section.title.as_str()).collect();
    assert_eq!(titles[1..], ["Throughput against latency", "Main effects", "Points without figures"], "{titles:?}");
    assert!(titles[0].contains("drive"), "the disk and the SSD differ most: {titles:?}");
    assert!(sheet.verdict.contains("Throughput varies most with drive ("), "{}", sheet.verdict);
    // 2 drives x (2 + 1) x 2 seeds x 3 sizes, of which one fails.
    assert_eq!(sheet.facts[0].value, "36");
    assert_eq!(sheet.facts[1].value, "12");
    // drive, elevator, seed, slice_idle and bs, each with two figures.
    assert_eq!(sheet.sections[2].intervals.len(), 5 * 2);
    let sizes = sheet.sections[2].intervals.iter().find(|picture| picture.title == "job.reader.bs").unwrap();
    let names: Vec<&str> = sizes.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["4k", "64k"]);
    // A chart for each size that a reader reads at once; 2 drives x 3 settings.
    assert_eq!(sheet.sections[1].scatters.len(), 2);
    let front = &sheet.sections[1].scatters[0];
    assert_eq!((front.title.as_str(), front.points.len()), ("job.reader.bs 4k", 6));
    assert!(!front.front.is_empty() && front.front.is_sorted_by(|one, other| one.0 <= other.0), "{:?}", front.front);
}

#[test]
fn a_mean_of_a_heat_map_is_that_of_its_points() {
    let results = results();
    let options = PageOptions {
        measure: Some("bytes_per_s".into()),
        over: Some(["drive".into(), "elevator".into()]),
        ..PageOptions::default()
    };
    let sheet = page(&results, &options).unwrap();
    let map = &sheet.sections[0].heat_maps[0];
    let cell = map.rows.iter().position(|name| name == "ssd-sata-consumer").unwrap() * map.columns.len()
        + map.columns.iter().position(|name| name == "bfq").unwrap();
    let is =
        |column: &str, row: usize, value: &str| results.column(column).unwrap().text(row).as_deref() == Some(value);
    let rates: Vec<f64> = (0..results.rows())
        .filter(|row| is("drive", *row, "ssd-sata-consumer") && is("elevator", *row, "bfq"))
        .filter_map(|row| results.column("bytes_per_s").unwrap().number(row))
        .collect();
    assert_eq!(rates.len(), 4);
    let mean = rates.iter().sum::<f64>() / 4.0 / 1e6;
    assert!((map.cells[cell] - mean).abs() < 1e-9 * mean, "{} and {mean}", map.cells[cell]);
}

#[test]
fn options_that_name_nothing_are_refused_with_what_is_there() {
    let results = results();
    let refused = |options: PageOptions| page(&results, &options).unwrap_err().to_string();
    let message = refused(PageOptions { measure: Some("latency_p9_ns".into()), ..PageOptions::default() });
    assert!(message.starts_with("there is no figure `latency_p9_ns` (did you mean `latency_p9"), "{message}");
    let over = Some(["elevator".into(), "host".into()]);
    let message = refused(PageOptions { over, ..PageOptions::default() });
    assert!(message.starts_with("`host` does not vary; these keys vary: "), "{message}");
    assert_eq!(page(&Results::default(), &PageOptions::default()).unwrap_err(), PageError::NoFigures);
}
