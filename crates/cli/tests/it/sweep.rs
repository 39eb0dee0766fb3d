//! `hoistway sweep`: runs, interruptions, full disks, folders of results.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, Ran, hoistway, run};

/// A job that is simulated in less than a millisecond.
const JOB: &str = "[reader]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=10\n";
/// The longest time until the first results of a sweep are there.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sweep file beside the job `job.fio`; `rest` follows its first lines.
fn sweep(folder: &Folder, name: &str, rest: &str) -> String {
    folder.file("job.fio", JOB);
    folder.file(name, format!("jobs = [\"job.fio\"]\ndrives = [\"null\"]\nelevators = [\"noop\"]\n{rest}"))
}

/// The number of result files of [`long_sweep`]: of points and of jobs.
const LONG_SWEEP_FILES: usize = 200;

/// The sweep of some seconds that tests interrupt: 400 points in 100 files.
fn long_sweep(folder: &Folder) -> String {
    folder.file("long.fio", "[a]\nrw=randread\nsize=1g\nnumber_ios=1500\nnumjobs=2\n");
    folder.file(
        "long.toml",
        "jobs = [\"long.fio\"]\ndrives = [\"sata-7200-2006\"]\nelevators = [\"cfq\", \"bfq\"]\n\
         seeds = \"1-200\"\npoints_per_file = 4\n",
    )
}

/// All result files with their bytes.
fn results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for part in ["points", "jobs"] {
        for entry in fs::read_dir(folder.join(part)).expect("a folder of results") {
            let path = entry.expect("an entry").path();
            let name = format!("{part}/{}", path.file_name().expect("a name").to_string_lossy());
            files.insert(name, fs::read(&path).expect("results"));
        }
    }
    files.retain(|name, _| name.ends_with(".parquet"));
    files
}

