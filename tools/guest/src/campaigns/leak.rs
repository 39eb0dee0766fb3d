//! Memory of the kernel after many insertions, switches and removals.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use super::removal::remove_unused;
use super::{Context, Failure, Verdict};
use crate::load::{Load, Setup};
use crate::protocol::Counts;
use crate::{Outcome, kmemleak, plan, system};

/// Growth of the memory of the kernel that other parts of it cause: slabs with free objects, caches
/// of the processors.
const SLACK_KIB: u64 = 1536;
/// The fields of /proc/meminfo that are compared.
const FIELDS: [&str; 3] = ["SUnreclaim", "VmallocUsed", "Percpu"];

/// The memory that the kernel uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Usage {
    /// KiB by the fields of /proc/meminfo.
    kib: BTreeMap<String, u64>,
    /// Objects in use by the caches of /proc/slabinfo.
    objects: BTreeMap<String, u64>,
}

/// Inserts the module, uses each elevator under load, and removes the module, again and again.
/// `leak` is called once in a cycle: a test plants a leak there.
pub fn run(context: &mut Context, device: &plan::Device, cycles: u64, leak: Option<fn()>) -> Verdict {
    let Some(subject) = context.plan.subject.clone() else {
        return Err(Failure::Skipped("the plan has no module under test".to_owned()));
    };
    let device = context.device(device, "none")?;
    context.insert_subject()?;
    remove_unused(&subject)?;
    let mut cycle = |leak: Option<fn()>| -> Outcome<()> {
        context.insert_subject()?;
        let setup =
            Setup { bytes: 4 << 20, writers: 3, readers: 3, ..Setup::new(&device.path(), context.prng.number()) };
        let load = Load::start(setup)?;
        for elevator in &subject.elevators {
            device.queue().select(elevator)?;
            thread::sleep(Duration::from_millis(20));
        }
        device.queue().select("none")?;
        load.finish()?;
        if let Some(leak) = leak {
            leak();
        }
        remove_unused(&subject)
    };
    // The first cycles fill caches.
    for _ in 0..3 {
        cycle(None)?;
    }
    let before = usage()?;
    for _ in 0..cycles {
        cycle(leak)?;
    }
    let after = usage()?;
    context.insert_subject()?;
    if kmemleak::is_present() {
        // Such a kernel keeps freed objects for its checks, so that its memory grows. It searches
        // for leaks itself after the last campaign.
        return Ok(Counts::from([("cycles".to_owned(), cycles)]));
    }
    judge(&before, &after, cycles).map_err(Failure::Failed)
}

/// Fails if the kernel uses more memory than before: beyond the slack in the sum, or an object more
/// for every elevator of a cycle in a cache.
fn judge(before: &Usage, after: &Usage, cycles: u64) -> Outcome<Counts> {
    let mut counts = Counts::from([("cycles".to_owned(), cycles)]);
    let mut messages = Vec::new();
    for (field, now) in &after.kib {
        let growth = now.saturating_sub(before.kib.get(field).copied().unwrap_or(0));
        counts.insert(format!("{field}_growth_kib"), growth);
        if growth > SLACK_KIB {
            messages.push(format!("{field} grew by {growth} KiB in {cycles} cycles; {SLACK_KIB} KiB is the most"));
        }
    }
    let grown = after.objects.iter().filter_map(|(name, now)| {
        let growth = now.saturating_sub(before.objects.get(name).copied().unwrap_or(0));
        (growth > 0).then_some((growth, name.as_str()))
    });
    let mut grown: Vec<(u64, &str)> = grown.collect();
    grown.sort_unstable_by(|one, other| other.cmp(one));
    if !messages.is_empty() {
        let caches: Vec<String> = grown.iter().take(8).map(|(growth, name)| format!("{name} +{growth}")).collect();
        messages.push(format!("objects of caches: {}", caches.join(", ")));
        return Err(messages.join("\n"));
    }
    Ok(counts)
}

/// Reads the usage after unused memory was freed.
fn usage() -> Outcome<Usage> {
    for _ in 0..3 {
        system::drop_caches()?;
        thread::sleep(Duration::from_millis(500));
    }
    // Caches give free slabs back on this request.
    for entry in std::fs::read_dir("/sys/kernel/slab").into_iter().flatten().flatten() {
        let _ = system::try_write(&entry.path().join("shrink"), "1");
    }
    let meminfo = system::read("/proc/meminfo")?;
    let slabinfo = system::read("/proc/slabinfo").unwrap_or_default();
    Ok(Usage { kib: parse_meminfo(&meminfo), objects: parse_slabinfo(&slabinfo) })
}

fn parse_meminfo(text: &str) -> BTreeMap<String, u64> {
    let fields = text.lines().filter_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let kib = rest.split_whitespace().next()?.parse().ok()?;
        FIELDS.contains(&name).then(|| (name.to_owned(), kib))
    });
    fields.collect()
}

fn parse_slabinfo(text: &str) -> BTreeMap<String, u64> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("slabinfo"));
    let caches = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    });
    caches.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(unreclaimable: u64, objects: u64) -> Usage {
        Usage {
            kib: BTreeMap::from([("SUnreclaim".to_owned(), unreclaimable)]),
            objects: BTreeMap::from([("kmalloc-64".to_owned(), objects)]),
        }
    }

    #[test]
    fn growth_within_the_slack_passes_and_more_is_a_leak() {
        assert!(judge(&usage(10_000, 50), &usage(10_100, 90), 100).is_ok());
        let error = judge(&usage(10_000, 50), &usage(20_000, 900), 100).expect_err("10 MB are gone");
        assert!(error.contains("SUnreclaim grew by 10000 KiB") && error.contains("kmalloc-64 +850"), "{error}");
    }

    #[test]
    fn the_files_of_the_kernel_are_parsed() {
        let meminfo = "MemTotal:  1000 kB\nSUnreclaim:   123 kB\nVmallocUsed:   45 kB\n";
        assert_eq!(parse_meminfo(meminfo)["SUnreclaim"], 123);
        assert_eq!(parse_meminfo(meminfo).len(), 2);
        let slabinfo = "slabinfo - version: 2.1\n# name <active_objs>\nkmalloc-64  77  80 64 64 1 : tunables 0\n";
        assert_eq!(parse_slabinfo(slabinfo), BTreeMap::from([("kmalloc-64".to_owned(), 77)]));
    }
}
