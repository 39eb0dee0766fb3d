//! Valid and invalid configurations of mounts.

use hoistway_core::{Class, Kind};
use proptest::prelude::*;

use super::*;
use crate::keys::Section;
use crate::tests::TestEnvironment;
use crate::{Draft, Problem};

fn checked(text: &str) -> Result<CheckedMount, Vec<String>> {
    let checked = Draft::mount_from_toml(text, "m.toml").check_mount(&TestEnvironment);
    checked.map_err(|error| error.to_string().lines().map(str::to_owned).collect())
}

fn good(text: &str) -> MountConfig {
    let checked = checked(text).unwrap_or_else(|problems| panic!("{text}\n{}", problems.join("\n")));
    assert_eq!(checked.warnings, [], "{text}");
    checked.config
}

fn warnings(text: &str) -> Vec<String> {
    let checked = checked(text).unwrap_or_else(|problems| panic!("{text}\n{}", problems.join("\n")));
    checked.warnings.iter().map(Problem::to_string).collect()
}

#[test]
fn all_keys_are_parsed() {
    let config = good(
        r#"
        [mount]
        elevator = "cfq"
        device = "/dev/sdb"
        depth = 4
        write_back = "kernel"
        dirty_background = "64M"
        dirty_limit = "128M"
        dirty_age = "500ms"
        groups = "cgroup"
        allow_other = false
        threads = 3
        [[device]]
        name = "sdb"
        elevator = "bfq"
        tunables = { slice_idle = 0 }
        depth = 1
        merge = false
        bandwidth = "50M"
        position = "12ms"
        rotational = true
        [[group]]
        name = "people"
        weight = 300
        [[tenant]]
        name = "player"
        comm = "mpv"
        uid = 1000
        gid = 100
        cgroup = "/user.slice"
        command = "mpv *"
        path = "films/*"
        op = ["read", "meta"]
        class = "realtime"
        level = 2
        reserve = "5M"
        limit = "10M"
        parent = "people"
        [[tenant]]
        path = "scratch"
        schedule = false
        [control]
        socket = "m.sock"
        [metrics]
        address = "127.0.0.1:9464"
        "#,
    );
    let mount = config.mount;
    assert_eq!((mount.elevator, mount.device.as_deref(), mount.depth), (Some(Kind::Cfq), Some("/dev/sdb"), Some(4)));
    assert_eq!((mount.write_back, mount.groups), (WriteBackChoice::Kernel, GroupsChoice::Cgroup));
    let dirty = (mount.dirty_background, mount.dirty_limit, mount.dirty_age_ns);
    assert_eq!(dirty, (Some(64 << 20), Some(128 << 20), Some(500_000_000)));
    assert_eq!((mount.allow_other, mount.threads), (Some(false), Some(3)));
    let device = &config.devices[0];
    assert_eq!((device.name.as_str(), device.elevator, device.depth), ("sdb", Some(Kind::Bfq), Some(1)));
    assert_eq!((device.merge, device.rotational), (false, Some(true)));
    assert_eq!((device.bandwidth, device.position_ns), (Some(50 << 20), Some(12_000_000)));
    assert_eq!(device.tunables, [("slice_idle".to_owned(), 0)]);
    let player = &config.tenants[0];
    let ops = Ops { read: true, meta: true, ..Ops::default() };
    assert_eq!(player.rules.len(), 7);
    assert!(player.rules.contains(&MountRule::Op(ops)) && player.rules.contains(&MountRule::Path("films/*".into())));
    assert_eq!((player.terms.priority.class(), player.terms.parent.as_deref()), (Class::RealTime, Some("people")));
    assert_eq!((config.tenants[1].name.as_str(), config.tenants[1].pass, player.pass), ("scratch", true, false));
    assert_eq!(config.groups[0].weight, 300);
    assert_eq!(config.control.as_deref().and_then(std::path::Path::to_str), Some("m.sock"));
    assert!(config.metrics.is_some());
}

#[test]
fn an_empty_file_is_valid() {
    let config = good("");
    assert_eq!(config, MountConfig::default());
    assert!(config.control.is_none(), "no control socket is configured");
    assert_eq!(good("[mount]\ndevice = \"auto\"\n[control]\nsocket = \"none\"\n"), config);
}

