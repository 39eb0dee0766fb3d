//! The table of a comparison: one row for each elevator, with the best figure of each column
//! marked.

use hoistway_units::figures::grouped_figure;
use serde::Serialize;

use crate::data::{ComparePage, ElevatorResult};

/// The better end of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    More,
    Less,
    Neither,
}

/// A heading over adjacent columns.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// The heading.
    pub name: &'static str,
    /// Number of columns.
    pub span: usize,
}

/// One column of figures.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// The heading.
    pub name: &'static str,
    /// The unit; may be empty.
    pub unit: &'static str,
    /// An explanation in one sentence.
    pub help: &'static str,
    /// True if the column begins a group.
    pub first: bool,
    #[serde(skip)]
    better: Better,
    #[serde(skip)]
    value: fn(&ElevatorResult) -> Option<f64>,
    #[serde(skip)]
    scale: f64,
}

/// One figure of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The figure as shown.
    pub text: String,
    /// The value for sorting; `None` sorts last.
    pub value: Option<f64>,
    /// True for the best figure of its column.
    pub best: bool,
    /// True if its column begins a group.
    pub first: bool,
}

/// The row of one elevator.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The elevator's name.
    pub name: String,
    /// True if a job starves under the elevator.
    pub starves: bool,
    /// One cell for each column.
    pub cells: Vec<Cell>,
}

/// The input of the template.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryTable {
    /// Headings over columns.
    pub groups: Vec<Group>,
    /// The columns after the name.
    pub columns: Vec<Column>,
    /// One row for each elevator in the order of the page.
    pub rows: Vec<Row>,
}

/// Makes the table of a page.
pub fn table(page: &ComparePage) -> SummaryTable {
    let columns: Vec<Column> = columns(page);
    let bests: Vec<Option<usize>> = columns.iter().map(|c| best(c, &page.elevators)).collect();
    let cell = |(column, best): (&Column, &Option<usize>), index: usize, elevator: &ElevatorResult| {
        let value = (column.value)(elevator);
        let text = value.map_or_else(|| "-".to_owned(), |v| grouped_figure(v * column.scale));
        Cell { value, best: *best == Some(index), first: column.first, text }
    };
    let row = |(index, elevator): (usize, &ElevatorResult)| Row {
        name: elevator.name.clone(),
        starves: elevator.starves,
        cells: columns.iter().zip(&bests).map(|c| cell(c, index, elevator)).collect(),
    };
    let rows = page.elevators.iter().enumerate().map(row).collect();
    let drive = if page.solid_state { 3 } else { 5 };
    let latency = if has_syncs(page) { 7 } else { 5 };
    let groups = [("Throughput", 3), ("Each process", 3), ("Latency", latency), ("Drive time", drive)];
    SummaryTable { groups: groups.map(|(name, span)| Group { name, span }).into(), columns, rows }
}

/// The largest number of elevators that are selected at first: more charts are hard to compare.
const PICKED_MAX: usize = 6;

/// The indices of the elevators that are selected at first, in the order of the page: of few
/// elevators all whose results differ from each other, of many those of current kernels among them.
/// With fewer than two of these, the elevators that are best in most columns and then in
/// throughput.
pub fn first_picks(page: &ComparePage, table: &SummaryTable) -> Vec<usize> {
    let elevators = &page.elevators;
    let has_few = elevators.len() <= PICKED_MAX;
    let mut picked: Vec<usize> = Vec::new();
    for (index, elevator) in elevators.iter().enumerate().filter(|(_, elevator)| has_few || elevator.is_current) {
        if !picked.iter().any(|&other| elevators[other].has_same_results(elevator)) {
            picked.push(index);
        }
    }
    if has_few || picked.len() > 1 {
        return picked;
    }
    let stars = |index: usize| table.rows.get(index).map_or(0, |row| row.cells.iter().filter(|c| c.best).count());
    let mut ranked: Vec<usize> = (0..page.elevators.len()).collect();
    ranked.sort_by(|&a, &b| {
        let by_rate = page.elevators[b].bytes_per_s.total_cmp(&page.elevators[a].bytes_per_s);
        stars(b).cmp(&stars(a)).then(by_rate).then(a.cmp(&b))
    });
    ranked.truncate(PICKED_MAX);
    ranked.sort_unstable();
    ranked
}

/// Returns true if latencies are shown in microseconds, because none reaches 10 ms.
fn latencies_in_us(page: &ComparePage) -> bool {
    page.elevators.iter().all(|e| e.latency.max_ns < 10_000_000)
}

/// The unit of the latencies of a page, and its factor from ns. Those of syncs are in ms.
pub fn latency_unit(page: &ComparePage) -> (&'static str, f64) {
    if latencies_in_us(page) { ("µs", 1e-3) } else { ("ms", 1e-6) }
}

