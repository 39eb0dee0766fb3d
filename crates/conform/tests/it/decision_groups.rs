//! Groups in decision files: errors of invalid groups, and creation of valid groups before the
//! first event.

use std::fs;

use hoistway_conform::decisions::{List, Scenario, compare, replay_file, replay_scenario, targets};
use serde_json::{Value, json};

/// Two processes, a read each, served by noop one after the other.
fn two_readers() -> Value {
    let request = |id: u32, pid: u32, sector: u64| {
        json!({"id": id, "pid": pid, "op": "read", "sync": true, "sector": sector, "sectors": 8, "at_ns": 0,
            "service_ns": 1_000_000})
    };
    json!({
        "name": "two readers", "source": "linux-4.19 noop", "scheduler": "noop", "hz": 1000, "rotational": true,
        "depth": 1, "disk_sectors": 1 << 30, "tunables": {},
        "processes": [{"pid": 1, "class": "be", "level": 4}, {"pid": 2, "class": "be", "level": 4}],
        "requests": [request(0, 1, 800), request(1, 2, 0)],
        "dispatch": [[0, 0], [1, 1_000_000]],
        "complete": [[0, 1_000_000], [1, 2_000_000]],
    })
}

/// The scenario with groups; process 1 is in group 2.
fn grouped(groups: Value) -> Value {
    let mut scenario = two_readers();
    scenario["groups"] = groups;
    scenario["processes"][0]["group"] = json!(2);
    scenario
}

fn group(id: u32, parent: u32) -> Value {
    json!({"id": id, "parent": parent, "weight": 500, "leaf_weight": 250})
}

fn error_of(scenario: &Value) -> String {
    Scenario::from_json(scenario.to_string().as_bytes()).unwrap_err().to_string()
}

#[test]
fn an_elevator_without_groups_ignores_them() {
    // Group 1 comes after its child.
    let mut scenario = grouped(json!([group(2, 1), group(1, 0), {"id": 7, "parent": 2, "weight": 1}]));
    scenario["group_changes"] = json!([{"pid": 2, "group": 7, "at_ns": 0}, {"pid": 1, "group": 0, "at_ns": 500_000}]);
    let scenario = Scenario::from_json(scenario.to_string().as_bytes()).unwrap();
    let replay = replay_scenario(&scenario);
    assert_eq!((compare(&scenario, &replay), replay.stopped()), (None, None));
}

#[test]
fn moves_follow_arrivals_of_their_time_in_the_log() {
    let mut scenario = grouped(json!([group(1, 0), group(2, 1)]));
    scenario["group_changes"] = json!([{"pid": 2, "group": 2, "at_ns": 0}, {"pid": 2, "group": 0, "at_ns": 1}]);
    let scenario = Scenario::from_json(scenario.to_string().as_bytes()).unwrap();
    let replay = replay_scenario(&scenario);
    let log = replay.events_until(1, 100);
    let at = |what: &str| log.iter().position(|line| line.ends_with(what)).unwrap_or_else(|| panic!("{log:#?}"));
    assert!(at("asked for 1 (read 0+8, process 2)") < at("process 2 moves to group 2"));
    assert!(at("process 2 moves to group 2") < at("process 2 moves to group 0"));
    assert_eq!(replay.list(List::Dispatch).len(), 2);
}

#[test]
fn invalid_groups_are_errors_with_the_valid_values() {
    let weighing = |field: &str, weight: u64| {
        let mut odd = group(2, 0);
        odd[field] = json!(weight);
        json!([group(1, 0), odd])
    };
    let no_group = "no group has this id; 0 (the root) or the id of one in groups would be right";
    let the_root = "that is the root, which is always there; 1 or more would be right";
    let to_root = "parents that lead to 0, the root, would be right";
    let cases = [
        (json!([group(2, 0), group(0, 2)]), format!("groups[1].id is 0; {the_root}")),
        (json!([group(2, 0), group(1, 0), group(2, 1)]), "groups[2].id is 2; an earlier group has this id".to_owned()),
        (json!([group(1, 0), group(2, 9)]), format!("groups[1].parent is 9; {no_group}")),
        (json!([group(2, 2)]), format!("groups[0].parent is 2; a group loop (2 in 2); {to_root}")),
        (
            json!([group(1, 0), group(2, 3), group(3, 4), group(4, 3)]),
            format!("groups[3].parent is 3; a group loop (4 in 3 in 4); {to_root}"),
        ),
        (weighing("weight", 0), "groups[1].weight is 0; 1 to 1000 would be right".to_owned()),
        (weighing("weight", 1001), "groups[1].weight is 1001; 1 to 1000 would be right".to_owned()),
        (weighing("leaf_weight", 65537), "groups[1].leaf_weight is 65537; 1 to 1000 would be right".to_owned()),
        (json!([group(1, 0)]), format!("processes[0].group is 2; {no_group}")),
    ];
    for (groups, message) in cases {
        assert_eq!(error_of(&grouped(groups)), message);
    }
}

#[test]
fn moves_of_unknown_processes_or_to_unknown_groups_are_errors() {
    let mut scenario = grouped(json!([group(2, 0)]));
    scenario["group_changes"] = json!([{"pid": 1, "group": 0, "at_ns": 0}, {"pid": 3, "group": 2, "at_ns": 0}]);
    assert_eq!(error_of(&scenario), "group_changes[1].pid is 3; no process has this pid");
    scenario["group_changes"] = json!([{"pid": 1, "group": 4, "at_ns": 0}]);
    let message = error_of(&scenario);
    assert!(message.starts_with("group_changes[0].group is 4; no group has this id"), "{message}");
    scenario["group_changes"] = json!([{"pid": 1, "group": 2}]);
    assert!(error_of(&scenario).contains("missing field `at_ns`"));
}

#[test]
fn an_invalid_group_is_reported_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    fs::write(&path, format!("{}\n{}\n", two_readers(), grouped(json!([group(2, 9)])))).unwrap();
    let message = replay_file(&path, |_| ()).unwrap_err().to_string();
    assert!(message.contains("a.jsonl:2: groups[0].parent is 9; no group has this id"), "{message}");
}

#[test]
fn thousands_of_nested_groups_are_created() {
    // Each is listed before its parent, the worst order.
    let count = 20_000;
    let groups: Vec<Value> = (1..=count).rev().map(|id| group(id, id - 1)).collect();
    let scenario = grouped(Value::Array(groups));
    let scenario = Scenario::from_json(scenario.to_string().as_bytes()).unwrap();
    assert_eq!(compare(&scenario, &replay_scenario(&scenario)), None);
}

#[test]
fn sources_with_and_without_groups_use_the_same_elevator() {
    for target in targets() {
        if let Some(plain) = target.source.strip_suffix(" (groups)") {
            let plain = targets().iter().find(|other| other.source == plain).unwrap();
            assert_eq!((target.elevator, target.layer), (plain.elevator, plain.layer));
        }
    }
}