#[test]
fn problems_have_a_location_a_value_and_the_allowed_values() {
    let table = [
        (
            "elevator = \"cfq\"",
            "m.toml:1:1: there is no key `elevator` outside of tables: it belongs in [mount] or [[device]]",
        ),
        (
            "[mount]\nelevator = \"cqf\"",
            "m.toml:2:12: `elevator` is \"cqf\": there is no such elevator (did you mean `cfq`?)",
        ),
        ("[mount]\nelevater = \"cfq\"", "m.toml:2:1: there is no key `elevater` in [mount] (did you mean `elevator`?)"),
        ("[mount]\nwrite_back = \"mine\"", "m.toml:2:14: `write_back` is \"mine\": it takes \"ours\" or \"kernel\""),
        ("[mount]\ngroups = true", "m.toml:2:10: `groups` is true: it takes text, in quotes"),
        ("[mount]\ndirty_limit = \"4k\"", "m.toml:2:15: `dirty_limit` is \"4k\": it takes 1M or more"),
        ("[mount]\nthreads = 0", "m.toml:2:11: `threads` is 0: it takes 1 to 64"),
        (
            "[mount]\ndirty_background = \"2M\"\ndirty_limit = \"1M\"",
            "m.toml:2:20: `dirty_background` (2097152 bytes) is above `dirty_limit` (1048576 bytes)",
        ),
        (
            "[[device]]\ndepth = 1",
            "m.toml:1:1: [[device]] has no `name`: it is the kernel's name of the device, such as sdb",
        ),
        ("[[device]]\nname = \"a\"\n[[device]]\nname = \"a\"", "m.toml:4:8: there is already device `a`: m.toml:2:8"),
        (
            "[[device]]\nname = \"a\"\ntunables = { slice_idle = 0 }",
            "m.toml:3:12: `tunables` are given without an `elevator`",
        ),
        (
            "[[device]]\nname = \"a\"\nelevator = \"noop\"\ntunables = { slice_idle = 0 }",
            "m.toml:4:14: noop has no tunable `slice_idle`",
        ),
        ("[[tenant]]\nuid = 1\ngid = 2", "m.toml:1:1: [[tenant]] has no `name`"),
        (
            "[[tenant]]\npath = \"/films\"",
            "m.toml:2:8: `path` is \"/films\": it takes a path below the mount, without a slash at its beginning: \"films\"",
        ),
        (
            "[[tenant]]\nname = \"a\"\nop = \"reads\"",
            "m.toml:3:6: `op` is \"reads\": it takes \"read\", \"write\", \"sync\", \"meta\", or a list of them",
        ),
        ("[[tenant]]\nname = \"a\"\nop = []", "m.toml:3:6: `op` is a list: the list is empty"),
        ("[[tenant]]\nname = \"a\"\ncomm = \"a-very-long-name-of-a-command\"", "m.toml:3:8: `comm` is"),
        (
            "[[tenant]]\nname = \"a\"\ncgroup = \"user\"",
            "m.toml:3:10: `cgroup` is \"user\": it takes a path from the root",
        ),
        (
            "[[tenant]]\nname = \"a\"\nclass = \"idle\"\nlevel = 3",
            "m.toml:4:9: `level` is 3: the class idle has no levels",
        ),
        ("[[tenant]]\nname = \"a\"\nparent = \"b\"", "m.toml:3:10: there is no group `b`"),
        ("[[tenant]]\nname = \"a\"\nexport = \"b\"", "m.toml:3:1: there is no key `export` in [[tenant]]"),
        (
            "[[tenant]]\nname = \"a\"\nschedule = false\nlimit = \"1M\"",
            "m.toml:4:9: `limit` is given, but `schedule` is false: the tenant's requests are not scheduled",
        ),
        (
            "[[tenant]]\nname = \"a\"\nschedule = false\nop = \"sync\"",
            "m.toml:4:6: with `schedule` false, `op` must include \"read\"",
        ),
        ("[export]", "m.toml:1:2: there is no key `export`"),
        ("[tenant]\nname = \"a\"", "m.toml:1:1: `tenant` is no list of tables: write [[tenant]]"),
        ("[mount", "m.toml:1:"),
    ];
    for (text, expected) in table {
        let problems = checked(text).expect_err(text);
        assert!(problems.iter().any(|problem| problem.starts_with(expected)), "{text}\n{}", problems.join("\n"));
    }
}

#[test]
fn all_problems_are_reported_together() {
    let text = "[mount]\ndepth = 0\nthreads = 100\n[[device]]\nelevator = \"x\"\n[[tenant]]\nweight = 0\n";
    assert_eq!(checked(text).expect_err("all of it is wrong").len(), 6);
}

