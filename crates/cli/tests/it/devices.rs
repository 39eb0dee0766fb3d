//! `hoistway devices` on machines made of files, and, as root, on a loop device of this machine.

use std::fs;
use std::process::Command;

use crate::common::{Ran, hoistway, run};
use crate::fake::{Fake, server};
use serde_json::{Value, json};

fn on(fake: &Fake, args: &[&str]) -> Ran {
    let root = fake.root().to_str().expect("UTF-8");
    run(&[&["devices"], args, &["--root", root]].concat())
}

fn device<'a>(document: &'a Value, name: &str) -> &'a Value {
    document["devices"].as_array().expect("a list").iter().find(|device| device["name"] == name).expect(name)
}

#[test]
fn devices_are_listed_as_a_tree() {
    let fake = server();
    let ran = on(&fake, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let names: Vec<&str> = ran.out.lines().skip(2).map_while(|line| line.split_whitespace().next()).collect();
    let expected = [
        "nvme0n1",
        "└─nvme0n1p1",
        "sda",
        "├─sda1",
        "└─sda2",
        "└─dm-0",
        "└─dm-1",
        "└─loop0",
        "sdb",
        "└─md0",
        "sdc",
        "└─md0",
        "vda",
        "nbd0",
        "zram0",
    ];
    assert_eq!(names, expected, "{}", ran.out);
    let row = |name: &str| ran.out.lines().find(|line| line.contains(&format!("{name} "))).expect(name).to_owned();
    let sda = row("sda");
    for part in ["disk", "yes", "4.00 TB", "none [mq-deadline] kyber bfq", " 32 ", "WDC WD40EFRX-68N32N0"] {
        assert!(sda.contains(part), "`{part}` is missing in: {sda}");
    }
    assert!(row("nvme0n1").contains("1023x8"), "{}", ran.out);
    assert!(row("dm-1").contains("/srv/my data") && row("zram0").contains("swap"), "{}", ran.out);
    assert!(ran.out.contains("of /srv/my data/image.squashfs"), "{}", ran.out);
    assert!(ran.out.contains("3 devices with nothing in them are left out"), "{}", ran.out);
}

#[test]
fn empty_devices_are_listed_with_all() {
    let fake = server();
    let ran = on(&fake, &["--all"]);
    for name in ["loop1", "sr0", "sdx"] {
        assert!(ran.out.lines().any(|line| line.starts_with(name)), "{}", ran.out);
    }
    assert!(!ran.out.contains("left out"), "{}", ran.out);
}

#[test]
fn a_machine_without_devices_is_reported() {
    assert!(on(&Fake::empty(), &[]).out.starts_with("There are no block devices.\n"));
}

#[test]
fn elevators_of_the_kernel_module_are_described_as_its_own() {
    let fake = server();
    assert!(!on(&fake, &[]).out.contains("hoistway_iosched"));
    fake.install_module();
    let ran = on(&fake, &[]);
    assert!(ran.out.contains("hoistway_iosched is installed and not loaded"), "{}", ran.out);
    fake.load_module();
    let ran = on(&fake, &["sda"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let text = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "none mq-deadline kyber bfq [cfq] h-bfq",
        "The kernel module hoistway_iosched 0.1.0 is loaded: cfq, h-bfq come from it.",
        "Tunables of cfq",
        "slice_idle",
    ] {
        assert!(text.contains(part), "`{part}` is missing in:\n{}", ran.out);
    }
    // An unknown scheduler is not taken for one of the module.
    fake.file("/sys/block/sdb/queue/scheduler", "none [adios]\n");
    assert!(on(&fake, &["sdb"]).out.contains("hoistway_iosched 0.1.0 is loaded.\n"));
}

#[test]
fn a_device_is_described_with_the_trade_offs_of_its_tunables() {
    let fake = server();
    let ran = on(&fake, &["sda"]);
    for part in [
        "sda: disk, 4.00 TB, WDC WD40EFRX-68N32N0",
        "WD-WCC7K4ABCDEF",
        "naa.50014ee2b5e7c1d2",
        "sata",
        "sda1: 1.07 GB, /boot",
        "holds dm-0",
        "qemu-system-x86 (901), smartd (812)",
        "32 in the device; 64 in the queue",
        "Tunables of mq-deadline",
        "prio_aging_expire",
        "10000 ms",
        "Trade-off: A shorter time bounds the latency of reads and costs seeks.",
        "read_ahead_kb",
        "orders them itself",
    ] {
        assert!(ran.out.contains(part), "`{part}` is missing in:\n{}", ran.out);
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 100), "{}", ran.out);
}

#[test]
fn a_volume_names_the_queues_below_it() {
    let ran = on(&server(), &["vg-data"]);
    for part in [
        "dm-1: lvm",
        "vg-data",
        "dm-0, sda2, sda",
        "none to choose",
        "queue of sda (mq-deadline)",
        "/srv/my data (xfs)",
    ] {
        assert!(ran.out.contains(part), "`{part}` is missing in:\n{}", ran.out);
    }
    let ran = on(&server(), &["/home"]);
    assert!(ran.out.starts_with("md0: md,") && ran.out.contains("sdb (bfq), sdc (bfq)"), "{}", ran.out);
}

#[test]
fn json_has_kernel_attributes_and_documentation() {
    let fake = server();
    let document = on(&fake, &["--json"]).json();
    assert_eq!((&document["schema"], document["devices"].as_array().unwrap().len()), (&json!(1), 17));
    let sda = device(&document, "sda");
    assert_eq!(
        (&sda["number"], &sda["kind"], &sda["bytes"]),
        (&json!("8:0"), &json!("disk"), &json!(4_000_787_030_016_u64))
    );
    assert_eq!((&sda["queue"]["scheduler"], &sda["queue"]["depth"]), (&json!("mq-deadline"), &json!(32)));
    let tunables = sda["queue"]["tunables"].as_array().unwrap();
    let expire = tunables.iter().find(|row| row["name"] == "read_expire").unwrap();
    assert_eq!(
        (&expire["value"], &expire["unit"], &expire["default"], &expire["min"]),
        (&json!("500"), &json!("ms"), &json!(500), &json!(0))
    );
    assert!(expire["trade_off"].as_str().is_some_and(|text| text.contains("latency")));
    assert_eq!(device(&document, "dm-1")["lies_on"], json!(["dm-0"]));
    assert_eq!(device(&document, "dm-1")["queued_at"], json!(["sda"]));
    let one = on(&fake, &["sda", "--json"]).json();
    assert_eq!(one["devices"][0]["open_by"][1], json!({ "pid": 812, "comm": "smartd" }));
}

#[test]
fn the_guide_describes_every_field_of_the_json() {
    let guide = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/devices.md")).expect("the guide");
    let document = on(&server(), &["sda", "--json"]).json();
    let mut fields = Vec::new();
    collect(&document["devices"][0], &mut fields);
    assert!(fields.len() > 40, "{fields:?}");
    for field in fields {
        assert!(guide.contains(&format!("`{field}`")), "docs/devices.md says nothing of `{field}`");
    }
}

fn collect(value: &Value, fields: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            fields.push(name.clone());
            collect(value, fields);
        }),
        Value::Array(values) => values.iter().for_each(|value| collect(value, fields)),
        _ => {}
    }
}

