//! The comparison page: template, style, script and data in one file.

use hoistway_units::figures::grouped_figure;
use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;

use crate::ReportError;
use crate::answer::answer;
use crate::charts::{Chart, Common, Legend, legends, sections};
use crate::data::{ComparePage, Fact, GroupRow, JobResult, JobRow};
use crate::embedded::{data_json, shown_json};
use crate::format::rate;
use crate::reduce::{Reduction, reduce};
use crate::table::{first_picks, has_syncs, table};
use crate::template::render;
use crate::web::charts_script;

const TEMPLATE: &str = include_str!("../templates/compare.html");
const SCRIPT: &str = include_str!("../templates/compare.js");

/// Makes a self-contained HTML page that compares elevators with one workload on one drive.
///
/// The page needs no network, and its content security policy blocks the network. It contains the
/// scripts that draw its charts and, in the element `hoistway-data`, the plotted figures as JSON.
/// Series with too many points are reduced as the page states: see
/// [`HEAD_POINTS_MAX`](crate::HEAD_POINTS_MAX), [`WINDOWS_MAX`](crate::WINDOWS_MAX) and
/// [`SLICES_MAX`](crate::SLICES_MAX). Names and notes may hold any text.
///
/// # Errors
/// The errors of [`ComparePage::check`].
pub fn compare_page(data: &ComparePage) -> Result<String, ReportError> {
    data.check()?;
    let (drawn, reductions) = reduce(data);
    let legends = legends(&drawn);
    let sections = sections(&drawn, &reductions);
    let table = table(&drawn);
    let payload = Payload {
        picked: first_picks(&drawn, &table),
        legends: &legends,
        common: Common::of(&drawn),
        figures: sections.iter().flat_map(|s| &s.charts).filter(|c| c.height.is_some()).collect(),
    };
    let embedded = Embedded { page: &drawn, reductions: &reductions };
    let mut facts = drawn.facts.clone();
    if drawn.single_stream_bytes_per_s > 0.0 {
        facts.push(Fact { label: "one stream alone".to_owned(), value: rate(drawn.single_stream_bytes_per_s) });
    }
    let content = context! {
        answer => serialised(&answer(&drawn, &legends)),
        command => &drawn.command,
        title => &drawn.title,
        subtitle => &drawn.subtitle,
        verdict => &drawn.verdict,
        notes => &drawn.notes,
        facts => serialised(&facts),
        elevators => drawn.elevators.iter().map(|e| context! { name => &e.name, divides_by_groups => e.divides_by_groups }).collect::<Vec<_>>(),
        table => serialised(&table),
        groups => serialised(&groups(&drawn)),
        jobs => serialised(&jobs(&drawn)),
        has_syncs => has_syncs(&drawn),
        tables => serialised(&drawn.tables),
        sections => serialised(&sections),
        legends => serialised(&legends),
        script => Value::from_safe_string(SCRIPT.to_owned()),
        data => Value::from_safe_string(data_json(&embedded)?),
        charts => Value::from_safe_string(shown_json(&payload)?),
        library => Value::from_safe_string(charts_script()),
    };
    Ok(render(TEMPLATE, content)?)
}

/// A row of the table of control groups.
#[derive(Serialize)]
struct GroupLine {
    /// The last component of the path.
    name: String,
    /// The number of ancestors.
    depth: usize,
    weight: u32,
    /// Shares in percent, one for each elevator.
    shares: Vec<String>,
}

fn groups(page: &ComparePage) -> Vec<GroupLine> {
    let line = |group: &GroupRow| GroupLine {
        name: group.name.rsplit('/').next().unwrap_or_default().to_owned(),
        depth: group.name.matches('/').count(),
        weight: group.weight,
        shares: group.shares.iter().map(|share| grouped_figure(share * 100.0)).collect(),
    };
    page.groups.iter().map(line).collect()
}

/// A row of the table of jobs.
#[derive(Serialize)]
struct JobLine {
    name: String,
    processes: usize,
    results: Vec<JobCell>,
}

/// The figures of a job under one elevator.
#[derive(Serialize)]
struct JobCell {
    rate: String,
    /// The rate of the slowest process; empty if there is only one.
    slowest: String,
    p99_ms: String,
    max_ms: String,
    /// The latencies of syncs; `None` if the job completed none.
    sync: Option<SyncCell>,
    starves: bool,
}

/// The latencies of syncs in ms.
#[derive(Serialize)]
struct SyncCell {
    p99_ms: String,
    max_ms: String,
}

fn jobs(page: &ComparePage) -> Vec<JobLine> {
    let line = |job: &JobRow| JobLine {
        name: job.name.clone(),
        processes: job.processes,
        results: job.results.iter().map(|result| cell(job, result)).collect(),
    };
    page.jobs.iter().map(line).collect()
}

