//! The order of requests, compared with that of fio itself (`--write_iolog`). Without fio, the
//! tests are skipped with a message.

use std::process::Command;
use std::sync::Arc;

use hoistway_fio::{Direction, Job};
use hoistway_workload::{Generator, Region};

const SIZE: u64 = 1 << 20;

fn installed() -> bool {
    let there = Command::new("fio").arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("SKIPPED: fio is not installed, so nothing is compared with it");
    }
    there
}

/// A request: direction, file, offset and length.
type Request = (Direction, usize, u64, u64);

fn job_file(options: &str) -> String {
    // fio counts the bytes of a zone over all files, so zones are compared on one file.
    let is_single = options.contains("zonemode") || options.contains("backlog");
    let files = match () {
        () if is_single => "filename=a\nfilesize=1m",
        () if options.contains("openfiles") => "filename=a:b:c:d:e:f:g:h\nfilesize=128k",
        () => "filename=a:b\nfilesize=512k",
    };
    format!("[j]\n{files}\nsize=1m\n{}\n", options.replace("; ", "\n"))
}

/// The requests that fio makes for these options.
fn of_fio(options: &str) -> Vec<Request> {
    let dir = tempfile::tempdir().expect("a place to run in");
    std::fs::write(dir.path().join("job.fio"), job_file(options)).expect("the job file is written");
    let arguments = ["10", "fio", "--output=out", "--write_iolog=log", "job.fio"];
    let output = Command::new("timeout").args(arguments).current_dir(dir.path()).output().expect("fio runs");
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    let log = std::fs::read_to_string(dir.path().join("log")).expect("fio writes its log");
    log.lines().filter_map(request).collect()
}

/// A line of the log: time, file, action, offset, length.
fn request(line: &str) -> Option<Request> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, file, action, offset, length] = fields[..] else { return None };
    let direction = match action {
        "read" => Direction::Read,
        "write" => Direction::Write,
        "trim" => Direction::Trim,
        _ => return None,
    };
    Some((direction, usize::from(file.bytes().next()? - b'a'), offset.parse().ok()?, length.parse().ok()?))
}

fn of_generator(options: &str) -> Vec<Request> {
    let none = |path: &str, _: &str| Err(std::io::Error::other(path.to_owned()));
    let file = hoistway_fio::parse(&job_file(options), "job.fio", &|_| None, &none);
    let job: Arc<Job> = Arc::new(file.unwrap_or_else(|faults| panic!("{faults}")).jobs.remove(0));
    let files = job.files.filename.len() as u64;
    let regions = vec![Region { start: 0, len: SIZE / files }; job.files.filename.len()];
    let bytes = job.amount.io_size.map_or(SIZE, |size| size.of(SIZE));
    let mut generator = Generator::new(job, &regions, bytes, 1, 0);
    let mut requests = Vec::new();
    loop {
        requests.extend(std::iter::from_fn(|| generator.next()).map(|u| (u.direction, u.file, u.offset, u.bytes)));
        if !generator.begin_verification() && generator.next_pass().is_none() {
            return requests;
        }
    }
}

#[test]
fn sequential_requests_have_the_order_of_fio() {
    if !installed() {
        return;
    }
    for options in [
        "rw=read; ioengine=null",
        "rw=trim; ioengine=null",
        "rw=trimwrite; ioengine=null; file_service_type=sequential",
        "rw=read; ioengine=null; io_size=256k",
        "rw=read; ioengine=null; number_ios=10",
        "rw=read; ioengine=null; loops=2",
        "rw=read; ioengine=null; file_service_type=sequential",
        "rw=read; ioengine=null; file_service_type=roundrobin:4",
        "rw=write; openfiles=2",
        "rw=write; openfiles=1; loops=2",
        "rw=write; openfiles=3; file_service_type=roundrobin:5",
        "rw=write; openfiles=2; file_service_type=sequential",
        "rw=write; openfiles=2; io_size=2m",
        "rw=write; openfiles=3; io_size=300k",
        "rw=write; openfiles=3; create_on_open=1; unlink=1",
        "rw=read; ioengine=null; zonemode=strided; zonesize=16k; zonerange=64k",
        "rw=read; ioengine=null; zonemode=strided; zonesize=16k; zoneskip=48k",
        "rw=read; ioengine=null; zonemode=strided; zonesize=64k; zonerange=32k; zoneskip=32k",
        "rw=write; verify=crc32c",
        "rw=write; verify=crc32c; do_verify=0",
        "rw=write; verify=crc32c; verify_backlog=8",
        "rw=write; verify=crc32c; loops=2",
    ] {
        let (ours, theirs) = (of_generator(options), of_fio(options));
        let differs = ours.iter().zip(&theirs).position(|(one, other)| one != other);
        let at = differs.unwrap_or(ours.len().min(theirs.len()));
        let shown = |all: &[Request]| format!("{:?}", all.get(at..(at + 4).min(all.len())));
        assert!(
            ours == theirs,
            "{options}: request {at} of {} and {}: {} and {}",
            ours.len(),
            theirs.len(),
            shown(&ours),
            shown(&theirs)
        );
    }
}

#[test]
fn random_requests_have_the_sizes_and_bounds_of_fio() {
    if !installed() {
        return;
    }
    for options in [
        "rw=randread; ioengine=null; blockalign=8k",
        "rw=randread; ioengine=null; blockalign=1k",
        "rw=randread; ioengine=null; norandommap; random_distribution=zoned_abs:50/16k:50/16k",
        "rw=randread; ioengine=null; norandommap; random_distribution=zoned:50/5:30/15:20/",
        "rw=randtrim; ioengine=null",
        "rw=randtrimwrite; ioengine=null",
        "rw=randread; ioengine=null; zonemode=strided; zonesize=16k; zonerange=64k; zoneskip=64k",
    ] {
        let (ours, theirs) = (of_generator(options), of_fio(options));
        let summary = |all: &[Request]| {
            let last = all.iter().map(|request| request.2 + request.3).max().unwrap_or(0);
            let odd = all.iter().any(|request| !request.2.is_multiple_of(4096));
            let large = all.iter().any(|request| !request.2.is_multiple_of(8192));
            let trims = all.iter().filter(|request| request.0 == Direction::Trim).count();
            // The last offset is drawn: it is only the same up to an eighth.
            (all.len(), odd, large, trims, last.div_ceil(SIZE / 16))
        };
        assert_eq!(summary(&ours), summary(&theirs), "{options}");
    }
}
