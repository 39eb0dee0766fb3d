//! The same files, run by fio itself. Without fio, the tests are skipped with a message.

use crate::common::{parse_text, path_of, testdata};
use hoistway_fio::{
    load,
    results::Report,
    units::{KbBase, parse_size},
};
use std::{path::Path, process::Command};

/// fio's version, or nothing when there is none.
fn installed() -> bool {
    let there = Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("SKIPPED: fio is not installed, so nothing is compared with it");
    }
    there
}

/// Runs a job file in a directory of its own and reads what fio prints.
fn run(text: &str) -> Report {
    let dir = tempfile::tempdir().expect("a place to run in");
    let file = dir.path().join("job.fio");
    std::fs::write(&file, text).expect("the job file is written");
    let output = fio(dir.path(), &["--output-format=json", "job.fio"]);
    // Notes of fio may stand before the JSON.
    let json = output.find("{\n").map_or("", |start| &output[start..]);
    Report::from_json(json).unwrap_or_else(|error| panic!("{error} in {output}"))
}

fn fio(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("fio").args(arguments).current_dir(dir).output().expect("fio runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn fio_accepts_every_example() {
    if !installed() {
        return;
    }
    for name in ["competing-readers.fio", "priorities.fio", "media-server.fio", "several-globals.fio"] {
        fio(Path::new("/"), &["--parse-only", &path_of(name)]);
    }
}

#[test]
fn fio_makes_the_same_jobs_of_several_global_sections() {
    if !installed() {
        return;
    }
    let ours = load(path_of("several-globals.fio")).unwrap_or_else(|error| panic!("{error}"));
    let theirs = run(&testdata("several-globals.fio"));
    let ours: Vec<_> =
        ours.jobs.iter().map(|job| (job.name.as_str(), job.groupid, job.region.size_or_all().of(0))).collect();
    let theirs: Vec<_> = theirs
        .jobs
        .iter()
        .map(|job| (job.jobname.as_str(), job.groupid, io_bytes(&job.read) + io_bytes(&job.write)))
        .collect();
    assert_eq!(ours, theirs);
}

fn io_bytes(direction: &Option<hoistway_fio::results::DirectionReport>) -> u64 {
    direction.as_ref().map_or(0, |direction| direction.io_bytes)
}

#[test]
fn fio_reads_the_same_sizes() {
    if !installed() {
        return;
    }
    // Not `ki` without a `b`: there fio 3.33 does not do what its manual says.
    let sizes = ["1000", "1000b", "3k", "3K", "3kb", "3kB", "3kib", "3KiB", "0x1000", "1m", "1mib"];
    for (base, name) in [(KbBase::Compatible, "1024"), (KbBase::Standard, "1000")] {
        let jobs: String = sizes.iter().map(|size| format!("[{size}]\nsize={size}\n")).collect();
        let text = format!("[global]\nioengine=null\nrw=write\nbs=1\nkb_base={name}\n{jobs}");
        for job in run(&text).jobs {
            assert_eq!(parse_size(&job.jobname, base), Ok(io_bytes(&job.write)), "{} by {name}", job.jobname);
        }
    }
}

#[test]
fn fio_issues_requests_of_the_same_sizes() {
    if !installed() {
        return;
    }
    for (options, direction) in
        [("bs=8k,16k", "write"), ("bs=8k,16k", "read"), ("bs=,16k", "read"), ("bs=16k,", "write")]
    {
        let text = format!("[j]\nioengine=null\nsize=64k\nrw={direction}\n{options}\n");
        let ours = parse_text(&text).expect("nothing is wrong").jobs.remove(0);
        let theirs = run(&text).jobs.remove(0);
        let (bs, ios) = match direction {
            "read" => (ours.blocks.bs.read.min(), theirs.read.as_ref().map_or(0, |read| read.total_ios)),
            _ => (ours.blocks.bs.write.min(), theirs.write.as_ref().map_or(0, |write| write.total_ios)),
        };
        assert_eq!(65_536 / bs, ios, "{options} {direction}");
    }
}

#[test]
fn fio_drops_the_rest_of_a_line_after_a_semicolon_or_a_hash() {
    if !installed() {
        return;
    }
    let text = "[j]\nioengine=null\nrw=write\nsize=64k ; not 4k\nfilename=a#b\n  # whole\n";
    let ours = parse_text(text).expect("nothing is wrong").jobs.remove(0);
    let theirs = run(text).jobs.remove(0);
    assert_eq!(ours.region.size_or_all().of(0), io_bytes(&theirs.write));
    let options = theirs.job_options.expect("it has options").0;
    assert!(options.contains(&("filename".into(), ours.files.filename.join(":"))), "{options:?}");
}

#[test]
fn fio_rejects_the_same_values_out_of_range() {
    if !installed() {
        return;
    }
    let dir = tempfile::tempdir().expect("a place to run in");
    for option in [
        "iodepth=0",
        "bs=0",
        "prio=8",
        "rwmixread=101",
        "nice=20",
        "direct=2",
        "direct",
        "random_distribution=zipf:1",
        "sync=2",
    ] {
        let text = format!("[j]\nioengine=null\nsize=64k\n{option}\n");
        assert!(parse_text(&text).is_err(), "{option} here");
        std::fs::write(dir.path().join("job.fio"), &text).expect("the job file is written");
        let output = Command::new("fio").args(["--parse-only", "job.fio"]).current_dir(dir.path()).output();
        assert!(!output.expect("fio runs").status.success(), "{option} there");
    }
}

#[test]
fn fio_gives_the_files_of_clones_the_same_names() {
    if !installed() {
        return;
    }
    let text =
        "[global]\nsize=8k\nrw=write\n[a]\nnumjobs=2\nnrfiles=2\n[b]\nfilename_format=$jobname-$jobnum-$filenum.dat\n";
    let ours = parse_text(text).expect("nothing is wrong");
    let mut names: Vec<String> =
        ours.jobs.iter().flat_map(|job| (0..job.start.numjobs).flat_map(|clone| job.files_of_clone(clone))).collect();
    names.push("job.fio".into());
    names.sort();
    let dir = tempfile::tempdir().expect("a place to run in");
    std::fs::write(dir.path().join("job.fio"), text).expect("the job file is written");
    fio(dir.path(), &["job.fio"]);
    let entries = std::fs::read_dir(dir.path()).expect("the place is there");
    let mut made: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    made.sort();
    assert_eq!(names, made);
}

/// The examples of Debian's package `fio-examples`, or those of `HOISTWAY_FIO_EXAMPLES`: a file
/// that is not accepted is refused for its engine alone.
#[test]
fn examples_of_fio_are_accepted_unless_their_engine_reaches_no_scheduler() {
    let folder = std::env::var("HOISTWAY_FIO_EXAMPLES").unwrap_or_else(|_| "/usr/share/doc/fio/examples".into());
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("SKIPPED: there are no examples of fio in {folder}");
        return;
    };
    let env = |name: &str| {
        Some(
            match name {
                "FIO_RW" => "randread",
                "FIO_BS" => "4k",
                "FIO_IODEPTH" => "8",
                _ => "x",
            }
            .to_owned(),
        )
    };
    let none = |path: &str, _: &str| Err(std::io::Error::other(path.to_owned()));
    let mut wrong = Vec::new();
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.extension().is_none_or(|extension| extension != "fio") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let Err(faults) = hoistway_fio::parse(&text, "example.fio", &env, &none) else { continue };
        // Options of an engine that this build of fio has no manual for are unknown.
        let is_for_engine = faults.0.iter().any(|fault| {
            fault.message.starts_with("ioengine: engine `") || fault.message.starts_with("no job moves data")
        });
        if !is_for_engine {
            wrong.push(format!("{}: {}", path.display(), faults));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn fio_reports_all_directions_together_under_one_key() {
    if !installed() {
        return;
    }
    for (unified, keys) in [("none", (true, false)), ("mixed", (false, true)), ("both", (true, true))] {
        let text = format!("[j]\nioengine=null\nrw=randrw\nsize=64k\nunified_rw_reporting={unified}\n");
        let theirs = run(&text).jobs.remove(0);
        assert_eq!((theirs.read.is_some() && theirs.sync.is_some(), theirs.mixed.is_some()), keys, "{unified}");
    }
}