#[test]
fn invalid_input_is_named_with_a_remedy() {
    let fake = server();
    for (args, code, parts) in [
        (&["sdaa"][..], 1, &["no block device `sdaa` (did you mean `sda`?)", "nvme0n1"][..]),
        (&["/run/x"], 1, &["no block device but on tmpfs at /run"]),
        (&["set", "sda"], 2, &["NAME=VALUE"]),
        (&["set", "sda", "bfq"], 2, &["`bfq` is not a setting", "scheduler=bfq"]),
        (&["set", "sda", "scheduler=bqf"], 1, &["no scheduler `bqf`", "(did you mean `bfq`?)"]),
        (&["set", "sda", "read_ahead=1"], 1, &["no setting `read_ahead`", "(did you mean `read_ahead_kb`?)"]),
        (&["set", "sda", "shceduler=bfq"], 1, &["(did you mean `scheduler`?)"]),
        (&["set", "zram0", "scheduler=bfq"], 1, &["zram0 has no scheduler to choose"]),
        (&["set", "sda1", "nomerges=1"], 1, &["sda1 is a partition"]),
        (&["set", "loop0", "nomerges=1", "--persist"], 1, &["loop0 cannot be found again"]),
        (
            &["set", "sda", "nomerges=1", "--persist=/nowhere/x.rules"],
            1,
            &["/nowhere/x.rules: the rule cannot be written"],
        ),
        (&["forget", "sda"], 1, &["no rule of ours for sda"]),
        (&["forget", "loop0"], 1, &["loop0 cannot be found again"]),
    ] {
        on(&fake, args).refused(code, parts);
    }
    assert_eq!(fake.text("/sys/block/sda/queue/nomerges"), "0", "nothing was written");
    run(&["devices", "--root", "/nowhere"]).refused(1, &["--root /nowhere: it cannot be read"]);
    run(&["devices", "--root", "/etc"]).refused(1, &["/etc/sys/block", "sysfs"]);
}

