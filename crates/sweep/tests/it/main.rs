//! Sweeps from their files to their results.

mod folder;
mod page;
mod plan;
mod spec;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use hoistway_sweep::{LocalOptions, Plan, ResultFolder, Summary, SweepSpec, run};

/// A job file that is simulated in some milliseconds.
const JOB: &str = "[reader]\nrw=randread\nsize=4m\nnumber_ios=50\n\n[writer]\nrw=write\nsize=1m\n";

/// A sweep file with the job above written out; `rest` follows.
fn text(rest: &str) -> String {
    format!("jobs = [{{ name = \"two\", text = '''\n{JOB}''' }}]\n{rest}")
}

fn plan(rest: &str) -> Plan {
    let spec = SweepSpec::from_toml(&text(rest), "sweep.toml", Path::new("")).expect("a valid sweep");
    Plan::new(spec).expect("few points")
}

fn run_in(folder: &Path, plan: &Plan, threads: usize) -> Summary {
    let folder = ResultFolder::open(folder).expect("a folder of results");
    let options = LocalOptions { threads, available_bytes: None };
    run(plan, &folder, options, &|_| {}, &AtomicBool::new(false)).expect("a sweep")
}
