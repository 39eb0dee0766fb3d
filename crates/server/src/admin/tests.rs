//! The control tree of a server on the simulated engine.

use std::cell::RefCell;
use std::rc::Rc;

use crate::{Server, Settings};
use hoistway_config::{Draft, HostEnvironment};
use hoistway_control::{LogControl, Session, Watch};
use hoistway_reactor::simulated::{Prng, Sim, SimEngine};

const CONFIG: &str = r#"
[[device]]
name = "sda"
backend = "null:1G"
elevator = "bfq"
bandwidth = "100M"
position = "0us"
tunables = { slice_idle = 0 }

[[device]]
name = "slow"
backend = "mem:64M"
drive = "sata-7200-2006"

[[export]]
name = "vm/1"
device = "sda"
offset = "1M"
read_only = true

[[group]]
name = "vms"
weight = 200
limit = "30M"

[[tenant]]
name = "backup"
comm = "rsync"
weight = 50
parent = "vms"

[[tenant]]
name = "db"
uid = 7
reserve = "2M"
"#;

/// A server and a control session.
struct Administered {
    server: Server<SimEngine>,
}

impl Administered {
    fn new() -> Administered {
        Administered::of(CONFIG)
    }

    fn of(config: &str) -> Administered {
        let checked = Draft::from_toml(config, "test.toml").check(&HostEnvironment).expect("a good configuration");
        let engine = SimEngine::new(Rc::new(RefCell::new(Sim::new(Prng::new(1), false))));
        Administered { server: Server::new(engine, &checked.config, Settings::default()).expect("a server") }
    }

    fn request(&mut self, request: &str) -> String {
        let (mut session, watch, mut out) = (Session::new(), Watch::new(), Vec::new());
        session.receive(format!("{request}\n").as_bytes(), &watch, &mut self.server, &mut out);
        while session.has_more() {
            session.resume(&watch, &mut self.server, &mut out);
        }
        String::from_utf8(out).expect("text")
    }

    fn get(&mut self, path: &str) -> String {
        let reply = self.request(&format!("get {path}"));
        reply.strip_prefix("= ").and_then(|reply| reply.strip_suffix("\nok\n")).unwrap_or(&reply).to_owned()
    }
}

#[test]
fn the_control_tree_shows_the_configuration() {
    let mut admin = Administered::new();
    assert_eq!(admin.request("ls devices"), "= sda/\n= slow/\nok\n");
    assert_eq!(admin.request("ls tenants"), "= backup/\n= db/\n= default/\nok\n");
    for (path, reply) in [
        ("devices/sda/backend", "null:1g"),
        ("devices/sda/size", "2097152"),
        ("devices/sda/queue/iosched/slice_idle", "0"),
        ("devices/sda/queue/rotational", "0"),
        ("devices/sda/drive", "-"),
        ("devices/slow/drive", "sata-7200-2006"),
        ("devices/slow/queue/rotational", "1"),
        ("devices/slow/queue/nomerges", "0"),
        ("devices/slow/switching", "0"),
        ("devices/sda/inflight", "       0        0"),
        ("exports/vm%2F1/offset", "1048576"),
        ("exports/vm%2F1/read_only", "1"),
        ("exports/vm%2F1/device", "sda"),
        ("tenants/backup/weight", "50"),
        ("tenants/backup/parent", "vms"),
        ("tenants/db/reserve", "2097152"),
        ("groups/vms/weight", "200"),
        ("server/engine", "simulated"),
        ("server/reload", "never"),
        ("server/connections", "0 16384 0"),
    ] {
        let got = admin.get(path);
        // The connection limit is a default of the server.
        let same = got == reply || path == "server/connections" && got.starts_with("0 ") && got.ends_with(" 0");
        assert!(same, "{path}: {got}");
    }
    assert!(admin.get("devices/sda/queue/scheduler").contains("[bfq]"));
}

#[test]
fn every_leaf_can_be_read() {
    let mut admin = Administered::new();
    let all = admin.request("get -r");
    assert!(all.ends_with("\nok\n") && !all.contains("\nerror"), "{all}");
    assert!(all.contains("= devices/slow/lateness: count=0 "), "{all}");
    assert!(!all.contains("= devices/sda/tenants: "), "no tenant has used it: {all}");
}

