//! The control tree of a real server, whose outside is simulated.

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

struct Asked {
    server: Server<SimEngine>,
}

impl Asked {
    fn new() -> Asked {
        Asked::of(CONFIG)
    }

    fn of(config: &str) -> Asked {
        let checked = Draft::from_toml(config, "test.toml").check(&HostEnvironment).expect("a good configuration");
        let engine = SimEngine::new(Rc::new(RefCell::new(Sim::new(Prng::new(1), false))));
        Asked { server: Server::new(engine, &checked.config, Settings::default()).expect("a server") }
    }

    fn ask(&mut self, request: &str) -> String {
        let (mut session, watch, mut out) = (Session::new(), Watch::new(), Vec::new());
        session.receive(format!("{request}\n").as_bytes(), &watch, &mut self.server, &mut out);
        while session.has_more() {
            session.resume(&watch, &mut self.server, &mut out);
        }
        String::from_utf8(out).expect("text")
    }

    fn get(&mut self, path: &str) -> String {
        let told = self.ask(&format!("get {path}"));
        told.strip_prefix("= ").and_then(|told| told.strip_suffix("\nok\n")).unwrap_or(&told).to_owned()
    }
}

#[test]
fn a_server_tells_what_it_was_configured_with() {
    let mut asked = Asked::new();
    assert_eq!(asked.ask("ls devices"), "= sda/\n= slow/\nok\n");
    assert_eq!(asked.ask("ls tenants"), "= backup/\n= db/\n= default/\nok\n");
    for (path, told) in [
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
        let got = asked.get(path);
        // The bound of connections is the server's to choose.
        let same = got == told || path == "server/connections" && got.starts_with("0 ") && got.ends_with(" 0");
        assert!(same, "{path}: {got}");
    }
    assert!(asked.get("devices/sda/queue/scheduler").contains("[bfq]"));
}

#[test]
fn everything_below_can_be_read_of_a_real_server() {
    let mut asked = Asked::new();
    let all = asked.ask("get -r");
    assert!(all.ends_with("\nok\n") && !all.contains("\nerror"), "{all}");
    assert!(all.contains("= devices/slow/lateness: count=0 "), "{all}");
    assert!(!all.contains("= devices/sda/tenants: "), "nobody has used it: {all}");
}

#[test]
fn an_elevator_a_tunable_and_a_depth_are_set() {
    let mut asked = Asked::new();
    let told = asked.ask("set devices/sda/queue/scheduler cfq");
    assert!(told.starts_with("ok: device sda: under cfq a client with few requests can get nothing"), "{told}");
    assert!(asked.get("devices/sda/queue/scheduler").contains("[cfq]"));
    assert_eq!(asked.ask("set devices/sda/queue/iosched/slice_idle 3"), "ok\n");
    assert_eq!(asked.get("devices/sda/queue/iosched/slice_idle"), "3");
    assert_eq!(asked.ask("set devices/sda/queue/depth 7"), "ok\n");
    assert_eq!(asked.get("devices/sda/queue/depth"), "7");
    let told = asked.ask("set devices/slow/queue/depth 4000");
    assert!(told.starts_with("ok: the emulated drive's queue depth is "), "{told}");
    // What was set is what a later reload finds different from the file.
    let live = &asked.server.state.config;
    let file = Draft::from_toml(CONFIG, "test.toml").check(&HostEnvironment).expect("good").config;
    let changes: Vec<String> = live.changes(&file).iter().map(ToString::to_string).collect();
    assert!(changes.len() >= 3, "{changes:?}");
}

#[test]
fn the_largest_request_and_merging_are_set_with_all_else_as_it_is() {
    let mut asked = Asked::new();
    assert_eq!(asked.ask("set devices/slow/queue/scheduler deadline"), "ok\n");
    assert_eq!(asked.ask("set devices/slow/queue/max_sectors_kb 128"), "ok\n");
    assert_eq!(asked.ask("set devices/slow/queue/nomerges 2"), "ok\n");
    assert_eq!(
        (asked.get("devices/slow/queue/max_sectors_kb").as_str(), asked.get("devices/slow/queue/nomerges").as_str()),
        ("128", "2")
    );
    assert!(asked.get("devices/slow/queue/scheduler").contains("[deadline]"));
    let told = asked.ask("set devices/slow/queue/max_sectors_kb 1048576");
    assert_eq!(told, "error value: \"1048576\" is out of range: max_sectors_kb takes 4 to 65536\n");
}

