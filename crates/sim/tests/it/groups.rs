//! Control groups and reservations of jobs: the elevators that get them, and the notes on the
//! results.

use crate::common::{request, run};
use hoistway_core::Kind;
use hoistway_sim::{GroupRun, Run, Setting, group_switch};

/// Two random readers with work for every moment of ten seconds, one in a group of weight 300, one
/// in a group of 100.
const TWO_USERS: &str = "[global]\nsize=2g\nrw=randread\nbs=64k\ndirect=1\nioengine=libaio\niodepth=16\nruntime=10\n\
    time_based\n\
    [alice]\ncgroup=users/alice\ncgroup_weight=300\n[bob]\ncgroup=users/bob\ncgroup_weight=100\n";

fn group<'a>(run: &'a Run, name: &str) -> &'a GroupRun {
    run.groups.iter().find(|group| group.name == name).expect("a group of the job file")
}

#[test]
fn figures_of_a_group_include_its_child_groups() {
    let comparison = run(&request(TWO_USERS, &[Kind::Noop])).expect("a run");
    let run = &comparison.runs[0];
    assert!(!run.divides_by_groups);
    let names: Vec<(&str, u16)> = run.groups.iter().map(|group| (group.name.as_str(), group.weight)).collect();
    assert_eq!(names, [("users", 100), ("users/alice", 300), ("users/bob", 100)]);
    let [users, alice, bob] = ["users", "users/alice", "users/bob"].map(|name| group(run, name));
    assert_eq!(users.bytes, alice.bytes + bob.bytes);
    assert!((users.share - 1.0).abs() < 1e-9 && (alice.share + bob.share - 1.0).abs() < 1e-9, "{:?}", run.groups);
    let cgroups: Vec<Option<&str>> = run.processes.iter().map(|process| process.cgroup.as_deref()).collect();
    assert_eq!(cgroups, [Some("users/alice"), Some("users/bob")]);
    assert!(comparison.notes.iter().any(|note| note.contains("job `bob`: none of these elevators has control groups")));
}

#[test]
fn elevators_with_groups_divide_the_disk_by_weight() {
    for &kind in Kind::ALL.iter().filter(|kind| kind.info().groups) {
        let name = kind.info().name;
        let mut request = request(TWO_USERS, &[kind]);
        if kind == Kind::Bfq {
            // Without this, bfq raises the weight of both new readers for most of the ten seconds.
            request.settings.push(Setting::parse("bfq.low_latency=0").expect("a switch"));
        }
        if let Some(switch) = group_switch(kind).filter(|switch| switch.default == 0) {
            let comparison = run(&request).expect("a run");
            let [note] = &comparison.notes[..] else { panic!("{:?}", comparison.notes) };
            assert!(note.ends_with(&format!("with --set {name}.{}=1", switch.name)), "{note}");
            assert!(!comparison.runs[0].divides_by_groups);
            request.settings.push(Setting::parse(&format!("{name}.{}=1", switch.name)).expect("a switch"));
        }
        let comparison = run(&request).expect("a run");
        let alice = group(&comparison.runs[0], "users/alice");
        // 300 of 400 are due, but for the elevator that gives all groups the same.
        let due = if name == "cfq-v2" { 0.5 } else { 0.75 };
        assert!((due - 0.05..=due + 0.05).contains(&alice.share), "{name}: {:?}", comparison.runs[0].groups);
        assert!(comparison.runs[0].divides_by_groups && comparison.notes.is_empty(), "{:?}", comparison.notes);
    }
}

#[test]
fn shares_count_the_time_in_which_all_processes_ran() {
    // b begins after 4 s, when a alone has had all; from then on noop gives both the same.
    let text =
        "[global]\nsize=2g\nbs=64k\nruntime=8\ntime_based\ndirect=1\n[a]\ncgroup=a\n[b]\ncgroup=b\nstartdelay=4\n";
    let comparison = run(&request(text, &[Kind::Noop])).expect("a run");
    let (a, b) = (group(&comparison.runs[0], "a"), group(&comparison.runs[0], "b"));
    assert!((0.45..=0.55).contains(&a.share), "{a:?}, {b:?}");
    assert!(a.bytes > b.bytes * 3 / 4 && a.bytes_per_s > 0.0);
}

#[test]
fn jobs_without_groups_have_none() {
    let comparison = run(&request("[a]\nsize=1m\n", &[Kind::Noop])).expect("a run");
    assert!(comparison.runs[0].groups.is_empty() && comparison.runs[0].processes[0].cgroup.is_none());
}

/// A reader that thinks 2 ms after each request, among four that do not.
fn reserving(rate: &str) -> String {
    format!(
        "[global]\nsize=1g\nbs=128k\ndirect=1\nruntime=10\ntime_based\n[film]\nhoistway_reserve={rate}\nthinktime=2000\n\
         [others]\nnumjobs=4\n"
    )
}

#[test]
fn a_reservation_is_kept_by_an_elevator_with_reservations() {
    for &kind in Kind::ALL.iter().filter(|kind| kind.info().reservations) {
        let comparison = run(&request(&reserving("5m"), &[kind])).expect("a run");
        let film = &comparison.runs[0].processes[0];
        assert!(film.bytes_per_s > 0.95 * f64::from(5 << 20), "{}: {} bytes/s", kind.info().name, film.bytes_per_s);
        assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
    }
}

#[test]
fn a_refused_reservation_is_noted_and_the_job_runs() {
    for &kind in Kind::ALL.iter().filter(|kind| kind.info().reservations) {
        let comparison = run(&request(&reserving("1g"), &[kind])).expect("a run");
        let [note] = &comparison.notes[..] else { panic!("{:?}", comparison.notes) };
        let refusal = format!("job `film`: {} refuses the reservation of a process", kind.info().name);
        assert!(note.contains(&refusal) && note.contains("bytes a second are left"), "{note}");
        assert!(comparison.runs[0].processes[0].bytes > 0);
    }
}

#[test]
fn an_unsupported_reservation_is_noted_and_an_impossible_one_refused() {
    let notes = run(&request(&reserving("5m"), &[Kind::Noop])).expect("a run").notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].contains("job `film`: none of these elevators takes reservations"), "{}", notes[0]);
    let error = run(&request(&reserving("11g"), &[Kind::Noop])).unwrap_err().to_string();
    assert!(
        error.contains("job `film`: hoistway_reserve is 11811160064 bytes a second; at most 10000000000"),
        "{error}"
    );
}