#[test]
fn terms_without_effect_get_a_warning() {
    let table = [
        (
            "[[tenant]]\nname = \"a\"\n[[tenant]]\ncomm = \"b\"",
            "m.toml:3:1: no request can be of the tenant `b`: `a` precedes it and has no rule",
        ),
        (
            "[[tenant]]\nname = \"a\"\ncomm = \"c*\"\n[[tenant]]\nname = \"b\"\ncomm = \"cp\"\nuid = 1",
            "m.toml:4:1: no request can be of the tenant `b`: `a` precedes it and matches all of its requests",
        ),
        (
            "[[tenant]]\nname = \"a\"\ncgroup = \"/x\"\n[[tenant]]\nname = \"b\"\ncgroup = \"/x/y\"",
            "m.toml:4:1: no request can be of the tenant `b`",
        ),
        (
            "[[tenant]]\nname = \"a\"\nop = [\"read\", \"meta\"]\n[[tenant]]\nname = \"b\"\nop = \"meta\"",
            "m.toml:4:1: no request can be of the tenant `b`",
        ),
        (
            "[mount]\nelevator = \"deadline\"\n[[tenant]]\ncomm = \"a\"\nclass = \"idle\"",
            "m.toml:5:9: deadline does not support priority classes: `class` has no effect",
        ),
        (
            "[mount]\nelevator = \"cfq-v2\"\n[[tenant]]\ncomm = \"a\"\nclass = \"idle\"",
            "m.toml:5:9: cfq-v2 does not support priority classes: `class` has no effect",
        ),
        (
            "[[tenant]]\ncomm = \"a\"\nclass = \"idle\"\nreserve = \"1M\"",
            "m.toml:4:11: the tenant `a` has the class idle and a reservation",
        ),
        (
            "[[tenant]]\ncomm = \"a\"\nlimit = \"1M\"\nreserve = \"2M\"",
            "m.toml:4:11: the reservation of 2097152 bytes a second exceeds the tenant's `limit` of 1048576",
        ),
        (
            "[mount]\nelevator = \"noop\"\n[[tenant]]\ncomm = \"a\"\nweight = 3",
            "m.toml:5:10: noop does not support groups",
        ),
    ];
    for (text, expected) in table {
        let warnings = warnings(text);
        assert!(warnings.iter().any(|warning| warning.starts_with(expected)), "{text}\n{}", warnings.join("\n"));
    }
}

#[test]
fn reachable_tenants_get_no_warning() {
    good(
        "[[tenant]]\nname = \"a\"\ncomm = \"cp\"\nuid = 1\n[[tenant]]\nname = \"b\"\ncomm = \"cp\"\n[[tenant]]\nname = \"c\"",
    );
    good("[[tenant]]\nname = \"a\"\nop = \"read\"\n[[tenant]]\nname = \"b\"\nop = [\"read\", \"sync\"]");
    good("[[tenant]]\nname = \"a\"\npath = \"films/x*\"\n[[tenant]]\nname = \"b\"\npath = \"films/*\"");
}

#[test]
fn every_key_is_read() {
    for key in Section::MOUNT.iter().flat_map(|section| section.keys()) {
        let text = format!("{}\n{} = 1979-05-27\n", key.section.heading(), key.name);
        let problems = checked(&text).expect_err("no key takes a date");
        let refused = format!("`{}` is 1979-05-27: ", key.name);
        assert!(problems.iter().any(|problem| problem.contains(&refused)), "{key:?}: {problems:?}");
    }
}

#[test]
fn the_examples_are_valid() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mount");
    for name in ["media-server", "build-host", "backup"] {
        let path = folder.join(format!("{name}.toml"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let config = good(&text);
        assert!(!config.tenants.is_empty(), "{name} has tenants");
    }
}

#[test]
fn the_examples_of_the_guide_are_valid() {
    let page = include_str!("../../../../docs/mount.md");
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty(), "the page has examples");
    blocks.iter().for_each(|block| drop(good(block)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = Draft::mount_from_toml(&text, "x.toml").check_mount(&TestEnvironment);
    }

    #[test]
    fn no_configuration_panics(lines in prop::collection::vec(line(), 0..30)) {
        let _ = Draft::mount_from_toml(&lines.concat(), "x.toml").check_mount(&TestEnvironment);
    }
}

/// A heading, or a key with a value of any type.
fn line() -> impl Strategy<Value = String> {
    const VALUES: [&str; 14] = [
        "1",
        "0",
        "-1",
        "true",
        "\"a\"",
        "\"\"",
        "\"x*\"",
        "[]",
        "[\"read\"]",
        "{ rate = \"1M\" }",
        "\"1M\"",
        "\"bfq\"",
        "\"idle\"",
        "1.5",
    ];
    let keys: Vec<&str> = Section::MOUNT.iter().flat_map(|section| section.keys()).map(|key| key.name).collect();
    let headings: Vec<String> = Section::MOUNT.iter().map(|section| section.heading()).collect();
    let value = (prop::sample::select(keys), prop::sample::select(VALUES.as_slice()));
    prop_oneof![
        prop::sample::select(headings).prop_map(|heading| format!("{heading}\n")),
        value.prop_map(|(key, value)| format!("{key} = {value}\n")),
    ]
}