#[test]
fn set_prints_the_changes_and_the_way_back() {
    let fake = server();
    let ran = on(&fake, &["set", "sda", "read_expire=200ms", "read_ahead_kb=1024", "nomerges=0"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for part in [
        "500 -> 200 ms",
        "128 -> 1024 KiB",
        "0 already",
        "hoistway devices set sda read_expire=500 read_ahead_kb=128 --root",
    ] {
        assert!(ran.out.contains(part), "`{part}` is missing in:\n{}", ran.out);
    }
    assert_eq!(fake.text("/sys/block/sda/queue/iosched/read_expire"), "200");
    let back = ran.out.lines().find_map(|line| line.trim().strip_prefix("hoistway ")).expect("the way back").to_owned();
    assert_eq!(run(&back.split(' ').collect::<Vec<_>>()).code, Some(0));
    assert_eq!(fake.text("/sys/block/sda/queue/iosched/read_expire"), "500");
}

#[test]
fn reset_restores_the_defaults_of_a_scheduler() {
    let fake = server();
    fake.file("/sys/block/sda/queue/iosched/read_expire", "123\n");
    fake.file("/sys/block/sda/queue/iosched/async_depth", "7\n");
    let ran = on(&fake, &["reset", "sda"]);
    assert!(ran.code == Some(0) && ran.out.contains("123 -> 500 ms"), "{}{}", ran.out, ran.err);
    assert_eq!(fake.text("/sys/block/sda/queue/iosched/read_expire"), "500");
    // The kernel adapts the other settings of the queue.
    assert_eq!(fake.text("/sys/block/sda/queue/iosched/async_depth"), "7");
    on(&fake, &["reset", "nvme0n1"]).refused(1, &["nvme0n1 has nothing to reset", "none"]);
    on(&fake, &["reset", "sda1"]).refused(1, &["sda1 has nothing to reset"]);
}

#[test]
fn setting_a_path_of_a_multipath_device_prints_a_note() {
    let fake = crate::fake::array();
    let ran = on(&fake, &["set", "sda", "scheduler=none", "--dry-run"]);
    assert!(ran.err.contains("sda is a path of dm-0, whose scheduler is used"), "{}", ran.err);
    assert_eq!(on(&fake, &["set", "dm-0", "scheduler=bfq", "--dry-run"]).err, "");
    let ran = on(&fake, &["set", "nvme0n1", "scheduler=kyber"]);
    assert!(ran.code == Some(1) && ran.err.contains("nvme0c0n1, nvme0c1n1"), "{}", ran.err);
}

#[test]
fn printing_and_setting_options_conflict() {
    let fake = server();
    on(&fake, &["sda", "set", "sda", "nomerges=1"]).refused(2, &["cannot stand together"]);
    on(&fake, &["sda", "--all"]).refused(2, &["--all"]);
}

#[test]
fn a_dry_run_prints_changes_without_writing() {
    let fake = server();
    let ran = on(&fake, &["set", "sda", "scheduler=bfq", "slice_idle=0", "--dry-run", "--persist"]);
    for part in [
        "nothing is written",
        "mq-deadline -> bfq",
        "-> 0 ms",
        "It would be kept in /etc/udev/rules.d/64-hoistway-naa.",
    ] {
        assert!(ran.out.contains(part), "`{part}` is missing in:\n{}", ran.out);
    }
    assert!(fake.text("/sys/block/sda/queue/scheduler").contains("[mq-deadline]"));
    assert!(!fake.path("/etc").exists());
}

#[test]
fn persistent_rules_are_replaced_and_removed() {
    let fake = server();
    let rules = || -> Vec<_> {
        fs::read_dir(fake.path("/etc/udev/rules.d")).map_or_else(|_| Vec::new(), |all| all.flatten().collect())
    };
    // A rule of this program under a former name, and another program's rule that comes later.
    fake.file(
        "/etc/udev/rules.d/60-hoistway-sda.rules",
        "ATTR{device/wwid}!=\"naa.50014ee2b5e7c1d2\", GOTO=\"x\"\nATTR{queue/scheduler}=\"none\"\n",
    );
    fake.file("/etc/udev/rules.d/99-mine.rules", "KERNEL==\"sd?\", ATTR{queue/scheduler}=\"kyber\"\n");
    let ran = on(&fake, &["set", "sda", "read_expire=200", "--persist"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.contains("hoistway devices forget sda"), "{}", ran.out);
    assert!(
        ran.err.contains("99-mine.rules:1 sets the scheduler of sda to kyber too, and comes later, so it wins"),
        "{}",
        ran.err
    );
    assert_eq!(rules().len(), 2, "the former one is gone");
    let text = fake.text("/etc/udev/rules.d/64-hoistway-naa.50014ee2b5e7c1d2.rules");
    assert!(text.contains("ATTR{queue/iosched/read_expire}=\"200\""), "{text}");
    let document = on(&fake, &["set", "sda", "read_expire=300", "--persist", "--json"]).json();
    assert_eq!(document["rule"]["replaces"], json!(["/etc/udev/rules.d/64-hoistway-naa.50014ee2b5e7c1d2.rules"]));
    assert!(on(&fake, &["forget", "sda", "--dry-run"]).out.starts_with("would remove /etc/udev/rules.d/64-"));
    assert!(on(&fake, &["forget", "sda"]).out.starts_with("removed /etc/udev/rules.d/64-"));
    assert_eq!(rules().len(), 1);
}

#[test]
fn devices_with_the_same_identifier_cause_a_warning() {
    let fake = server();
    for disk in ["sdb", "sdc"] {
        fake.file(&format!("/sys/block/{disk}/device/wwid"), "t10.BRIDGE 0123456789ABC\n");
    }
    let ran = on(&fake, &["set", "sdb", "low_latency=0", "--persist", "--dry-run"]);
    assert!(
        ran.code == Some(0) && ran.err.contains("sdc has the same identifier t10.BRIDGE 0123456789ABC"),
        "{}{}",
        ran.out,
        ran.err
    );
}

#[test]
fn missing_permissions_are_reported_and_nothing_changes() {
    if Command::new("setpriv").arg("--version").output().is_err() || !is_root() {
        return skipped("setpriv, or root to begin with, is not there");
    }
    let fake = server();
    // Other users may not read the directory of the binary.
    let shared = tempfile::Builder::new().prefix("hoistway").tempdir_in("/tmp").expect("a folder");
    let binary = shared.path().join("hoistway");
    fs::copy(env!("CARGO_BIN_EXE_hoistway"), &binary).expect("a copy");
    let open = |path: &std::path::Path| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
    };
    open(shared.path());
    open(fake.root());
    let root = fake.root().to_str().expect("UTF-8");
    for words in [&["nomerges=2"][..], &["nomerges=2", "--persist"]] {
        let output = Command::new("setpriv")
            .args(["--reuid", "65534", "--clear-groups"])
            .arg(&binary)
            .args(["devices", "set", "sda", "--root", root])
            .args(words)
            .output()
            .expect("setpriv starts");
        Ran::of(output).refused(1, &["needs root"]);
    }
    assert_eq!(fake.text("/sys/block/sda/queue/nomerges"), "0");
}

#[test]
fn a_loop_device_is_set_and_restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("image");
    fs::File::create(&image).and_then(|file| file.set_len(16 << 20)).expect("an image");
    let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
    let Some(made) = made.ok().filter(|made| made.status.success()) else {
        return skipped("loop devices cannot be made here");
    };
    let node = String::from_utf8(made.stdout).expect("UTF-8").trim().to_owned();
    let detach = || Command::new("losetup").args(["--detach", &node]).status();
    let name = node.trim_start_matches("/dev/");
    let scheduler = || fs::read_to_string(format!("/sys/block/{name}/queue/scheduler")).expect("a scheduler");
    if !["none", "bfq"].iter().all(|wanted| scheduler().contains(wanted)) {
        detach().expect("it goes");
        return skipped("the kernel has no bfq");
    }
    // The kernel keeps the queue of a loop device from one file to the next.
    let found = scheduler().split(['[', ']']).nth(1).expect("one is set").to_owned();
    run(&["devices", "set", name, "scheduler=none"]);
    let explained = run(&["devices", name]);
    let set = run(&["devices", "set", &node, "scheduler=bfq", "slice_idle=0"]);
    let after = scheduler();
    let back = set.out.lines().find_map(|line| line.trim().strip_prefix("hoistway ")).unwrap_or_default().to_owned();
    let brought = hoistway(&back.split(' ').collect::<Vec<_>>()).output().expect("it starts");
    let finally = scheduler();
    run(&["devices", "set", name, &format!("scheduler={found}")]);
    detach().expect("it goes");
    assert!(explained.out.contains(&image.display().to_string()), "{}", explained.out);
    assert!(set.code == Some(0) && set.out.contains("-> bfq"), "{}{}", set.out, set.err);
    assert!(after.contains("[bfq]") && !finally.contains("[bfq]"), "{after}{finally}");
    assert!(brought.status.success());
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Prints why a test is skipped; fails instead if all tests are required.
fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{why}");
    eprintln!("skipped: {why}");
}
