//! Prints all devices as a table, in which the first column is a tree.

use anyhow::Result;
use comfy_table::Table;
use hoistway_machine::{BlockDevice, Kind, ModuleState, Queue, Root, directly_below};

use super::summary::{description, schedulers, uses};
use crate::output::{self, Out};
use hoistway_units::figures::bytes;

/// A row of the table.
struct Row<'a> {
    /// The branch of the tree in front of the name.
    branch: String,
    device: &'a BlockDevice,
    /// True if an earlier row has the device.
    is_repeated: bool,
}

/// Number of columns for the line of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    /// All columns.
    Whole,
    /// Description and use are below the row; without a scheduler they are in its column.
    Narrow,
    /// The scheduler is below the row too.
    Narrowest,
}

/// The width of the scheduler column: that of `none [mq-deadline] kyber bfq`.
const SCHEDULER_COLUMNS: usize = 28;

/// Prints the devices, each above the devices that are made of it.
pub fn print(root: &Root, all: &[BlockDevice], with_absent: bool, out: &mut Out) -> Result<()> {
    let rows = tree(root, all, with_absent);
    if rows.is_empty() {
        out.line("There are no block devices.")?;
    } else {
        let fits = |width: &Width| out.takes(output::width(&table(&rows, *width)));
        let width = [Width::Whole, Width::Narrow].into_iter().find(fits).unwrap_or(Width::Narrowest);
        print_rows(&rows, width, out)?;
        out.line("")?;
        out.paragraph(
            0,
            "The scheduler in brackets is active. rotates: what the kernel assumes. depth: requests that the device takes at once, or, \
             if it does not report that, its queue, times its hardware queues.",
        )?;
    }
    let absent = all.iter().filter(|device| device.disk.is_none() && !device.is_present()).count();
    if absent > 0 && !with_absent {
        let what = if absent == 1 {
            "1 device with nothing in it is"
        } else {
            &format!("{absent} devices with nothing in them are")
        };
        out.paragraph(0, &format!("{what} left out: --all shows all."))?;
    }
    if let Some(sentence) = ModuleState::read(root).sentence(None) {
        out.paragraph(0, &sentence)?;
    }
    out.paragraph(0, "`hoistway devices NAME` shows everything about one device, with its tunables.")?;
    Ok(())
}

/// Prints the table, and below each row the details that do not fit into columns.
fn print_rows(rows: &[Row<'_>], width: Width, out: &mut Out) -> Result<()> {
    let mut table = table(rows, width);
    let lines = out.table_lines(&mut table);
    // Header and rule, then one line for each row.
    let (head, body) = lines.split_at(2.min(lines.len()));
    head.iter().try_for_each(|line| out.escaped_line(line))?;
    for (line, row) in body.iter().zip(rows) {
        out.escaped_line(line)?;
        let details = row.details(width);
        if !details.is_empty() {
            out.paragraph(6, &details)?;
        }
    }
    Ok(())
}

impl Row<'_> {
    fn has_scheduler(&self) -> bool {
        self.device.queue.as_ref().is_some_and(Queue::has_choice)
    }

    /// Description and use of the device.
    fn description_and_uses(&self) -> String {
        let parts = [description(self.device), uses(self.device)].into_iter().filter(|text| !text.is_empty());
        parts.collect::<Vec<_>>().join("; ")
    }

    /// The text of the scheduler column.
    fn scheduler(&self, width: Width) -> String {
        let summary = self.description_and_uses();
        match &self.device.queue {
            Some(queue) if self.has_scheduler() || width == Width::Whole => schedulers(queue),
            _ if width == Width::Narrow && summary.chars().count() <= SCHEDULER_COLUMNS => summary,
            _ => String::new(),
        }
    }

    /// The text below the row.
    fn details(&self, width: Width) -> String {
        let summary = self.description_and_uses();
        let is_in_column = !self.has_scheduler() && summary.chars().count() <= SCHEDULER_COLUMNS;
        match width {
            _ if self.is_repeated => String::new(),
            Width::Whole => String::new(),
            Width::Narrow if is_in_column => String::new(),
            Width::Narrow => summary,
            Width::Narrowest => {
                let scheduler = self.device.queue.as_ref().filter(|_| self.has_scheduler()).map(schedulers);
                let parts = scheduler.into_iter().chain([summary]).filter(|text| !text.is_empty());
                parts.collect::<Vec<_>>().join("; ")
            }
        }
    }
}