#[test]
fn elevator_tunables_and_depth_can_be_set() {
    let mut admin = Administered::new();
    let reply = admin.request("set devices/sda/queue/scheduler cfq");
    assert!(reply.starts_with("ok: device sda: under cfq a client with few requests can get nothing"), "{reply}");
    assert!(admin.get("devices/sda/queue/scheduler").contains("[cfq]"));
    assert_eq!(admin.request("set devices/sda/queue/iosched/slice_idle 3"), "ok\n");
    assert_eq!(admin.get("devices/sda/queue/iosched/slice_idle"), "3");
    assert_eq!(admin.request("set devices/sda/queue/depth 7"), "ok\n");
    assert_eq!(admin.get("devices/sda/queue/depth"), "7");
    let reply = admin.request("set devices/slow/queue/depth 4000");
    assert!(reply.starts_with("ok: the emulated drive's queue depth is "), "{reply}");
    // A later reload finds the values that were set as differences to the file.
    let live = &admin.server.state.config;
    let file = Draft::from_toml(CONFIG, "test.toml").check(&HostEnvironment).expect("good").config;
    let changes: Vec<String> = live.changes(&file).iter().map(ToString::to_string).collect();
    assert!(changes.len() >= 3, "{changes:?}");
}

#[test]
fn request_size_and_merging_can_be_set_without_other_changes() {
    let mut admin = Administered::new();
    assert_eq!(admin.request("set devices/slow/queue/scheduler deadline"), "ok\n");
    assert_eq!(admin.request("set devices/slow/queue/max_sectors_kb 128"), "ok\n");
    assert_eq!(admin.request("set devices/slow/queue/nomerges 2"), "ok\n");
    assert_eq!(
        (admin.get("devices/slow/queue/max_sectors_kb").as_str(), admin.get("devices/slow/queue/nomerges").as_str()),
        ("128", "2")
    );
    assert!(admin.get("devices/slow/queue/scheduler").contains("[deadline]"));
    let reply = admin.request("set devices/slow/queue/max_sectors_kb 1048576");
    assert_eq!(reply, "error value: \"1048576\" is out of range: max_sectors_kb takes 4 to 65536 KiB\n");
}

#[test]
fn a_switch_and_back_restores_the_configured_tunables() {
    let mut admin = Administered::new();
    for scheduler in ["deadline", "bfq"] {
        assert_eq!(admin.request(&format!("set devices/sda/queue/scheduler {scheduler}")), "ok\n");
        assert_eq!(admin.request("set devices/sda/queue/nomerges 2"), "ok\n");
    }
    assert_eq!(admin.get("devices/sda/queue/iosched/slice_idle"), "0");
    assert_eq!(admin.server.state.config.devices[0].queue.tunables, [("slice_idle".to_owned(), 0)]);
}

#[test]
fn terms_apply_to_every_device_or_to_none() {
    let mut admin = Administered::new();
    assert_eq!(admin.request("set tenants/backup/weight 70"), "ok\n");
    assert_eq!(admin.get("tenants/backup/weight"), "70");
    // The device sustains 100 MiB/s.
    let reply = admin.request("set tenants/backup/reserve 500M");
    assert!(reply.starts_with("error refused: device "), "{reply}");
    assert_eq!(admin.get("tenants/backup/reserve"), "0");
    assert_eq!(admin.server.state.devices[0].scheduler().terms("backup").unwrap().reserve, None);
    assert_eq!(admin.server.state.devices[0].scheduler().terms("backup").unwrap().weight, 70);
    assert_eq!(admin.request("set tenants/backup/limit 5M"), "ok\n");
    assert_eq!(
        admin.server.state.devices[1].scheduler().terms("backup").unwrap().limits.bytes.unwrap().per_second,
        5 << 20
    );
    let reply = admin.request("set tenants/default/weight 5");
    assert!(reply.starts_with("error refused: clients without a rule"), "{reply}");
    assert_eq!(admin.request("set groups/vms/weight 9\nget groups/vms/weight"), "ok\n= 9\nok\n");
    let group = admin.server.state.devices[0].scheduler().group_terms("vms").unwrap();
    assert_eq!((group.weight, group.limits.bytes.unwrap().per_second), (9, 30 << 20), "the limits stay");
}

#[test]
fn a_group_weight_applies_to_every_device_or_to_none() {
    let mut admin =
        Administered::of(&CONFIG.replace("[[group]]", "[[group]]\nname = \"top\"\n[[group]]\nparent = \"top\""));
    // One device without the groups.
    let slow = &mut admin.server.state.devices[1];
    slow.scheduler_mut().remove_tenant("backup", 0).expect("an unused tenant");
    slow.scheduler_mut().remove_group("vms", 0).expect("an empty group");
    slow.scheduler_mut().remove_group("top", 0).expect("an empty group");
    assert_eq!(admin.request("set groups/vms/weight 9"), "error refused: device slow: there is no group `top`\n");
    assert_eq!(admin.get("groups/vms/weight"), "200");
    assert_eq!(admin.server.state.devices[0].scheduler().group_terms("vms").unwrap().weight, 200);
}

