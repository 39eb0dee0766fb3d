//! `cargo xtask kernel locks`: how long the lock of a queue is held under each elevator, from the
//! kernel's statistics of locks.

use anyhow::{Context, Result, bail};
use hoistway_guest::plan::{Campaign, ElevatorLock, Plan, Step, Subject};
use hoistway_guest::protocol::Counts;
use hoistway_vm::{architecture, table};

use super::test::Session;
use super::{build, plans, test};

/// The name of the lock of the module's queues in the statistics.
const MODULE_LOCK: &str = "&hw->lock";
/// The elevators of the kernel that have one lock for a queue, and its name.
const KERNEL_LOCKS: [(&str, &str); 2] = [("mq-deadline", "&dd->lock"), ("bfq", "&bfqd->lock")];

/// Options of `cargo xtask kernel locks`.
#[derive(clap::Args, Clone, Debug)]
pub struct Options {
    /// The kernel, which must have the statistics of locks
    #[arg(long, value_name = "KERNEL", default_value = "6.12-lockstat")]
    kernel: String,
    /// The duration of the measurement of an elevator in seconds
    #[arg(long, value_name = "S", default_value_t = 20)]
    seconds: u64,
    /// The memory of the virtual machine in MiB
    #[arg(long, value_name = "MIB", default_value_t = 768)]
    memory: u32,
    /// The seed of the load
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Measures the locks of all elevators in one boot and prints a table.
pub fn run(options: &Options) -> Result<()> {
    test::require_programs(architecture::BUILD, false, true)?;
    let session = Session::new("locks", options.memory, "")?;
    let Some(fetched) = super::present(&[table::find(&options.kernel)?], session.folder())?.pop() else {
        bail!("the kernel {} was not built", options.kernel);
    };
    let built = build::build(&fetched, session.folder())?;
    let (plan, locks) = plan(options);
    let boot = session.boot(&fetched, Some(&built.file), plan, false)?;
    if !boot.failures.is_empty() {
        bail!("{}\nthe logs are in {}", boot.failures.join("\n"), boot.directory.display());
    }
    let counts = boot.counts.get("locks").with_context(|| format!("{} has no statistics of locks", options.kernel))?;
    println!("{}", markdown(&locks, counts));
    Ok(())
}

/// The plan, and the locks that it measures.
fn plan(options: &Options) -> (Plan, Vec<ElevatorLock>) {
    let registers = plans::REGISTERED.map(str::to_owned).to_vec();
    // The elevators of the kernel's names have the prefix `h-`, for a comparison of the same ones.
    let twins = ["mq-deadline", "bfq"];
    let parameters = format!("elevators={},{}", registers.join(","), twins.join(","));
    let own = registers.iter().cloned().chain(twins.map(|name| format!("h-{name}")));
    let own: Vec<ElevatorLock> = own.map(|elevator| ElevatorLock { elevator, lock: MODULE_LOCK.to_owned() }).collect();
    let of_kernel =
        KERNEL_LOCKS.map(|(elevator, lock)| ElevatorLock { elevator: elevator.to_owned(), lock: lock.to_owned() });
    let locks: Vec<ElevatorLock> = of_kernel.into_iter().chain(own.iter().cloned()).collect();
    let elevators: Vec<String> = own.into_iter().map(|lock| lock.elevator).collect();
    let campaign = Campaign::LockStat { device: plans::NULL, elevators: locks.clone(), seconds: options.seconds };
    let limit_seconds = (options.seconds + 60) * locks.len() as u64;
    let plan = Plan {
        boot: plans::BOOT.map(str::to_owned).to_vec(),
        subject: Some(Subject { name: build::MODULE.to_owned(), parameters, elevators: elevators.clone() }),
        elevators,
        steps: vec![
            Step { name: "insert".to_owned(), limit_seconds: 120, campaign: Campaign::Insert },
            Step { name: "locks".to_owned(), limit_seconds, campaign },
        ],
        seed: options.seed,
        watchdog: true,
        ..Plan::default()
    };
    (plan, locks)
}

/// The figures as a table. Times are in microseconds.
fn markdown(locks: &[ElevatorLock], counts: &Counts) -> String {
    let mut text =
        "| elevator | lock | requests | acquisitions | for each request | held on average, µs | held at most, µs | \
                    held for each request, µs | waited for, % of acquisitions |\n|---|---|---|---|---|---|---|---|---|"
            .to_owned();
    for ElevatorLock { elevator, lock } in locks {
        let figure = |name: &str| counts.get(&format!("{elevator} {name}")).copied().unwrap_or(0) as f64;
        let (requests, acquisitions) = (figure("requests"), figure("acquisitions"));
        let hold_us = figure("hold_total_ns") / 1e3;
        text.push_str(&format!(
            "\n| `{elevator}` | `{lock}` | {requests} | {acquisitions} | {:.1} | {:.2} | {:.0} | {:.1} | {:.2} |",
            acquisitions / requests.max(1.0),
            hold_us / acquisitions.max(1.0),
            figure("hold_max_ns") / 1e3,
            hold_us / requests.max(1.0),
            figure("contentions") * 100.0 / acquisitions.max(1.0),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_times_of_each_lock() {
        let lock = ElevatorLock { elevator: "cfq".to_owned(), lock: MODULE_LOCK.to_owned() };
        let figures = [
            ("requests", 100),
            ("acquisitions", 400),
            ("contentions", 4),
            ("hold_max_ns", 41_300),
            ("hold_total_ns", 500_000),
        ];
        let counts = Counts::from(figures.map(|(name, figure)| (format!("cfq {name}"), figure)));
        let text = markdown(&[lock], &counts);
        assert!(text.ends_with("| `cfq` | `&hw->lock` | 100 | 400 | 4.0 | 1.25 | 41 | 5.0 | 1.00 |"), "{text}");
    }
}