/// Returns true if a job syncs.
pub fn has_syncs(page: &ComparePage) -> bool {
    page.elevators.iter().any(|e| e.sync.is_some())
}

/// The elevator with the best figure of a column. `None` if another has the same figure as shown,
/// because a difference after the third digit decides nothing, and if a job starves under it.
fn best(column: &Column, elevators: &[ElevatorResult]) -> Option<usize> {
    let values = || elevators.iter().enumerate().filter_map(|(index, e)| Some((index, (column.value)(e)?)));
    let (index, value) = match column.better {
        Better::More => values().max_by(|a, b| a.1.total_cmp(&b.1))?,
        Better::Less => values().min_by(|a, b| a.1.total_cmp(&b.1))?,
        Better::Neither => return None,
    };
    let shown = |value: f64| grouped_figure(value * column.scale);
    let is_tie = values().any(|(other, its)| other != index && shown(its) == shown(value));
    (values().count() > 1 && !is_tie && !elevators[index].starves).then_some(index)
}

fn columns(page: &ComparePage) -> Vec<Column> {
    use Better::{Less, More, Neither};
    let (latency_unit, latency_scale) = latency_unit(page);
    let short = page.elevators.iter().all(|e| e.runtime_ns < 1_000_000_000);
    let (time_unit, time_scale) = if short { ("ms", 1e-6) } else { ("s", 1e-9) };
    let column = |name, unit, help, better, scale, value| Column {
        name,
        unit,
        help,
        first: matches!(name, "All" | "Least" | "Mean" | "Seek") || (name == "Transfer" && page.solid_state),
        better,
        value,
        scale,
    };
    let rate = |name, help, better, value| column(name, "MB/s", help, better, 1e-6, value);
    let late = |name, help, value| column(name, latency_unit, help, Less, latency_scale, value);
    let sync = |name, help, value| column(name, "ms", help, Less, 1e-6, value);
    let time = |name, help, better, value| column(name, time_unit, help, better, time_scale, value);
    let mut columns = vec![
        rate("All", "The throughput of all processes together.", More, |e| Some(e.bytes_per_s)),
        column("Of one stream", "%", "The throughput as a share of one sequential reader alone.", More, 100.0, |e| {
            e.of_single_stream
        }),
        time("Runtime", "The time from the first request to the last completion.", Less, |e| Some(e.runtime_ns as f64)),
        rate("Least", "The throughput of the slowest process.", More, |e| Some(e.process_min_bytes_per_s)),
        rate("Most", "The throughput of the fastest process.", Neither, |e| Some(e.process_max_bytes_per_s)),
        column("Jain", "", "Jain's fairness index: 1 for equal throughput of all processes.", More, 1.0, |e| e.jain),
        late("Mean", "The mean latency of a request.", |e| Some(e.latency.mean_ns)),
        late("Std dev", "The standard deviation of the latency.", |e| Some(e.latency.stddev_ns)),
        late("p50", "The median latency: half of the requests took no longer.", |e| Some(e.latency.p50_ns as f64)),
        late("p99", "The 99th percentile: 99 of 100 requests took no longer.", |e| Some(e.latency.p99_ns as f64)),
        late("Max", "The longest latency.", |e| Some(e.latency.max_ns as f64)),
        sync("Sync p99", "99 of 100 fsyncs and fdatasyncs of the slowest job took no longer.", |e| {
            Some(e.sync?.p99_ns as f64)
        }),
        sync("Sync max", "The longest fsync or fdatasync.", |e| Some(e.sync?.max_ns as f64)),
        time("Seek", "The share of time in which the drive moved its arm.", Less, |e| Some(e.drive.seek_ns as f64)),
        time("Rotation", "The share of time in which the drive waited for the rotation.", Less, |e| {
            Some(e.drive.rotation_ns as f64)
        }),
        time("Transfer", "The share of time in which the drive transferred data.", Neither, |e| {
            Some(e.drive.transfer_ns as f64)
        }),
        time("Overhead", "The share of time of the controller's overhead.", Neither, |e| {
            Some(e.drive.overhead_ns as f64)
        }),
        time(
            "Idle",
            "The share of time in which the drive had no request, or the elevator idled for one.",
            Less,
            |e| Some(e.drive.idle_ns as f64),
        ),
    ];
    columns.retain(|column| !page.solid_state || !matches!(column.name, "Seek" | "Rotation"));
    columns.retain(|column| has_syncs(page) || !matches!(column.name, "Sync p99" | "Sync max"));
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rates: &[f64]) -> ComparePage {
        let elevator = |(i, &bytes_per_s): (usize, &f64)| ElevatorResult {
            name: format!("e{i}"),
            bytes_per_s,
            of_single_stream: (i > 0).then_some(bytes_per_s / 1e8),
            runtime_ns: 10_000_000_000,
            ..ElevatorResult::default()
        };
        ComparePage { elevators: rates.iter().enumerate().map(elevator).collect(), ..ComparePage::default() }
    }

    #[test]
    fn the_best_of_a_column_is_marked_unless_another_looks_equal() {
        let marked = |rates: &[f64]| table(&page(rates)).rows.iter().map(|r| r.cells[0].best).collect::<Vec<_>>();
        assert_eq!(marked(&[1e6, 3e6, 2e6]), [false, true, false]);
        assert_eq!(marked(&[1e6, 3e6, 3e6]), [false; 3]);
        assert_eq!(marked(&[1e6, 3.0001e6, 3.0002e6]), [false; 3]);
    }

    #[test]
    fn an_elevator_under_which_a_job_starves_is_not_marked() {
        let mut page = page(&[1e6, 3e6, 2e6]);
        page.elevators[1].starves = true;
        let table = table(&page);
        assert!(table.rows.iter().all(|row| !row.cells[0].best) && table.rows[1].starves);
    }

    #[test]
    fn the_table_of_an_ssd_has_neither_seek_nor_rotation() {
        let page = ComparePage { solid_state: true, ..page(&[1e6, 2e6]) };
        let table = table(&page);
        assert!(table.columns.iter().all(|column| !["Seek", "Rotation"].contains(&column.name)));
        assert_eq!(table.groups.iter().map(|g| g.span).sum::<usize>(), table.columns.len());
    }

    #[test]
    fn the_table_of_a_job_that_syncs_has_its_syncs_and_others_do_not() {
        let mut page = page(&[1e6, 2e6, 3e6]);
        let heads = |page: &ComparePage| table(page).columns.iter().map(|c| (c.name, c.unit)).collect::<Vec<_>>();
        assert!(heads(&page).iter().all(|(name, _)| !name.contains("Sync")));
        let sync = |p99_ns, max_ns| Some(crate::SyncSummary { p99_ns, max_ns });
        page.elevators[0].sync = sync(7_000_000, 80_000_000);
        page.elevators[2].sync = sync(9_000_000, 10_000_000);
        // Requests take less than 10 ms, syncs do not.
        assert_eq!(&heads(&page)[9..13], [("p99", "µs"), ("Max", "µs"), ("Sync p99", "ms"), ("Sync max", "ms")]);
        let table = table(&page);
        let texts = |column: usize| table.rows.iter().map(|row| row.cells[column].text.as_str()).collect::<Vec<_>>();
        assert_eq!((texts(11), texts(12)), (vec!["7.00", "-", "9.00"], vec!["80.0", "-", "10.0"]));
        assert!(table.rows[0].cells[11].best && table.rows[2].cells[12].best);
        assert_eq!(table.groups.iter().map(|g| g.span).sum::<usize>(), table.columns.len());
    }

    #[test]
    fn a_column_of_equal_figures_has_no_best() {
        let table = table(&page(&[1e6, 1e6]));
        assert!(table.rows.iter().all(|r| r.cells.iter().all(|c| !c.best)));
    }

    #[test]
    fn a_single_elevator_has_no_best_mark() {
        assert!(table(&page(&[5.0])).rows[0].cells.iter().all(|c| !c.best));
    }

    #[test]
    fn an_unmeasured_share_is_a_dash() {
        let table = table(&page(&[1e6, 2e6]));
        assert_eq!(table.rows[0].cells[1].text, "-");
        assert_eq!(table.rows[1].cells[1].text, "2.00");
    }

    #[test]
    fn the_elevators_with_the_most_stars_are_selected_first() {
        let page = page(&[1e6, 9e6, 2e6, 8e6, 3e6, 7e6, 4e6, 6e6]);
        // The second elevator is best in both columns; the others follow by throughput.
        assert_eq!(first_picks(&page, &table(&page)), [1, 3, 4, 5, 6, 7]);
        let few = super::tests::page(&[1e6, 2e6]);
        assert_eq!(first_picks(&few, &table(&few)), [0, 1]);
    }

    #[test]
    fn distinct_elevators_of_current_kernels_are_selected_first() {
        let mut many = page(&[9e6, 1e6, 1e6, 2e6, 3e6, 4e6, 5e6]);
        for index in [1, 2, 4] {
            many.elevators[index].is_current = true;
        }
        assert_eq!(first_picks(&many, &table(&many)), [1, 4], "the results of 1 and 2 are equal");
        let few = page(&[9e6, 1e6, 1e6]);
        assert_eq!(first_picks(&few, &table(&few)), [0, 1]);
    }

    #[test]
    fn group_headings_cover_all_columns() {
        let table = table(&page(&[1.0]));
        assert_eq!(table.groups.iter().map(|g| g.span).sum::<usize>(), table.columns.len());
        assert_eq!(table.columns.iter().filter(|c| c.first).count(), table.groups.len());
    }
}