fn table(rows: &[Row<'_>], width: Width) -> Table {
    let header: &[&str] = match width {
        Width::Whole => &["device", "kind", "rotates", "size", "depth", "scheduler", "what", "used by"],
        Width::Narrow => &["device", "kind", "rotates", "size", "depth", "scheduler, or what it is"],
        Width::Narrowest => &["device", "kind", "rotates", "size", "depth"],
    };
    let mut table = output::table(header, header.len());
    for column in table.column_iter_mut().skip(3).take(2) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    for row in rows {
        let device = row.device;
        let name = format!("{}{}", row.branch, device.name);
        if row.is_repeated {
            table.add_row([name, "see above".to_owned()]);
            continue;
        }
        let queue = device.queue.as_ref();
        let rotates = match queue.and_then(|queue| queue.rotational) {
            Some(true) if !device.kind.is_memory() => "yes",
            Some(false) => "no",
            _ => "",
        };
        let size = if device.is_present() { bytes(device.bytes) } else { "-".to_owned() };
        let depth = queue.map_or_else(String::new, depth);
        let mut cells = vec![name, device.kind.label().to_owned(), rotates.to_owned(), size, depth];
        if width != Width::Narrowest {
            cells.push(row.scheduler(width));
        }
        if width == Width::Whole {
            cells.extend([description(device), uses(device)]);
        }
        table.add_row(cells);
    }
    table
}

/// The requests that the device takes at once: `32`, `1023x8`.
fn depth(queue: &Queue) -> String {
    match (queue.device_depth, queue.nr_requests, queue.hardware_queues) {
        (Some(depth), ..) => depth.to_string(),
        (None, Some(depth), Some(count)) if count > 1 => format!("{depth}x{count}"),
        (None, Some(depth), _) if queue.has_choice() => depth.to_string(),
        _ => String::new(),
    }
}

/// The rows of the tree, disks first. A device that is made of several is repeated under each; what
/// is made of it follows only once.
fn tree<'a>(root: &Root, all: &'a [BlockDevice], with_absent: bool) -> Vec<Row<'a>> {
    let below: Vec<Vec<&str>> = all
        .iter()
        .map(|device| directly_below(root, all, device).iter().map(|other| other.name.as_str()).collect())
        .collect();
    let mut roots: Vec<usize> = (0..all.len()).filter(|at| below[*at].is_empty()).collect();
    roots.retain(|at| with_absent || all[*at].is_present());
    roots.sort_by_key(|at| rank(all[*at].kind));
    let mut tree = Tree { all, below, rows: Vec::new() };
    for at in roots {
        tree.add(at, String::new(), String::new());
    }
    // Devices in a circle, or on hidden devices, are below no root.
    for (at, device) in all.iter().enumerate() {
        let is_shown = tree.rows.iter().any(|row| row.device.number == device.number);
        if !is_shown && (with_absent || device.is_present()) {
            tree.add(at, String::new(), String::new());
        }
    }
    tree.rows
}

struct Tree<'a> {
    all: &'a [BlockDevice],
    /// For each device, the names of the devices one level below.
    below: Vec<Vec<&'a str>>,
    rows: Vec<Row<'a>>,
}

impl Tree<'_> {
    fn add(&mut self, at: usize, branch: String, trunk: String) {
        let device = &self.all[at];
        let is_repeated = self.rows.iter().any(|row| row.device.number == device.number);
        self.rows.push(Row { branch, device, is_repeated });
        if is_repeated {
            return;
        }
        let above: Vec<usize> =
            (0..self.all.len()).filter(|other| self.below[*other].contains(&device.name.as_str())).collect();
        for (index, child) in above.iter().enumerate() {
            let (branch, more) = if index + 1 == above.len() { ("└─", "  ") } else { ("├─", "│ ") };
            self.add(*child, format!("{trunk}{branch}"), format!("{trunk}{more}"));
        }
    }
}

fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Disk | Kind::Nvme | Kind::Virtio | Kind::Xen | Kind::Mmc | Kind::Pmem | Kind::Other => 0,
        Kind::Rom | Kind::Nbd | Kind::Ublk => 1,
        Kind::Lvm | Kind::Crypt | Kind::Multipath | Kind::Mapper | Kind::Md | Kind::Partition => 2,
        Kind::Loop => 3,
        Kind::Zram | Kind::Ram => 4,
    }
}
