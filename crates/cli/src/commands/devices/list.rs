//! All devices, as a table that is a tree.

use anyhow::Result;
use comfy_table::Table;
use hoistway_machine::{BlockDevice, Kind, Queue, Root, directly_below};

use crate::figures::bytes;
use crate::output::{self, Out};

/// A row: a device, where it stands in the tree.
struct Row<'a> {
    /// What stands before its name.
    branch: String,
    device: &'a BlockDevice,
    /// It stands in the tree already, above.
    again: bool,
}

/// How much of a device stands on its line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    /// All.
    Whole,
    /// What it is, and who uses it, stands below; where there is no scheduler, in that one's column.
    Narrow,
    /// The scheduler stands below too.
    Narrowest,
}

/// What fits into the column of schedulers, which `none [mq-deadline] kyber bfq` takes anyway.
const SCHEDULER_COLUMNS: usize = 28;

/// Prints the devices, each above what is made of it.
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
            "The scheduler in brackets is set. rotates: as the kernel believes. depth: requests that the device, or without a word of it the queue, \
             takes at once, by its hardware queues.",
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
    out.paragraph(0, "`hoistway devices NAME` tells everything of one, with its tunables.")?;
    Ok(())
}

/// Prints the table, and below each row what its columns have no room for.
fn print_rows(rows: &[Row<'_>], width: Width, out: &mut Out) -> Result<()> {
    let mut table = table(rows, width);
    let lines = out.table_lines(&mut table);
    // Header and rule, then a line a row.
    let (head, body) = lines.split_at(2.min(lines.len()));
    head.iter().try_for_each(|line| out.line(line))?;
    for (line, row) in body.iter().zip(rows) {
        out.line(line)?;
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

    /// What it is, and who uses it.
    fn what_and_uses(&self) -> String {
        let parts = [what(self.device), uses(self.device)].into_iter().filter(|text| !text.is_empty());
        parts.collect::<Vec<_>>().join("; ")
    }

    /// What stands in the column of schedulers.
    fn scheduler(&self, width: Width) -> String {
        let told = self.what_and_uses();
        match &self.device.queue {
            Some(queue) if self.has_scheduler() || width == Width::Whole => schedulers(queue),
            _ if width == Width::Narrow && told.chars().count() <= SCHEDULER_COLUMNS => told,
            _ => String::new(),
        }
    }

    /// What stands below the row.
    fn details(&self, width: Width) -> String {
        let told = self.what_and_uses();
        let is_in_column = !self.has_scheduler() && told.chars().count() <= SCHEDULER_COLUMNS;
        match width {
            _ if self.again => String::new(),
            Width::Whole => String::new(),
            Width::Narrow if is_in_column => String::new(),
            Width::Narrow => told,
            Width::Narrowest => {
                let scheduler = self.device.queue.as_ref().filter(|_| self.has_scheduler()).map(schedulers);
                let parts = scheduler.into_iter().chain([told]).filter(|text| !text.is_empty());
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
        if row.again {
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
            cells.extend([what(device), uses(device)]);
        }
        table.add_row(cells);
    }
    table
}

/// As sysfs has them: `none [mq-deadline] kyber bfq`; what has no choice has a dash.
pub fn schedulers(queue: &Queue) -> String {
    if !queue.has_choice() {
        return "-".to_owned();
    }
    let set = queue.scheduler.as_deref();
    let names = queue.schedulers.iter().map(|name| if set == Some(name) { format!("[{name}]") } else { name.clone() });
    names.collect::<Vec<_>>().join(" ")
}

/// How much it takes at once: "32", "1023x8".
fn depth(queue: &Queue) -> String {
    match (queue.device_depth, queue.nr_requests, queue.hardware_queues) {
        (Some(depth), ..) => depth.to_string(),
        (None, Some(depth), Some(count)) if count > 1 => format!("{depth}x{count}"),
        (None, Some(depth), _) if queue.has_choice() => depth.to_string(),
        _ => String::new(),
    }
}

/// What it says it is: a model, a name, a file.
pub fn what(device: &BlockDevice) -> String {
    let named = device.identity.model.clone().or_else(|| device.label.clone());
    let file = device.backing_file.as_ref().map(|file| format!("of {}", file.display()));
    named.or(file).unwrap_or_default()
}

/// Who uses it: where it is mounted, swap.
pub fn uses(device: &BlockDevice) -> String {
    let mut uses: Vec<String> = device.mounts.iter().take(2).map(|mount| mount.at.display().to_string()).collect();
    if device.mounts.len() > 2 {
        uses.push(format!("{} more places", device.mounts.len() - 2));
    }
    if device.swap {
        uses.push("swap".to_owned());
    }
    if device.read_only && device.is_present() {
        uses.push("read-only".to_owned());
    }
    uses.join(", ")
}

/// The rows of the tree: disks first, then what is no disk; what is made of several stands under each, and what is made of it under the first.
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
    // Those that lie on one another in a circle, or on what is not to be seen, have no root.
    for (at, device) in all.iter().enumerate() {
        let is_there = tree.rows.iter().any(|row| row.device.number == device.number);
        if !is_there && (with_absent || device.is_present()) {
            tree.add(at, String::new(), String::new());
        }
    }
    tree.rows
}

struct Tree<'a> {
    all: &'a [BlockDevice],
    /// The names of what each is made of.
    below: Vec<Vec<&'a str>>,
    rows: Vec<Row<'a>>,
}

impl Tree<'_> {
    fn add(&mut self, at: usize, branch: String, trunk: String) {
        let device = &self.all[at];
        let again = self.rows.iter().any(|row| row.device.number == device.number);
        self.rows.push(Row { branch, device, again });
        if again {
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
