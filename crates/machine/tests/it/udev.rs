//! Tests of udev rules, on machines made of files.

use std::path::Path;

use crate::fake::{Fake, server};
use hoistway_machine::udev::{others, own_rules, prepare, rule, stable_id};
use hoistway_machine::{Assignment, BlockDevice, Root, find};

fn root(fake: &Fake) -> Root {
    Root::at(fake.root())
}

fn device(fake: &Fake, name: &str) -> BlockDevice {
    find(&root(fake), name).expect("it is there")
}

fn words(text: &str) -> Vec<Assignment> {
    text.split_whitespace().map(|word| Assignment::parse(word).expect("an assignment")).collect()
}

#[test]
fn a_device_is_identified_by_its_most_reliable_identifier() {
    let fake = server();
    fake.read_only_file("/sys/block/vda/serial", "backup-7\n");
    fake.read_only_file("/run/udev/data/b9:0", "E:MD_UUID=a1:b2:c3:d4\n");
    for (name, key, value) in [
        ("sda", "ATTR{device/wwid}", "naa.50014ee2b5e7c1d2"),
        ("nvme0n1", "ATTR{wwid}", "eui.002538b111b2c3d4"),
        ("dm-1", "ATTR{dm/uuid}", "LVM-Zx81data"),
        ("vda", "ATTR{serial}", "backup-7"),
        ("md0", "ENV{MD_UUID}", "a1:b2:c3:d4"),
    ] {
        let id = stable_id(&device(&fake, name)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((id.key.as_str(), id.value.as_str()), (key, value), "{name}");
    }
}

#[test]
fn a_device_without_an_identifier_is_refused_with_the_reason() {
    let fake = server();
    for (name, part) in [
        ("loop0", "another file each time"),
        ("zram0", "it is memory"),
        ("nbd0", "the server behind it"),
        ("sda1", "its disk's"),
        ("vda", "qemu's serial="),
        ("sdx", "neither a world-wide name nor a serial number"),
    ] {
        let message = stable_id(&device(&fake, name)).expect_err(name).to_string();
        assert!(message.starts_with(&format!("{name} cannot be found again")) && message.contains(part), "{message}");
    }
    // Zeros are no serial number.
    fake.read_only_file("/sys/block/vda/serial", "0000 0000\n");
    assert!(stable_id(&device(&fake, "vda")).is_err());
}

#[test]
fn a_rule_sets_the_scheduler_first_and_each_value_on_a_line() {
    let fake = server();
    let sda = device(&fake, "sda");
    let rule = rule(&sda, &words("slice_idle=0 scheduler=bfq read_ahead_kb=64 queue_depth=8")).unwrap();
    assert_eq!(rule.path, Path::new("/etc/udev/rules.d/64-hoistway-naa.50014ee2b5e7c1d2.rules"));
    let lines: Vec<&str> = rule.text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = [
        r#"ACTION!="add|change", GOTO="hoistway_end""#,
        r#"SUBSYSTEM!="block", GOTO="hoistway_end""#,
        r#"ENV{DEVTYPE}!="disk", GOTO="hoistway_end""#,
        r#"ATTR{device/wwid}!="naa.50014ee2b5e7c1d2", GOTO="hoistway_end""#,
        r#"ATTR{queue/scheduler}="bfq""#,
        r#"ATTR{queue/iosched/slice_idle}="0""#,
        r#"ATTR{queue/read_ahead_kb}="64""#,
        r#"ATTR{device/queue_depth}="8""#,
        r#"LABEL="hoistway_end""#,
    ];
    assert_eq!(lines, expected);
    assert!(
        rule.text.contains("WDC WD40EFRX-68N32N0") && rule.text.contains("To undo, remove this file."),
        "{}",
        rule.text
    );
}

#[test]
fn an_identifier_with_pattern_characters_gives_a_matching_rule_and_a_plain_file_name() {
    let fake = server();
    fake.read_only_file("/sys/block/vda/serial", "a*b\"c|d/e\n");
    let rule = rule(&device(&fake, "vda"), &words("scheduler=none")).unwrap();
    assert!(rule.text.contains(r#"ATTR{serial}!="a?b?c?d/e""#), "{}", rule.text);
    assert_eq!(rule.path.file_name().unwrap(), "64-hoistway-a_b_c_d_e.rules");
}

#[test]
fn a_committed_rule_is_found_again() {
    let fake = server();
    let sda = device(&fake, "sda");
    let rule = rule(&sda, &words("scheduler=bfq")).unwrap();
    let prepared = prepare(&root(&fake), &rule, None).unwrap();
    assert!(own_rules(&root(&fake), &sda).is_empty(), "not before the commit");
    assert!(!prepared.commit().unwrap());
    assert_eq!(own_rules(&root(&fake), &sda), std::slice::from_ref(&rule.path));
    assert_eq!(own_rules(&root(&fake), &device(&fake, "sdb")), [] as [&Path; 0]);
    assert!(prepare(&root(&fake), &rule, None).unwrap().commit().unwrap(), "the former rule is replaced");
    let text = std::fs::read_to_string(root(&fake).path(&rule.path)).unwrap();
    assert_eq!(text, rule.text);
    let left: Vec<_> = std::fs::read_dir(fake.path("/etc/udev/rules.d")).unwrap().collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn an_unwritable_path_is_an_error_before_the_commit() {
    let fake = server();
    let rule = rule(&device(&fake, "sda"), &words("scheduler=bfq")).unwrap();
    let message = prepare(&root(&fake), &rule, Some(Path::new("/nowhere/at/all.rules"))).unwrap_err().to_string();
    assert!(message.starts_with("/nowhere/at/all.rules: the rule cannot be written"), "{message}");
    let message = prepare(&root(&fake), &rule, Some(fake.root())).unwrap_err().to_string();
    assert!(message.contains("the rule cannot be written"), "{message}");
}

#[test]
fn rules_of_other_programs_are_found_if_they_match_the_device() {
    let fake = server();
    fake.file(
        "/etc/udev/rules.d/60-ssd.rules",
        "# comment\n\
         ACTION==\"add|change\", KERNEL==\"sd[a-z]\", ATTR{queue/rotational}==\"1\", ATTR{queue/scheduler}=\"bfq\"\n\
         KERNEL==\"nvme*\", ATTR{queue/scheduler}=\"none\"\n\
         KERNEL==\"sda\", PROGRAM==\"/bin/true\", \\\n  ATTR{queue/scheduler}=\"kyber\"\n\
         KERNEL==\"sda\", ATTR{queue/scheduler}==\"x\", ATTR{queue/read_ahead_kb}=\"1\"\n",
    );
    fake.file(
        "/usr/lib/udev/rules.d/61-goto.rules",
        "SUBSYSTEM!=\"block\", GOTO=\"end\"\nKERNEL!=\"sdb\", GOTO=\"end\"\nATTR{queue/scheduler}=\"none\"\nLABEL=\"end\"\n",
    );
    // A file of the same name in /etc hides this one.
    fake.file("/usr/lib/udev/rules.d/60-ssd.rules", "KERNEL==\"sda\", ATTR{queue/scheduler}=\"none\"\n");
    fake.file("/etc/udev/rules.d/70-no-rule.txt", "KERNEL==\"sda\", ATTR{queue/scheduler}=\"none\"\n");
    let found = |name: &str| {
        let found = others(&root(&fake), &device(&fake, name));
        found
            .iter()
            .map(|o| (o.path.file_name().unwrap().to_str().unwrap().to_owned(), o.line, o.scheduler.clone(), o.is_sure))
            .collect::<Vec<_>>()
    };
    let of = |file: &str, line, scheduler: &str, sure| (file.to_owned(), line, scheduler.to_owned(), sure);
    assert_eq!(found("sda"), [of("60-ssd.rules", 2, "bfq", true), of("60-ssd.rules", 4, "kyber", false)]);
    assert_eq!(found("sdb"), [of("60-ssd.rules", 2, "bfq", true), of("61-goto.rules", 3, "none", true)]);
    assert_eq!(found("nvme0n1"), [of("60-ssd.rules", 3, "none", true)]);
    assert_eq!(found("vda"), []);
}

#[test]
fn rules_of_this_program_do_not_count_as_others() {
    let fake = server();
    let sda = device(&fake, "sda");
    prepare(&root(&fake), &rule(&sda, &words("scheduler=bfq")).unwrap(), None).unwrap().commit().unwrap();
    let sdb = device(&fake, "sdb");
    prepare(&root(&fake), &rule(&sdb, &words("scheduler=none")).unwrap(), None).unwrap().commit().unwrap();
    assert_eq!(others(&root(&fake), &sda), []);
    assert_eq!(others(&root(&fake), &sdb), []);
}