#[test]
fn a_switch_there_and_back_finds_the_configurations_tunables_again() {
    let mut asked = Asked::new();
    for scheduler in ["deadline", "bfq"] {
        assert_eq!(asked.ask(&format!("set devices/sda/queue/scheduler {scheduler}")), "ok\n");
        assert_eq!(asked.ask("set devices/sda/queue/nomerges 2"), "ok\n");
    }
    assert_eq!(asked.get("devices/sda/queue/iosched/slice_idle"), "0");
    assert_eq!(asked.server.state.config.devices[0].queue.tunables, [("slice_idle".to_owned(), 0)]);
}

#[test]
fn terms_count_on_every_device_or_on_none() {
    let mut asked = Asked::new();
    assert_eq!(asked.ask("set tenants/backup/weight 70"), "ok\n");
    assert_eq!(asked.get("tenants/backup/weight"), "70");
    // More than the device sustains: 100 MiB/s.
    let told = asked.ask("set tenants/backup/reserve 500M");
    assert!(told.starts_with("error refused: device "), "{told}");
    assert_eq!(asked.get("tenants/backup/reserve"), "0");
    assert_eq!(asked.server.state.devices[0].scheduler().terms("backup").unwrap().reserve, None);
    assert_eq!(asked.server.state.devices[0].scheduler().terms("backup").unwrap().weight, 70);
    assert_eq!(asked.ask("set tenants/backup/limit 5M"), "ok\n");
    assert_eq!(
        asked.server.state.devices[1].scheduler().terms("backup").unwrap().limits.bytes.unwrap().per_second,
        5 << 20
    );
    let told = asked.ask("set tenants/default/weight 5");
    assert!(told.starts_with("error refused: clients without a rule"), "{told}");
    assert_eq!(asked.ask("set groups/vms/weight 9\nget groups/vms/weight"), "ok\n= 9\nok\n");
    let group = asked.server.state.devices[0].scheduler().group_terms("vms").unwrap();
    assert_eq!((group.weight, group.limits.bytes.unwrap().per_second), (9, 30 << 20), "what it is held to stays");
}

#[test]
fn a_groups_weight_counts_on_every_device_or_on_none() {
    let mut asked = Asked::of(&CONFIG.replace("[[group]]", "[[group]]\nname = \"top\"\n[[group]]\nparent = \"top\""));
    // As if there had been no room for it.
    let slow = &mut asked.server.state.devices[1];
    slow.scheduler_mut().remove_tenant("backup", 0).expect("nobody uses it");
    slow.scheduler_mut().remove_group("vms", 0).expect("nothing is in it");
    slow.scheduler_mut().remove_group("top", 0).expect("nothing is in it");
    assert_eq!(asked.ask("set groups/vms/weight 9"), "error refused: device slow: there is no group `top`\n");
    assert_eq!(asked.get("groups/vms/weight"), "200");
    assert_eq!(asked.server.state.devices[0].scheduler().group_terms("vms").unwrap().weight, 200);
}

#[test]
fn a_tunable_that_takes_from_what_was_promised_is_set_with_a_warning() {
    let mut asked = Asked::new();
    let told = asked.ask("set devices/sda/queue/iosched/device_bandwidth 1000");
    assert!(told.starts_with("ok: device sda: reservations take 210 % of the device's time"), "{told}");
}

#[test]
fn a_weight_that_has_no_effect_is_set_with_a_warning() {
    let mut asked = Asked::new();
    assert_eq!(asked.ask("set devices/sda/queue/scheduler deadline"), "ok\n");
    let told = asked.ask("set tenants/backup/weight 70");
    assert!(told.starts_with("ok: tenant backup: a weight has no effect under deadline"), "{told}");
}

#[test]
fn a_reload_is_asked_for_and_what_is_logged_is_set_where_it_can_be() {
    let mut asked = Asked::new();
    assert_eq!(asked.ask("set server/reload 1"), "ok\n");
    assert!(asked.server.admin.wants_reload);
    assert_eq!(
        (asked.get("server/log").as_str(), asked.ask("set server/log debug").as_str()),
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
    asked.server.set_log(Box::new(Filter("info".into())));
    assert_eq!(
        asked.ask("set server/log debug\nget server/log\nset server/log !"),
        "ok\n= debug\nok\nerror refused: no filter\n"
    );
}

#[test]
fn a_server_that_leaves_is_not_changed_any_more() {
    let mut asked = Asked::new();
    asked.server.drain();
    assert_eq!(asked.ask("set tenants/backup/weight 70"), "error refused: the server is shutting down\n");
    assert_eq!(asked.get("tenants/backup/weight"), "50");
}
