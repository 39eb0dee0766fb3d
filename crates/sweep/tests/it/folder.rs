//! Folders of results: complete, resumed, merged, damaged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hoistway_sweep::{LocalOptions, ResultFolder, run};

use crate::{plan, run_in};

const SWEEP: &str = "drives = [\"sata-7200-2006\", \"ssd-sata-consumer\"]\nelevators = [\"cfq\", \"bfq\"]\n\
                     seeds = \"1-3\"\npoints_per_file = 2\n[vary]\n\"cfq.slice_idle\" = [0, 8]\n";

/// All result files with their bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for part in ["points", "jobs"] {
        for entry in fs::read_dir(folder.join(part)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{part}/{}", entry.file_name().to_string_lossy());
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

#[test]
fn the_files_do_not_depend_on_the_number_of_threads() {
    let (one, four) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(SWEEP);
    let summary = run_in(one.path(), &plan, 1);
    assert_eq!((summary.points, summary.simulated, summary.failed), (18, 18, 0));
    run_in(four.path(), &plan, 4);
    assert_eq!(files(one.path()), files(four.path()));
    assert_eq!(files(one.path()).len(), 18);
}

#[test]
fn an_interrupted_sweep_goes_on_and_ends_with_the_same_files() {
    let (whole, part) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(SWEEP);
    run_in(whole.path(), &plan, 2);
    let (cancel, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let first = {
        let folder = ResultFolder::open(part.path()).unwrap();
        let count = |_| cancel.store(done.fetch_add(1, Ordering::Relaxed) >= 6, Ordering::Relaxed);
        run(&plan, &folder, LocalOptions { threads: 1, available_bytes: None }, &count, &cancel).unwrap()
    };
    assert!(first.is_partial && (2..18).contains(&first.simulated), "{first:?}");
    // A process that was killed leaves an unfinished file.
    fs::write(part.path().join("points/.unfinished-abc"), "PAR1").unwrap();
    let second = run_in(part.path(), &plan, 2);
    assert_eq!((second.skipped, second.simulated), (first.simulated, 18 - first.simulated));
    assert_eq!(files(part.path()), files(whole.path()));
    assert_eq!(run_in(part.path(), &plan, 2).simulated, 0);
}

#[test]
fn results_of_two_folders_are_merged_by_copying() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let seeds = |seeds: &str| plan(&SWEEP.replace("\"1-3\"", seeds));
    run_in(one.path(), &seeds("[1]"), 2);
    run_in(other.path(), &seeds("[2, 3]"), 2);
    for part in ["points", "jobs"] {
        for entry in fs::read_dir(other.path().join(part)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), one.path().join(part).join(entry.file_name())).unwrap();
        }
    }
    let summary = run_in(one.path(), &plan(SWEEP), 2);
    assert_eq!((summary.skipped, summary.simulated), (18, 0));
}

#[test]
fn a_point_that_fails_is_a_row_with_its_error() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(
        "drives = [\"sata-7200-2006\"]\nelevators = [\"bfq\"]\n[vary]\n\"job.reader.bs\" = [\"4k\", \"4kk\"]\n\
         \"bfq.slice_idle\" = [8, 99999999999]\n",
    );
    let summary = run_in(folder.path(), &plan, 2);
    assert_eq!((summary.points, summary.simulated, summary.failed), (4, 4, 3));
    let error = summary.first_error.unwrap();
    assert!(error.contains("sweep.toml:1") && (error.contains("4kk") || error.contains("99999999999")), "{error}");
    // An error is a result: the point is not tried again.
    assert_eq!(run_in(folder.path(), &plan, 2).simulated, 0);
}

#[test]
fn a_folder_in_use_and_files_that_are_no_results_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open = ResultFolder::open(folder.path()).unwrap();
    let error = ResultFolder::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("another sweep writes here"), "{error}");
    drop(open);
    fs::write(folder.path().join("points/a.parquet"), "no table").unwrap();
    let error = ResultFolder::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("points/a.parquet: this is no file of results"), "{error}");
    let error = ResultFolder::open(&folder.path().join("points/a.parquet")).unwrap_err().to_string();
    assert!(error.contains("cannot create the directory"), "{error}");
}