#[test]
fn a_tunable_that_breaks_a_reservation_is_set_with_a_warning() {
    let mut admin = Administered::new();
    let reply = admin.request("set devices/sda/queue/iosched/device_bandwidth 1000");
    assert!(reply.starts_with("ok: device sda: reservations take 210 % of the device's time"), "{reply}");
}

#[test]
fn a_weight_without_effect_is_set_with_a_warning() {
    let mut admin = Administered::new();
    assert_eq!(admin.request("set devices/sda/queue/scheduler deadline"), "ok\n");
    let reply = admin.request("set tenants/backup/weight 70");
    assert!(reply.starts_with("ok: tenant backup: a weight has no effect under deadline"), "{reply}");
}

#[test]
fn a_reload_is_requested_and_the_log_filter_is_set_if_the_process_has_one() {
    let mut admin = Administered::new();
    assert_eq!(admin.request("set server/reload 1"), "ok\n");
    assert!(admin.server.admin.reload_requested);
    assert_eq!(
        (admin.get("server/log").as_str(), admin.request("set server/log debug").as_str()),
        ("-", "error refused: the log filter cannot be set here\n")
    );
    struct Filter(String);
    impl LogControl for Filter {
        fn filter(&self) -> String {
            self.0.clone()
        }
        fn set(&mut self, filter: &str) -> Result<(), String> {
            if filter.contains('!') {
                return Err("no filter".to_owned());
            }
            self.0 = filter.to_owned();
            Ok(())
        }
    }
    admin.server.set_log(Box::new(Filter("info".into())));
    assert_eq!(
        admin.request("set server/log debug\nget server/log\nset server/log hoistway!=warn"),
        "ok\n= debug\nok\nerror refused: no filter\n"
    );
    assert_eq!(
        admin.request("set server/log wran"),
        "error value: \"wran\" is no level of the log: it takes off, error, warn, info, debug, trace, or TARGET=LEVEL, \
         separated by commas; did you mean \"warn\"?\n"
    );
    let answer = admin.request("set server/log warn,hositway=debug");
    assert!(answer.starts_with("ok: no message has the target hositway: targets are hoistway, "), "{answer}");
    assert!(answer.ends_with("; did you mean \"hoistway\"?\n"), "{answer}");
    assert_eq!(admin.get("server/log"), "warn,hositway=debug");
}

#[test]
fn a_server_in_shutdown_refuses_changes() {
    let mut admin = Administered::new();
    admin.server.drain();
    assert_eq!(admin.request("set tenants/backup/weight 70"), "error refused: the server is shutting down\n");
    assert_eq!(admin.get("tenants/backup/weight"), "50");
}

#[test]
fn a_detached_device_is_not_part_of_the_control_tree() {
    let mut admin = Administered::new();
    let config =
        |text: &str| Draft::from_toml(text, "test.toml").check(&HostEnvironment).expect("a good configuration").config;
    let without_slow =
        CONFIG.replace("name = \"slow\"\nbackend = \"mem:64M\"", "name = \"other\"\nbackend = \"mem:1M\"");
    admin.server.reload(config(&without_slow), None).expect("a valid configuration");
    assert_eq!(admin.request("ls devices"), "= sda/\n= other/\nok\n");
    assert_eq!(admin.request("set tenants/backup/weight 70"), "ok\n");
    let weight = |admin: &Administered, device: usize| {
        admin.server.state.devices[device].scheduler().terms("backup").unwrap().weight
    };
    assert_eq!([weight(&admin, 0), weight(&admin, 1), weight(&admin, 2)], [70, 50, 70]);
    // Attached again, the device has the terms of the configuration.
    admin.server.reload(config(&CONFIG.replace("weight = 50", "weight = 80")), None).expect("a valid configuration");
    assert_eq!([weight(&admin, 0), weight(&admin, 1)], [80, 80]);
}

#[test]
fn a_device_added_by_a_reload_has_the_same_terms_as_the_others() {
    let mut admin = Administered::new();
    assert_eq!(admin.request("set tenants/backup/weight 70"), "ok\n");
    assert_eq!(admin.request("set groups/vms/weight 300"), "ok\n");
    let with_more = format!("{CONFIG}\n[[device]]\nname = \"more\"\nbackend = \"mem:1M\"\n");
    let checked = Draft::from_toml(&with_more, "test.toml").check(&HostEnvironment).expect("a good configuration");
    admin.server.reload(checked.config, None).expect("a valid configuration");
    // The file replaces the changes, on all devices alike.
    let terms = |device: usize| {
        let scheduler = admin.server.state.devices[device].scheduler();
        (scheduler.terms("backup").unwrap().weight, scheduler.group_terms("vms").unwrap().weight)
    };
    assert_eq!([0, 1, 2].map(terms), [(50, 200); 3]);
}
