//! The admin interface of a mount under load.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

use crate::support::scheduled::Scheduling;
use crate::support::{LONG, can_mount, scratch, wait_until};

/// Threads that read and write until they are stopped or an operation fails.
struct LoadThreads {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl LoadThreads {
    fn start(count: u64, source: &Path, at: &Path) -> LoadThreads {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let member = |number: u64| {
            let (stop, done) = (stop.clone(), done.clone());
            let (below, above) = (source.join(format!("{}", number % 8)), at.join(format!("{}", number % 8)));
            let own = at.join(format!("own-{number}"));
            thread::Builder::new()
                .stack_size(256 << 10)
                .spawn(move || {
                    let _ = work(number, &below, &above, &own, &stop, &done);
                })
                .expect("a thread")
        };
        let threads = (0..count).map(member).collect();
        LoadThreads { stop, done, threads }
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        self.done.load(Ordering::Relaxed)
    }
}

fn work(
    number: u64,
    below: &Path,
    above: &Path,
    own: &Path,
    stop: &AtomicBool,
    done: &AtomicU64,
) -> std::io::Result<()> {
    let (mut buffer, mut round) = (vec![0; 4096], number);
    while !stop.load(Ordering::Relaxed) {
        let file = File::open(above)?;
        for _ in 0..8 {
            round = round.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            file.read_exact_at(&mut buffer, (round >> 40) % 255 * 4096)?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        // The next read comes from the disk again.
        fadvise(File::open(below)?, 0, None, Advice::DontNeed)?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
        fs::write(own, &buffer)?;
        if number.is_multiple_of(10) {
            File::open(own)?.sync_all()?;
        }
        fs::remove_file(own)?;
    }
    Ok(())
}

/// Queries everything as `ctl ls -R`, `top` and a scraper do. Returns the number of leaves.
fn query_everything(mounted: &Scheduling) -> std::io::Result<usize> {
    let mut control = mounted.control(LONG);
    let leaves = control.query("ls -r")?;
    for leaf in &leaves {
        // An exited thread or a write-only leaf gives an error line.
        match control.query(&format!("get {leaf}")) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Other => {}
            Err(error) => return Err(error),
        }
    }
    control.query("get -r server")?;
    for device in control.query("ls devices")? {
        control.query(&format!("ls {}", device_path(&device, "tenants")))?;
        control.query(&format!("get -r devices/{}", device.trim_end_matches('/')))?;
    }
    let answer = control.query("get -r")?;
    assert!(answer.iter().any(|line| line.starts_with("clients/")), "{answer:?}");
    let metrics = mounted.metrics(LONG)?;
    for name in ["hoistway_requests_total{", "hoistway_weight{", "hoistway_last_reload_success 1", "process_threads "] {
        assert!(metrics.contains(name), "{name} is not in\n{metrics}");
    }
    Ok(leaves.len())
}

fn device_path(device: &str, below: &str) -> String {
    format!("devices/{}/{below}", device.trim_end_matches('/'))
}

#[test]
fn every_query_is_answered_while_two_hundred_threads_read_and_write() {
    if !can_mount("watching under load") {
        return;
    }
    let source = scratch();
    for number in 0..8 {
        fs::write(source.path().join(number.to_string()), vec![number; 1 << 20]).expect("it is written");
    }
    let config = "[mount]\nelevator = \"bfq\"\ndepth = 2\ndirty_age = \"10ms\"\n\
                  [[group]]\nname = \"all\"\n[[tenant]]\nname = \"root\"\nuid = 0\nparent = \"all\"\nop = [\"read\", \"write\"]\n";
    let mut mounted = Scheduling::new(source.path(), config);
    let crowd = LoadThreads::start(200, source.path(), &mounted.path());
    let mut control = mounted.control(LONG);
    wait_until("there are clients", || control.query("ls clients").is_ok_and(|clients| !clients.is_empty()));
    drop(control);
    let started = Instant::now();
    let (mut rounds, mut leaves) = (0, 0);
    while started.elapsed() < Duration::from_secs(3) || rounds < 2 {
        let (looked, done) = (query_everything(&mounted), crowd.done.load(Ordering::Relaxed));
        match looked {
            Ok(found) => (rounds, leaves) = (rounds + 1, leaves.max(found)),
            Err(error) => {
                // Threads that wait for the mount must be released before the test can fail.
                mounted.kill();
                panic!("after {:?}, {rounds} rounds and {done} reads: {error}", started.elapsed());
            }
        }
    }
    // The mount still works: reads continue, and all threads end.
    let (before, until) = (crowd.done.load(Ordering::Relaxed), Instant::now() + LONG);
    while crowd.done.load(Ordering::Relaxed) < before + 200 {
        if Instant::now() > until {
            mounted.kill();
            panic!("nothing is read any more");
        }
        thread::sleep(Duration::from_millis(10));
    }
    let done = crowd.end();
    assert!(leaves > 200 && done > 200, "{leaves} leaves were read {rounds} times beside {done} reads");
}

#[test]
fn slow_metrics_clients_keep_neither_a_scrape_nor_an_operator_out() {
    if !can_mount("slow metrics clients") {
        return;
    }
    let source = scratch();
    let mounted = Scheduling::new(source.path(), "[mount]\nelevator = \"bfq\"\n");
    // As many as there may be connections.
    let slow: Vec<_> = (0..64).map(|_| mounted.begin_scrape().expect("it listens")).collect();
    let metrics = mounted.metrics(LONG).expect("an answer");
    assert!(metrics.contains("hoistway_build_info"), "{metrics}");
    mounted.control(LONG).query("get server/version").expect("an answer");
    drop(slow);
}

/// A program in the mount whose limit queues it for an hour once it is used up.
fn parked(mounted: &Scheduling, script: &str) -> Child {
    let child = Command::new("sh").args(["-c", script]).current_dir(mounted.path()).stderr(Stdio::null()).spawn();
    let child = child.expect("it begins");
    let mut control = mounted.control(LONG);
    let path = format!("get clients/{}/stat", child.id());
    let waits = |answer: Vec<String>| {
        answer.concat().split(' ').any(|word| word.starts_with("in_flight=") && word != "in_flight=0")
    };
    wait_until(&format!("{script}: it waits"), || control.query(&path).is_ok_and(waits));
    // The request is queued, and not merely in flight for a moment.
    thread::sleep(Duration::from_millis(300));
    child
}

#[test]
fn requests_of_a_killed_process_are_cancelled_soon() {
    if !can_mount("killed clients") {
        return;
    }
    let source = scratch();
    fs::write(source.path().join("much"), vec![7; 8 << 20]).expect("it is written");
    for number in 0..200 {
        fs::write(source.path().join(format!("little-{number}")), "x").expect("it is written");
    }
    // Requests beyond the burst wait for minutes.
    let cases = [
        ("1M", "", "exec dd if=much of=/dev/null bs=1M iflag=direct"),
        ("40k", "", "exec rm little-*"),
        // Waiting for dirty memory, and for its own dirty data.
        ("1M", "dirty_limit = \"1M\"\n", "exec dd if=/dev/zero of=new bs=1M count=50"),
        ("1M", "", "exec dd if=/dev/zero of=durable bs=1M count=3 conv=fsync"),
    ];
    for (burst, terms, script) in cases {
        let tenant = format!("[[tenant]]\nname = \"slow\"\nuid = 0\nlimit = \"1k\"\nburst = {burst:?}\n");
        let mut mounted = Scheduling::new(source.path(), &format!("[mount]\nelevator = \"bfq\"\n{terms}{tenant}"));
        let mut child = parked(&mounted, script);
        child.kill().expect("it is killed");
        let started = Instant::now();
        while matches!(child.try_wait(), Ok(None)) {
            if started.elapsed() > LONG {
                mounted.kill();
                panic!("{script}: it is there still");
            }
            thread::sleep(Duration::from_millis(10));
        }
        let left = fs::read_dir(source.path()).expect("a listing").count();
        assert!(left > 100, "{script}: {left} files are left");
    }
}