/// Starts a sweep, and sends it a signal when it has written some files.
fn signalled(file: &str, output: &Path, signal: rustix::process::Signal) -> Ran {
    // One thread takes longer, so that the signal comes before the end.
    let mut command = hoistway(&["sweep", file, "-o", &output.display().to_string(), "--threads", "1"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let begun = Instant::now();
    while fs::read_dir(output.join("points")).map_or(0, Iterator::count) < 8 {
        assert!(begun.elapsed() < PATIENCE, "no results");
        std::thread::sleep(Duration::from_millis(5));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), signal).expect("it is not waited for");
    Ran::of(child.wait_with_output().expect("it ends"))
}

/// Interrupts a sweep before all of its results are written. On a busy machine the signal can come
/// too late; the sweep is then started again in an empty folder.
fn interrupted(file: &str, output: &Path, signal: rustix::process::Signal) -> Ran {
    for _ in 0..20 {
        let ran = signalled(file, output, signal);
        if ran.code != Some(0) && results(output).len() < LONG_SWEEP_FILES {
            return ran;
        }
        fs::remove_dir_all(output).expect("a folder of results");
    }
    panic!("20 sweeps were complete in spite of {signal:?}");
}

#[test]
fn a_sweep_runs_once_and_counts_its_points() {
    let folder = Folder::new();
    let file = sweep(&folder, "s.toml", "seeds = \"1-12\"\n");
    let output = folder.name("results");
    let first = run(&["sweep", &file, "-o", &output]);
    assert_eq!((first.code, first.err.as_str()), (Some(0), ""));
    assert!(first.out.contains("results: 12 of 12 points simulated, in "), "{}", first.out);
    let again = run(&["sweep", &file, "-o", &output, "--json", "--threads", "1"]).json();
    assert_eq!((&again["simulated"], &again["skipped"]), (&0.into(), &12.into()));
    let points = run(&["sweep", &file, "--points", "--json"]).json();
    assert_eq!(points["points"], 12);
}

#[test]
fn a_sweep_that_is_killed_goes_on_and_ends_with_the_bytes_of_one_that_was_not() {
    let folder = Folder::new();
    let file = long_sweep(&folder);
    let (killed, stopped, whole) = (folder.path("killed"), folder.path("stopped"), folder.path("whole"));
    let ran = interrupted(&file, &killed, rustix::process::Signal::KILL);
    assert_eq!(ran.code, None);
    let ran = interrupted(&file, &stopped, rustix::process::Signal::INT);
    assert_eq!(ran.code, Some(130), "{}", ran.err);
    assert!(ran.err.contains("interrupted: the same command continues with the missing points"), "{}", ran.err);
    assert!(ran.out.contains(" of 400 points simulated, in "), "{}", ran.out);
    assert_eq!(run(&["sweep", &file, "-o", &whole.display().to_string()]).code, Some(0));
    let expected = results(&whole);
    assert_eq!(expected.len(), LONG_SWEEP_FILES);
    for output in [killed, stopped] {
        let before = results(&output);
        assert!(before.len() < LONG_SWEEP_FILES && before.iter().all(|(name, bytes)| expected[name] == *bytes));
        let rest = run(&["sweep", &file, "-o", &output.display().to_string(), "--json"]).json();
        let skipped = rest["skipped"].as_u64().expect("a number");
        assert!(skipped > 0 && rest["simulated"] == 400 - skipped, "{rest}");
        assert_eq!(results(&output), expected);
    }
}

#[test]
fn results_of_two_machines_are_merged_by_copying() {
    let folder = Folder::new();
    let part = |name: &str, seeds: &str| sweep(&folder, name, &format!("seeds = {seeds}\n"));
    let (one, other, both) = (part("1.toml", "\"1-6\""), part("2.toml", "\"7-12\""), part("3.toml", "\"1-12\""));
    let (mine, theirs) = (folder.name("mine"), folder.name("theirs"));
    assert_eq!(run(&["sweep", &one, "-o", &mine]).code, Some(0));
    assert_eq!(run(&["sweep", &other, "-o", &theirs]).code, Some(0));
    let copied = Command::new("cp").args(["-r", &format!("{theirs}/."), &mine]).status().expect("cp");
    assert!(copied.success());
    let ran = run(&["sweep", &both, "-o", &mine]);
    assert!(ran.out.contains("0 of 12 points simulated, 12 had a result already"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_job_that_does_not_parse_in_one_of_ten_thousand_points_is_a_row_with_its_error() {
    let folder = Folder::new();
    let mut values: Vec<String> = (0..10_000).map(|number| format!("\"{}k\"", number * 4)).collect();
    values[7310] = "\"4kk\"".to_owned();
    let file = sweep(&folder, "s.toml", &format!("[vary]\n\"job.reader.offset\" = [{}]\n", values.join(", ")));
    let output = folder.name("results");
    for simulated in ["10,000", "0"] {
        // The error counts when the sweep goes on, too.
        let ran = run(&["sweep", &file, "-o", &output]);
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        assert!(ran.out.contains(&format!("{simulated} of 10,000 points simulated")), "{}", ran.out);
        for part in ["1 of 10,000 points have an error", "s.toml:5:", "offset: `kk` in `4kk` is not a unit of size"] {
            assert!(ran.err.contains(part), "`{part}` is missing in {}", ran.err);
        }
    }
}

#[test]
fn results_of_another_version_are_refused() {
    let folder = Folder::new();
    let file = sweep(&folder, "s.toml", "seeds = \"1-2\"\n");
    let output = folder.name("results");
    assert_eq!(run(&["sweep", &file, "-o", &output]).code, Some(0));
    let points = folder.path("results/points");
    let first = fs::read_dir(&points).expect("results").next().expect("a file").expect("an entry").path();
    let (here, there) = (env!("CARGO_PKG_VERSION").as_bytes(), b"9.9.9");
    assert_eq!(here.len(), there.len());
    let mut bytes = fs::read(&first).expect("results");
    for start in 0..bytes.len() - here.len() {
        if bytes[start..].starts_with(here) {
            bytes[start..start + here.len()].copy_from_slice(there);
        }
    }
    fs::write(points.join("other.parquet"), bytes).expect("a file");
    let ran = run(&["sweep", &file, "-o", &output]);
    ran.refused(1, &["points/other.parquet", "results of hoistway 9.9.9", "name another folder"]);
}

#[test]
fn a_full_disk_ends_the_sweep_and_the_complete_files_stay() {
    let folder = Folder::new();
    let file = sweep(&folder, "s.toml", "seeds = \"1-400\"\npoints_per_file = 4\n");
    let disk = folder.path("disk");
    fs::create_dir(&disk).expect("a folder");
    // The mount is gone when the shell ends.
    let script = format!(
        "mount -t tmpfs -o size=256k tmpfs disk || exit 99; {} sweep {file} -o disk; code=$?; mkdir -p kept && \
         cp -r disk/points disk/jobs kept; exit $code",
        env!("CARGO_BIN_EXE_hoistway")
    );
    let mut shell = Command::new("unshare");
    let Ok(output) = shell.args(["--mount", "sh", "-c", &script]).current_dir(folder.path("")).output() else {
        eprintln!("SKIPPED: unshare is not installed");
        return;
    };
    let ran = Ran::of(output);
    if ran.code == Some(99) || ran.err.contains("unshare failed") {
        eprintln!("SKIPPED: this user may not mount: {}", ran.err);
        return;
    }
    ran.refused(1, &["disk/", ".parquet: cannot write: No space left on device"]);
    let kept = folder.path("kept");
    let before = results(&kept);
    assert!(!before.is_empty());
    // What was complete is used again, and the rest is simulated.
    let rest = run(&["sweep", &file, "-o", &kept.display().to_string(), "--json"]).json();
    assert!(rest["skipped"].as_u64() > Some(0) && rest["failed"] == 0, "{rest}");
    let whole = folder.path("whole");
    assert_eq!(run(&["sweep", &file, "-o", &whole.display().to_string()]).code, Some(0));
    assert_eq!(results(&kept), results(&whole));
}

#[test]
fn mistakes_name_file_line_and_what_would_be_right() {
    let folder = Folder::new();
    let output = folder.name("results");
    let file = sweep(&folder, "s.toml", "seeds = \"1-2\"\n[vary]\n\"nop.slice_idle\" = [0]\n");
    run(&["sweep", &file, "-o", &output]).refused(1, &["s.toml:6:1", "there is no elevator `nop`"]);
    run(&["sweep", &folder.name("none.toml"), "-o", &output]).refused(1, &["none.toml: cannot read the sweep"]);
    run(&["sweep", &file.replace("s.toml", "good.toml")]).refused(1, &["good.toml: cannot read the sweep"]);
    run(&["sweep", &file, "-o", &output, "--threads", "0"]).refused(2, &["--threads"]);
    let good = sweep(&folder, "good.toml", "");
    run(&["sweep", &good]).refused(2, &["Name their folder with --output"]);
    run(&["sweep", &good, "-o", &good]).refused(1, &["good.toml: cannot create the directory"]);
    fs::create_dir_all(folder.path("results/points")).expect("a folder");
    folder.file("results/points/x.parquet", "not Parquet");
    run(&["sweep", &good, "-o", &output]).refused(1, &["points/x.parquet: this is no file of results"]);
}

#[test]
fn a_page_draws_the_results_of_a_folder() {
    let folder = Folder::new();
    let file = sweep(&folder, "s.toml", "seeds = \"1-3\"\n[vary]\n\"job.reader.numjobs\" = [1, 2]\n");
    let (output, page) = (folder.name("results"), folder.name("page.html"));
    let ran = run(&["sweep", &file, "-o", &output, "--report", &page]);
    assert!(ran.code == Some(0) && ran.out.contains("The page is in "), "{}{}", ran.out, ran.err);
    let drawn = fs::read_to_string(&page).expect("the page");
    assert!(drawn.contains("Sweep over job.readers.numjobs") || drawn.contains("Sweep over job.reader.numjobs"));
    fs::remove_file(&page).expect("a page");
    let by_folder = ["sweep", &output, "--report", &page, "--measure", "turns", "--over", "seed,job.reader.numjobs"];
    assert_eq!(run(&by_folder).code, Some(0));
    assert!(fs::read_to_string(&page).expect("the page").contains("turns"));
    run(&["sweep", &output]).refused(2, &["--report FILE.html draws the results in it"]);
    run(&["sweep", &output, "--report", &page, "--measure", "turn"]).refused(1, &["there is no figure `turn`"]);
    run(&["sweep", &output, "--report", &page, "--over", "seed"]).refused(2, &["two keys that vary"]);
    run(&["sweep", &output, "--report", &page, "--over", "seed,host"]).refused(1, &["`host` does not vary"]);
    let empty = folder.path("empty");
    fs::create_dir(&empty).expect("a folder");
    run(&["sweep", &empty.display().to_string(), "--report", &page]).refused(1, &["empty/points"]);
}