fn cell(job: &JobRow, result: &JobResult) -> JobCell {
    let slowest = if job.processes > 1 { grouped_figure(result.slowest_bytes_per_s / 1e6) } else { String::new() };
    let ms = |ns: u64| grouped_figure(ns as f64 / 1e6);
    JobCell {
        rate: grouped_figure(result.bytes_per_s / 1e6),
        slowest,
        p99_ms: ms(result.p99_ns),
        max_ms: ms(result.max_ns),
        sync: result.sync.map(|sync| SyncCell { p99_ms: ms(sync.p99_ns), max_ms: ms(sync.max_ns) }),
        starves: result.starves,
    }
}

/// The input of the script of the page.
#[derive(Serialize)]
struct Payload<'a> {
    /// The indices of the elevators that are selected at first.
    picked: Vec<usize>,
    legends: &'a [Legend],
    common: Common,
    figures: Vec<&'a Chart>,
}

/// The JSON for readers of the page: the plotted data, and the reductions.
#[derive(Serialize)]
struct Embedded<'a> {
    #[serde(flatten)]
    page: &'a ComparePage,
    reductions: &'a [Reduction],
}

pub(crate) fn serialised<T: Serialize>(value: &T) -> Value {
    Value::from(Serde(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ElevatorResult, HeadTrack, PercentileLatency, ProcessBandwidth, Slice, SyncSummary};

    fn page(processes: u32) -> ComparePage {
        let elevator = ElevatorResult {
            name: "cfq".into(),
            bytes_per_s: 1e7,
            runtime_ns: 5_000_000_000,
            bandwidth: (0..processes)
                .map(|process| ProcessBandwidth { process, bytes_per_s: vec![1e6, 2e6] })
                .collect(),
            head: (0..processes)
                .map(|process| HeadTrack { process, time_ns: vec![1, 2], sector: vec![8, 16] })
                .collect(),
            slices: Some((0..processes).map(|process| Slice { process, start_ns: 5, end_ns: 9 }).collect()),
            ..ElevatorResult::default()
        };
        ComparePage {
            title: "Readers".into(),
            window_ns: 500_000_000,
            processes: (0..processes).map(|p| format!("reader {p}")).collect(),
            elevators: vec![elevator],
            ..ComparePage::default()
        }
    }

    /// The text of the script element with this id.
    fn embedded<'a>(html: &'a str, id: &str) -> &'a str {
        let from = html.find(&format!("id=\"{id}\">")).expect("the element") + id.len() + 6;
        &html[from..from + html[from..].find("</script>").expect("its end")]
    }

    #[test]
    fn the_embedded_json_is_the_page_that_was_given() {
        for processes in [0, 1, 128] {
            let page = page(processes);
            let html = compare_page(&page).unwrap();
            let read: ComparePage = serde_json::from_str(embedded(&html, "hoistway-data")).unwrap();
            assert_eq!(read, page);
        }
    }

    #[test]
    fn no_text_has_unprintable_characters() {
        use hoistway_units::printable::is_printable;
        let evil = "e\u{1b}[31mvil\u{9b}x\u{202e}";
        let mut page = page(1);
        let fact = Fact { label: evil.into(), value: evil.into() };
        (page.title, page.subtitle, page.verdict) = (evil.into(), evil.into(), evil.into());
        (page.notes, page.facts, page.processes) = (vec![evil.into()], vec![fact], vec![evil.into()]);
        page.elevators[0].name = evil.into();
        page.jobs = vec![JobRow { name: evil.into(), processes: 1, results: vec![JobResult::default()] }];
        let html = compare_page(&page).unwrap();
        let odd = html.chars().find(|letter| !is_printable(*letter) && !matches!(letter, '\n' | '\t'));
        assert_eq!(odd, None);
        assert!(html.contains("<title>e\\x1b[31mvil\\u{9b}x\\u{202e}"), "{}", &html[..2000]);
        let charts: serde_json::Value = serde_json::from_str(embedded(&html, "hoistway-charts")).unwrap();
        let shown = charts.to_string();
        assert!(shown.contains("vil\\\\u{9b}x") && shown.chars().all(is_printable), "{shown}");
        let read: ComparePage = serde_json::from_str(embedded(&html, "hoistway-data")).unwrap();
        assert_eq!(read, page);
    }

    #[test]
    fn no_dot_is_at_the_edge_of_its_chart() {
        let mut page = page(2);
        let elevator = &mut page.elevators[0];
        elevator.percentiles = vec![PercentileLatency { percentile: 0.0, latency_ns: 1_000_000 }];
        elevator.drive.seek_ns = 5_000_000_000;
        elevator.head[0].time_ns = vec![0, 5_000_000_000];
        let html = compare_page(&page).unwrap();
        let charts: serde_json::Value = serde_json::from_str(embedded(&html, "hoistway-charts")).unwrap();
        assert_eq!(charts["figures"].as_array().map(Vec::len), Some(5), "one chart of each section");
        let range = |name: &str| -> [f64; 2] { serde_json::from_value(charts["common"][name].clone()).unwrap() };
        // The run takes 5 s, and its sectors are 8 and 16.
        assert!(range("time")[0] < 0.0 && range("time")[1] > 5.0, "{:?}", range("time"));
        assert!(range("sectors")[0] < 8.0 && range("sectors")[1] > 16.0, "{:?}", range("sectors"));
    }

    #[test]
    fn reductions_are_embedded_beside_the_data() {
        let mut page = page(1);
        page.elevators[0].requests = 1_000_000;
        let html = compare_page(&page).unwrap();
        let read: serde_json::Value = serde_json::from_str(embedded(&html, "hoistway-data")).unwrap();
        assert_eq!(read["reductions"][0]["requests"], 1_000_000);
        assert_eq!(read["reductions"][0]["head_shown"], 2);
        assert!(html.contains("2 of 1,000,000 requests"));
    }

    #[test]
    fn the_jobs_have_a_table_that_names_those_that_starve() {
        let mut page = page(1);
        assert!(!compare_page(&page).unwrap().contains("id=\"jobs\""));
        let starving = JobResult { bytes_per_s: 2.85e6, starves: true, ..JobResult::default() };
        page.jobs = vec![JobRow { name: "reader".into(), processes: 1, results: vec![starving] }];
        page.elevators[0].starves = true;
        let html = compare_page(&page).unwrap();
        assert!(html.contains("id=\"jobs\"") && html.contains("2.85") && html.contains("starves"));
    }

    #[test]
    fn the_syncs_of_a_job_are_in_its_bars_and_in_its_row() {
        let mut page = page(1);
        let reader = JobRow { name: "reader".into(), processes: 1, results: vec![JobResult::default()] };
        page.jobs = vec![reader.clone()];
        let own = |html: &str| {
            let from = html.find("<main").expect("the content");
            html[from..html.find("id=\"hoistway-data\"").expect("the data")].to_owned()
        };
        assert!(!own(&compare_page(&page).unwrap()).contains("sync"));
        let sync = Some(SyncSummary { p99_ns: 144_000_000, max_ns: 201_000_000 });
        let log = JobResult { sync, ..JobResult::default() };
        page.jobs.push(JobRow { name: "log".into(), results: vec![log], ..reader });
        page.elevators[0].sync = sync;
        let html = compare_page(&page).unwrap();
        let read: ComparePage = serde_json::from_str(embedded(&html, "hoistway-data")).unwrap();
        assert_eq!(read, page);
        let html = own(&html);
        assert_eq!(html.matches("<small>sync p99 144, max 201 ms</small>").count(), 1, "{html}");
        assert_eq!(html.matches("p99 of syncs, ms; less is better").count(), 1, "only in the bars of the log");
        assert!(html.contains("Sync p99") && html.contains("how long an fsync or fdatasync takes"));
    }

    #[test]
    fn the_page_of_an_ssd_has_no_arm() {
        let page = ComparePage { solid_state: true, ..page(2) };
        let html = compare_page(&page).unwrap();
        let own = &html[..html.find("id=\"hoistway-data\"").unwrap()];
        for word in ["Seek", "Rotation", "Head position"] {
            assert!(!own.contains(word), "{word}");
        }
    }

    #[test]
    fn names_cannot_end_a_script_or_open_a_tag() {
        const NAME: &str = "</script><img src=x onerror=alert(1)><!--";
        let mut page = page(1);
        for text in [&mut page.title, &mut page.subtitle, &mut page.verdict] {
            *text = NAME.into();
        }
        page.processes[0] = NAME.into();
        page.elevators[0].name = NAME.into();
        page.notes.push(NAME.into());
        let html = compare_page(&page).unwrap();
        assert!(!html.contains("<img"));
        let read: ComparePage = serde_json::from_str(embedded(&html, "hoistway-data")).unwrap();
        assert_eq!(read.processes[0], NAME);
        // Two blocks of JSON, the library and two scripts of the page.
        assert_eq!(html.matches("</script>").count(), 5);
    }

    #[test]
    fn the_page_is_small_and_self_contained() {
        let html = compare_page(&page(3)).unwrap();
        assert_eq!(html.matches("const hoistwayCharts =").count(), 1);
        // The name of a namespace of XML is no address.
        let own = html.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http:", "https:", " src=", "@import", "url(\"", "unsafe-eval", "eval("] {
            assert!(!own.contains(outside), "{outside}");
        }
        assert!(html.contains("default-src 'none'"));
        // The frame, the scripts and the style sheet of a page, without much data.
        assert!(html.len() < 160_000, "{} bytes", html.len());
    }

    #[test]
    fn the_same_data_give_the_same_page() {
        assert_eq!(compare_page(&page(5)).unwrap(), compare_page(&page(5)).unwrap());
    }

    #[test]
    fn elevators_without_slices_are_named_as_such() {
        let mut page = page(1);
        page.elevators.push(ElevatorResult { name: "noop".into(), ..ElevatorResult::default() });
        page.elevators.push(ElevatorResult { name: "deadline".into(), ..ElevatorResult::default() });
        assert!(compare_page(&page).unwrap().contains("noop and deadline have no slices."));
    }
}
