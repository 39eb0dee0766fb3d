//! What `--explain` prints.

use anyhow::Result;

use super::explain::{Cost, Document, FileSystem};
use crate::figures::{bytes, figure};
use crate::output::{self, Out};

/// What every explanation rests on.
pub const HOW: &str = "Timed are the reads of the files' data alone, one after the other, each of at most 128 KiB and ahead within its file, on a drive that does \
nothing else; inodes and directories are left out.";

/// Prints it.
pub fn tell(document: &Document, out: &mut Out) -> Result<()> {
    if document.file_systems.is_empty() {
        return Ok(out.line("There is no file to read.")?);
    }
    for (index, of) in document.file_systems.iter().enumerate() {
        if index > 0 {
            out.line("")?;
        }
        out.paragraph(0, &found(of))?;
        let Some(drive) = &of.drive else {
            out.paragraph(0, "This file system does not tell where data lie: there is nothing to compare.")?;
            continue;
        };
        out.line("")?;
        let time = format!("time on\n{drive}");
        let header = ["order", "reads", "seeks", "backward", "distance", &time, "MB/s"];
        let mut table = output::table(&header, 1);
        for cost in &of.orders {
            table.add_row([
                cost.order.to_owned(),
                cost.reads.to_string(),
                cost.seeks.to_string(),
                cost.backward.to_string(),
                bytes(cost.distance_bytes),
                seconds(cost.seconds),
                rate(of, cost),
            ]);
        }
        out.table(&mut table)?;
        out.line("")?;
        out.paragraph(0, &verdict(of))?;
    }
    out.line("")?;
    Ok(out.paragraph(0, HOW)?)
}

/// "/srv/mail (8:1): 22500 files of 236 MB in 25400 extents".
pub fn found(of: &FileSystem) -> String {
    let mut text = format!(
        "{} (device {}): {} of {} in {} on the disk",
        of.path,
        of.device,
        counted(of.files, "file"),
        bytes(of.bytes),
        counted(of.extents, "extent")
    );
    if of.without_data > 0 {
        text.push_str(&format!("; {} without data there", counted(of.without_data, "file")));
    }
    if of.not_placed > 0 {
        text.push_str(&format!(
            "; {} not wholly written yet (--sync has them written)",
            counted(of.not_placed, "file")
        ));
    }
    text.push('.');
    text
}

/// How the best compares with the order in which most programs read.
pub fn verdict(of: &FileSystem) -> String {
    let time = |name: &str| of.orders.iter().find(|cost| cost.order == name).map_or(0.0, |cost| cost.seconds);
    let (readdir, block) = (time("readdir"), time("block"));
    if block <= 0.0 {
        return "Nothing has to be read.".to_owned();
    }
    let times = readdir / block;
    if times < 1.05 {
        return "The files lie in the order of the directories already: another order is worth nothing here."
            .to_owned();
    }
    format!(
        "In the order of blocks it takes {}, in that of the directories {}: {} times as long.",
        seconds(block),
        seconds(readdir),
        figure(times)
    )
}

/// "12.3 s", "4.5 min".
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{} h", figure(s / 3600.0)),
        s if s >= 600.0 => format!("{} min", figure(s / 60.0)),
        s => format!("{} s", figure(s)),
    }
}

fn rate(of: &FileSystem, cost: &Cost) -> String {
    if cost.seconds > 0.0 { figure(of.bytes as f64 / 1e6 / cost.seconds) } else { "-".to_owned() }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(readdir: f64, block: f64) -> FileSystem {
        let cost = |order, seconds| Cost {
            order,
            reads: 1,
            distance_bytes: 0,
            seeks: 0,
            backward: 0,
            seconds,
            head: Vec::new(),
        };
        FileSystem {
            device: "8:1".into(),
            path: "p".into(),
            files: 1,
            bytes: 4096,
            extents: 1,
            without_data: 0,
            not_placed: 2,
            drive: Some("d".into()),
            orders: vec![cost("readdir", readdir), cost("block", block)],
        }
    }

    #[test]
    fn a_verdict_compares_blocks_with_directories() {
        assert!(
            verdict(&of(90.0, 20.0)).ends_with("takes 20.0 s, in that of the directories 90.0 s: 4.50 times as long.")
        );
        assert!(verdict(&of(1.0, 1.0)).contains("worth nothing"));
        assert_eq!(verdict(&of(0.0, 0.0)), "Nothing has to be read.");
    }

    #[test]
    fn what_was_found_is_told_with_what_is_not_on_the_disk() {
        let text = found(&of(1.0, 1.0));
        assert_eq!(
            text,
            "p (device 8:1): 1 file of 4.10 kB in 1 extent on the disk; 2 files not wholly written yet (--sync has them written)."
        );
    }
}
