//! `hoistway ionice`: comparison with util-linux, and explanations.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use hoistway_core::Kind;
use hoistway_machine::{Class, Priority, effect_under};

use crate::common::{Folder, Ran, hoistway, run};
use crate::fake::{Fake, server};
use serde_json::json;

const BINARY: &str = env!("CARGO_BIN_EXE_hoistway");

/// A process whose priority is changed; it is killed on drop.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Sleeper {
        // A process group of its own, for the tests of -P.
        Sleeper(Command::new("sleep").arg("60").process_group(0).spawn().expect("sleep starts"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ionice(args: &[&str]) -> Ran {
    run(&[&["ionice"], args].concat())
}

/// The `ionice` of util-linux, if it is installed.
fn theirs(args: &[&str]) -> Option<Ran> {
    Command::new("ionice").args(args).output().ok().map(Ran::of)
}

/// Prints why a test is skipped; fails instead if all tests are required.
fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{why}");
    eprintln!("skipped: {why}");
}

#[test]
fn priorities_are_set_and_printed_as_by_util_linux() {
    if theirs(&["-V"]).is_none() {
        return skipped("util-linux's ionice is not there");
    }
    let sleeper = Sleeper::start();
    let pid = sleeper.pid();
    let mut tried = vec![
        vec!["-c", "idle"],
        vec!["-c3"],
        vec!["-c", "best-effort", "-n", "0"],
        vec!["-c2", "-n7"],
        vec!["-n", "3"],
        vec!["-c", "2"],
        vec!["-c", "Best-Effort", "-n5"],
        vec!["-c", "none"],
        vec!["-c0", "-n", "3"],
        vec!["-c", "idle", "-n", "3"],
        vec!["--class", "idle", "--ignore"],
    ];
    if rustix::process::geteuid().is_root() {
        tried.extend([vec!["-c", "realtime", "-n", "2"], vec!["-c1"]]);
    }
    for options in tried {
        let set = [&options[..], &["-p", &pid]].concat();
        let (their_set, their_output) = (theirs(&set).unwrap(), theirs(&["-p", &pid]).unwrap());
        assert_eq!(their_set.code, Some(0), "{options:?}");
        assert_eq!(ionice(&["-p", &pid]).out, their_output.out, "{options:?}");
        // From another priority, so that the change is visible.
        assert_eq!(ionice(&["-c2", "-n6", "-p", &pid]).code, Some(0));
        let our_set = ionice(&set);
        assert_eq!((our_set.code, our_set.out.as_str()), (Some(0), ""), "{options:?}");
        assert_eq!(our_set.err.is_empty(), their_set.err.is_empty(), "{options:?}: {}{}", our_set.err, their_set.err);
        assert_eq!(theirs(&["-p", &pid]).unwrap().out, their_output.out, "{options:?}: set");
    }
}

#[test]
fn processes_groups_and_users_are_printed_as_by_util_linux() {
    if theirs(&["-V"]).is_none() {
        return skipped("util-linux's ionice is not there");
    }
    let (one, other) = (Sleeper::start(), Sleeper::start());
    assert_eq!(ionice(&["-c", "idle", "-p", &one.pid()]).code, Some(0));
    let group = one.pid();
    for args in [&["-p", &one.pid(), &other.pid()][..], &["-P", &group], &[]] {
        let (ours, theirs) = (ionice(args), theirs(args).unwrap());
        assert_eq!((ours.code, ours.out), (theirs.code, theirs.out), "{args:?}");
    }
    assert_eq!(ionice(&["-P", &group]).out, "idle\n");
}

#[test]
fn the_priority_of_a_user_is_set_and_printed() {
    if theirs(&["-V"]).is_none() || !rustix::process::geteuid().is_root() {
        return skipped("util-linux's ionice, or root to start another user's process, is not there");
    }
    // A user without other processes. (For user 0, util-linux prints its own priority.)
    let child = Command::new("sleep").arg("60").uid(54_321).gid(54_321).spawn().expect("sleep starts");
    let _sleeper = Sleeper(child);
    for options in [&["-c", "idle"][..], &["-c", "realtime", "-n", "1"], &["-n", "7"]] {
        assert_eq!(ionice(&[options, &["-u", "54321"]].concat()).code, Some(0), "{options:?}");
        assert_eq!(ionice(&["-u", "54321"]).out, theirs(&["-u", "54321"]).unwrap().out, "{options:?}");
    }
    assert_eq!(ionice(&["-u", "54321"]).out, "best-effort: prio 7\n");
}

#[test]
fn a_command_runs_with_the_priority_and_returns_its_exit_code() {
    let ran_with = |options: &[&str]| ionice(&[options, &[BINARY, "ionice"]].concat());
    assert_eq!(ran_with(&["-c", "idle"]).out, "idle\n");
    assert_eq!(ran_with(&["-c2", "-n1"]).out, "best-effort: prio 1\n");
    assert_eq!(ran_with(&["-n7"]).out, "best-effort: prio 7\n");
    // Without class and level, the priority is that of an ordinary process.
    assert_eq!(ran_with(&[]).out, "best-effort: prio 4\n");
    // Arguments after the command belong to the command.
    assert_eq!(ionice(&["-c3", "sh", "-c", "exit $1", "-n", "5"]).code, Some(5));
    assert_eq!(ionice(&["-c3", "--", "sh", "-c", "exit 6"]).code, Some(6));
}

#[test]
fn exit_codes_are_those_of_util_linux() {
    if theirs(&["-V"]).is_none() {
        return skipped("util-linux's ionice is not there");
    }
    for args in [
        &["no-such-command-anywhere"][..],
        &["/etc/passwd"],
        &["-p", "x"],
        &["-p", "5000000"],
        &["-c2", "-p", "5000000"],
        &["-t", "-c2", "-p", "5000000"],
        &["-p", "1", "-P", "1"],
        &["-c", "strange", "true"],
        &["-n", "x", "true"],
        &["-c", "idle"],
        &["-p"],
        &["-Z"],
        &["-c3", "false"],
        &["-c3", "true"],
        &["-P", "5000000"],
        &["-u", "424242"],
        &["-t"],
    ] {
        assert_eq!(ionice(args).code, theirs(args).unwrap().code, "{args:?}");
    }
}

#[test]
fn invalid_input_is_named_with_a_remedy() {
    for (args, parts) in [
        (&["-c", "idel", "true"][..], &["no class `idel` (did you mean `idle`?)", "realtime"][..]),
        (&["-c", "4", "true"], &["no class `4`", "0 to 3"]),
        (&["-n", "8", "true"], &["`8` is no level", "0 (best) to 7"]),
        (&["-n", "-1", "true"], &["`-1` is no level"]),
        (&["-p", "1", "-u", "1"], &["only one of -p, -P and -u"]),
        (&["-p", "abc"], &["`abc` is no number of a process"]),
        (&["-P", "-5"], &["-5"]),
        (&["-p", "1", "sh"], &["`sh` is no number of a process"]),
        (&["-p", "5000000"], &["process 5000000: there is no such process"]),
        (&["-u", "424242"], &["user 424242: there is no process of this user"]),
        (&["-c", "idle"], &["for a command to run, or for processes"]),
        (&["--explain", "5000000"], &["process 5000000: there is no such process"]),
        (&["--explain", "-u", "0"], &["--explain takes processes"]),
        (&["--explain", "--device", "nosuch"], &["no block device `nosuch`"]),
        (&["--device", "sda", "true"], &["--explain"]),
    ] {
        ionice(args).refused(1, parts);
    }
}

#[test]
fn missing_permissions_are_reported() {
    if !rustix::process::geteuid().is_root() || Command::new("setpriv").arg("--version").output().is_err() {
        return skipped("setpriv, or root to begin with, is not there");
    }
    let folder = tempfile::Builder::new().prefix("hoistway").tempdir_in("/tmp").expect("a folder");
    let binary = folder.path().join("hoistway");
    std::fs::copy(BINARY, &binary).expect("a copy");
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    let unprivileged = |args: &[&str]| {
        let output = Command::new("setpriv")
            .args(["--reuid", "65534", "--clear-groups"])
            .arg(&binary)
            .arg("ionice")
            .args(args)
            .output()
            .expect("setpriv starts");
        Ran::of(output)
    };
    unprivileged(&["-c", "realtime", "true"]).refused(1, &["needs root", "realtime"]);
    let sleeper = Sleeper::start();
    unprivileged(&["-c", "best-effort", "-p", &sleeper.pid()]).refused(1, &["needs root", "another user's"]);
    let ran = unprivileged(&["-t", "-c", "realtime", "echo", "ran"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ran\n"), "{}", ran.err);
}

fn explained(fake: &Fake, args: &[&str]) -> Ran {
    ionice(&[args, &["--explain", "--root", fake.root().to_str().expect("UTF-8")]].concat())
}

#[test]
fn the_effect_of_a_priority_is_explained_for_each_device() {
    let fake = server();
    let ran = explained(&fake, &["-p", "901"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in [
        "qemu-system-x86 (901): none: prio 0",
        "It counts as best-effort: prio 4: no priority is set, so it follows nice 0.",
        "On dm-1 (1 open file): its requests go through dm-1, dm-0, sda2, sda",
        "sda, mq-deadline: it goes after realtime and before idle",
        "dm-0 is encrypted",
        "kernel threads issue part of its requests",
        "weight 40, as usual",
    ] {
        let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(part), "`{part}` is missing in:\n{}", ran.out);
    }
}

#[test]
fn options_may_follow_process_ids() {
    let fake = server();
    let root = fake.root().to_str().expect("UTF-8");
    let before = ionice(&["-c1", "--explain", "--device", "sdb", "--json", "--root", root, "901", "812"]);
    let behind = ionice(&["--explain", "901", "812", "--device", "sdb", "-c1", "--json", "--root", root]);
    assert_eq!(before.json(), behind.json());
    let ran = ionice(&["--explain", "901", "--nonsense", "--root", root]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("--nonsense"), "{}", ran.err);
    // Options after the command belong to the command.
    assert_eq!(ionice(&["-c", "idle", "echo", "--json", "-c"]).out, "--json -c\n");
}

#[test]
fn several_paths_are_explained_at_the_queue_above_them() {
    let fake = crate::fake::array();
    let ran = explained(&fake, &["-c1", "--device", "dm-1"]);
    assert!(ran.out.contains("its requests go through dm-1, dm-0\n"), "{}", ran.out);
    assert!(!ran.out.contains("sda, mq-deadline"), "{}", ran.out);
}

#[test]
fn a_priority_without_effect_is_explained_with_alternatives() {
    let fake = server();
    let of = |device: &str| explained(&fake, &["-c1", "-n0", "--device", device]);
    let ran = of("nvme0n1");
    assert!(ran.out.contains("nvme0n1, none: No effect: without a scheduler"), "{}", ran.out);
    assert!(ran.out.contains("hoistway devices set nvme0n1 scheduler=bfq"), "{}", ran.out);
    assert!(of("zram0").out.contains("No effect: zram0 has no scheduler"));
    fake.file("/sys/block/nbd0/queue/scheduler", "none mq-deadline [kyber]\n");
    let ran = of("nbd0");
    assert!(ran.out.contains("No effect: kyber ignores priorities"), "{}", ran.out);
    assert!(of("sda").out.contains("it goes before everything else"));
}

#[test]
fn elevators_of_the_kernel_module_explain_their_use_of_priorities() {
    let fake = server();
    fake.load_module();
    let of = |args: &[&str]| {
        let ran = explained(&fake, &[args, &["--device", "sda"]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (realtime, lowest, highest) = (of(&["-c1"]), of(&["-n7"]), of(&["-n0"]));
    assert!(realtime.contains("sda, cfq: ") && !realtime.contains("No effect"), "{realtime}");
    assert_ne!(lowest, highest);
    // A device that ignores priorities names those of its schedulers that do not.
    fake.file("/sys/block/sda/queue/scheduler", "[none] cfq fiops h-bfq\n");
    let without = of(&["-c1"]);
    assert!(without.contains("hoistway devices set sda scheduler=cfq"), "{without}");
}

#[test]
fn bfq_gives_a_level_its_weight_and_a_mirror_each_disk_s() {
    let fake = server();
    let document = explained(&fake, &["-n0", "--device", "/home", "--json"]).json();
    let queues = document["explained"][0]["devices"][0]["queues"].as_array().unwrap().clone();
    let names: Vec<_> = queues.iter().map(|queue| (&queue["device"], &queue["counts"])).collect();
    assert_eq!(names, [(&json!("sdb"), &json!(true)), (&json!("sdc"), &json!(true))]);
    assert!(
        queues[0]["effect"].as_str().unwrap().contains("weight 80, 40 at level 4 (2 times its share)"),
        "{}",
        queues[0]
    );
    assert!(queues[0]["notes"].to_string().contains("low_latency is 1"), "{}", queues[0]);
}

#[test]
fn a_control_group_overrides_a_priority() {
    let fake = server();
    fake.read_only_file("/proc/901/cgroup", "0::/backup\n");
    fake.file("/sys/fs/cgroup/backup/io.prio.class", "idle\n");
    fake.file("/sys/fs/cgroup/backup/io.latency", "8:0 target=75000\n");
    let ran = explained(&fake, &["-n0", "-p", "901"]);
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "It counts as idle: its control group changes it (io.prio.class)",
        "a latency target of 75000 us (io.latency)",
        "wait until no other is queued",
    ] {
        assert!(text.contains(part), "`{part}` is missing in:\n{}", ran.out);
    }
}

#[test]
fn every_elevator_explains_its_use_of_priorities() {
    let document = explained(&server(), &["-c", "idle", "--device", "sda", "--json"]).json();
    let elevators = document["explained"][0]["elevators"].as_array().unwrap().clone();
    assert_eq!(elevators.len(), hoistway_core::Kind::ALL.len());
    let of = |name: &str| elevators.iter().find(|row| row["elevator"] == name).unwrap();
    assert_eq!((&of("cfq")["counts"], &of("deadline")["counts"]), (&json!(true), &json!(false)));
}

#[test]
fn this_process_can_be_explained() {
    let ran = hoistway(&["ionice", "--explain"]).output().map(Ran::of).expect("it runs");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.starts_with("hoistway (") && ran.out.contains("under each elevator"), "{}", ran.out);
}

/// Runs jobs on a disk, and returns the requests of a process of the first job and of the second
/// job's one by elevator.
fn requests(folder: &Folder, jobs: &str, elevators: &str) -> Vec<(Kind, [u64; 2])> {
    let job = folder.file("job.fio", format!("[global]\nrw=randread\nbs=4k\nsize=1g\ndirect=1\ntime_based\n{jobs}"));
    let ran = run(&["compare", &job, "--elevators", elevators, "--drive", "sata-7200-2006", "--json"]).json();
    let of_run = |run: &serde_json::Value| {
        let name = run["name"].as_str().expect("a name");
        let kind = Kind::ALL.iter().find(|kind| kind.info().name == name).expect("an elevator");
        let of_job = |job: u64| {
            let processes = run["processes"].as_array().expect("processes").iter();
            let bytes = processes.filter(|process| process["job"] == job).map(|process| process["bytes"].as_u64());
            let bytes: Vec<u64> = bytes.map(|bytes| bytes.expect("bytes")).collect();
            bytes.iter().sum::<u64>() / 4096 / bytes.len() as u64
        };
        (*kind, [of_job(0), of_job(1)])
    };
    ran["elevators"].as_array().expect("runs").iter().map(of_run).collect()
}

/// The effect of the idle class in words.
fn idle_effect(kind: Kind) -> String {
    effect_under(kind, Priority::new(Class::Idle, 0)).text
}

#[test]
fn each_elevator_does_with_the_idle_class_what_explain_says() {
    let folder = Folder::new();
    // Four processes that always have requests, and another one with 8 in flight.
    let jobs = "ioengine=libaio\niodepth=8\nruntime=13\n[busy]\nnumjobs=4\n[other]\n";
    let usual = requests(&folder, jobs, "all");
    let with_idle = requests(&folder, &format!("{jobs}prioclass=3\n"), "all");
    assert_eq!(usual.len(), Kind::ALL.len());
    for ((kind, usual), (_, [busy, idle])) in usual.into_iter().zip(with_idle) {
        let text = idle_effect(kind);
        let expected = match text.as_str() {
            "nothing: all processes are served alike" => usual[1]..=usual[1],
            // The requests that are submitted before those of the others may precede them.
            "served when no other process has requests"
            | "served when no other process has requests, from 100 ms after the last of them on" => 0..=8,
            "served when no other process has requests; else one request when a turn ends 200 ms after its last" => {
                16..=8 + 13_000 / 200
            }
            "served when no other process has requests, or after 10 s" => 9..=busy / 4,
            text if text.starts_with("weight 1 among all processes, 100 without a priority") => 9..=busy / 20,
            text => panic!("{kind:?}: nothing is known of `{text}`"),
        };
        assert!(expected.contains(&idle), "{kind:?}: {text}: {idle} requests beside {busy}; usually {usual:?}");
    }
}

#[test]
fn the_idle_class_waits_100_ms_after_others_where_explain_says_so() {
    let folder = Folder::new();
    let jobs = "runtime=6\n[busy]\nthinktime=60ms\n[idle]\nprioclass=3\n";
    for (kind, [busy, idle]) in requests(&folder, jobs, "cfq-v3,cfq-bw,cfq,cfq-wf2q,bfq-v0,fiops") {
        let waits = idle_effect(kind).contains("from 100 ms after the last of them on");
        assert_eq!(idle <= busy, waits, "{kind:?}: {idle} requests beside {busy}");
    }
}
