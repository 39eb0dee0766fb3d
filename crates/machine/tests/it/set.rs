//! Tests of queue settings, on machines made of files, and on a loop device of this machine if root
//! runs the tests.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::fake::{Fake, server};
use hoistway_machine::{Assignment, AssignmentError, BlockDevice, PlanError, Queue, Root, SettingsPlan, find};

fn words(text: &str) -> Vec<Assignment> {
    text.split_whitespace().map(|word| Assignment::parse(word).expect("an assignment")).collect()
}

fn device(root: &Root, name: &str) -> BlockDevice {
    find(root, name).expect("it is there")
}

fn plan(fake: &Fake, name: &str, text: &str) -> Result<SettingsPlan, PlanError> {
    let root = Root::at(fake.root());
    SettingsPlan::new(&root, &device(&root, name), &words(text))
}

const SDA: &str = "/sys/block/sda";

#[test]
fn the_scheduler_is_written_first_at_any_position() {
    let plan = plan(&server(), "sda", "slice_idle=0 read_ahead_kb=64 scheduler=bfq").unwrap();
    let steps: Vec<(String, &str)> = plan.steps().map(|(word, file)| (word.to_string(), file)).collect();
    let expected = [
        ("scheduler=bfq".to_owned(), "queue/scheduler"),
        ("slice_idle=0".to_owned(), "queue/iosched/slice_idle"),
        ("read_ahead_kb=64".to_owned(), "queue/read_ahead_kb"),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn units_and_words_are_accepted_in_common_spellings() {
    let plan =
        plan(&server(), "sda", "read_expire=200ms read_ahead_kb=64KiB write_cache=write-through queue/nomerges=2")
            .unwrap();
    let values: Vec<String> = plan.steps().map(|(word, _)| word.to_string()).collect();
    assert_eq!(values, ["read_expire=200", "read_ahead_kb=64", "'write_cache=write through'", "nomerges=2"]);
}

#[test]
fn an_error_names_the_valid_settings_and_values() {
    let fake = server();
    for (name, text, parts) in [
        ("sda", "scheduler=bqf", &["sda has no scheduler `bqf`", "it has none, mq-deadline, kyber, bfq"][..]),
        ("sda", "scheduler=cfq", &["before 5.0", "its successor is bfq"]),
        ("sda", "scheduler=noop", &["its successor is none"]),
        ("vda", "scheduler=kyber", &["it has none, mq-deadline", "kyber-iosched is not installed"]),
        ("sda", "slice_idle=0", &["sda under mq-deadline has no setting `slice_idle`", "read_expire", "read_ahead_kb"]),
        ("sda", "scheduler=none read_expire=1", &["under none", "none has no tunables"]),
        ("sda", "scheduler=bfq low_latency=2", &["`2` is not a value of low_latency", "0 or 1"]),
        ("sda", "read_expire=5s", &["`5s` is not a value of read_expire", "0 or more ms"]),
        ("sda", "read_expire=-1", &["`-1`", "0 or more ms"]),
        ("sda", "max_sectors_kb=40000", &["1 to 32767 KiB"]),
        ("sda", "write_cache=off", &["write back or write through"]),
        ("sda", "fua=1", &["`fua` of sda can only be read: it is 0"]),
        ("sda", "nomerges=1 nomerges=2", &["`nomerges` is set twice"]),
        ("sda1", "read_ahead_kb=1", &["sda1 is a partition", "its disk's queue: set sda"]),
        ("dm-1", "scheduler=bfq", &["dm-1 has no scheduler to choose", "set dm-0"]),
        ("zram0", "scheduler=bfq", &["zram0 has no scheduler to choose", "it is memory"]),
        ("sda", "", &["no setting is given"]),
    ] {
        let message = plan(&fake, name, text).expect_err(text).to_string();
        for part in parts {
            assert!(message.contains(part), "{name} {text}: `{part}` is missing in: {message}");
        }
    }
}

#[test]
fn a_scheduler_of_the_module_is_refused_with_the_way_to_it() {
    let machine = |prepare: fn(&Fake)| {
        let fake = server();
        prepare(&fake);
        fake
    };
    let (absent, installed) = (machine(|_| ()), machine(Fake::install_module));
    let loaded = machine(Fake::load_module);
    for (fake, text, parts) in [
        (&absent, "scheduler=cfq", &["successor is bfq; the kernel module hoistway_iosched offers it: docs"][..]),
        (&absent, "scheduler=cfq-v1", &["offers it with the parameter elevators=cfq-v1: docs/kernel.md"]),
        (&absent, "scheduler=deadline", &["offers it as h-deadline with the parameter elevators=deadline"]),
        (&installed, "scheduler=fiops", &["`modprobe hoistway_iosched` offers it)"]),
        (&loaded, "scheduler=h-kyber", &["was loaded without it", "elevators=kyber"]),
        (&loaded, "slice_idle=-1", &["slice_idle", "0 or more ms"]),
    ] {
        let message = plan(fake, "sda", text).expect_err(text).to_string();
        for part in parts {
            assert!(message.contains(part), "{text}: `{part}` is missing in: {message}");
        }
    }
    plan(&loaded, "sda", "scheduler=h-bfq").expect("it is listed");
    plan(&loaded, "sda", "slice_idle=4").expect("a tunable of cfq");
}

#[test]
fn text_of_another_form_is_no_assignment() {
    for text in ["scheduler", "=bfq", "a=", "a b=c", "../x=1", "iosched/../x=1", "a=b\nc"] {
        assert!(matches!(Assignment::parse(text), Err(AssignmentError { .. })), "{text:?}");
    }
}

#[test]
fn a_scheduler_in_an_installed_module_counts_as_available() {
    let fake = server();
    fake.read_only_file("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
    fake.read_only_file(
        "/lib/modules/6.1.0-18-amd64/modules.dep",
        "kernel/block/bfq.ko.xz:\nkernel/block/kyber-iosched.ko:\n",
    );
    assert!(plan(&fake, "vda", "scheduler=kyber").is_ok());
    assert!(plan(&fake, "vda", "scheduler=bfq slice_idle=0").is_ok());
    assert!(plan(&fake, "vda", "scheduler=bfqq").is_err());
}

#[test]
fn a_setting_is_read_back_and_the_way_back_restores_the_former_one() {
    let fake = server();
    fake.file(&format!("{SDA}/queue/iosched/read_expire"), "300\n");
    let applied = plan(&fake, "sda", "read_expire=100 read_ahead_kb=64 nomerges=0").unwrap().apply().unwrap();
    assert_eq!(fake.text(&format!("{SDA}/queue/iosched/read_expire")), "100");
    assert_eq!(fake.text(&format!("{SDA}/queue/read_ahead_kb")), "64");
    assert!(applied.changes.iter().all(|change| change.is_as_requested()));
    assert!(applied.changes[2].is_unchanged() && applied.besides.is_empty());
    let back: Vec<String> = applied.back.iter().map(ToString::to_string).collect();
    assert_eq!(back, ["read_expire=300", "read_ahead_kb=128"]);
}

#[test]
fn a_refused_value_restores_all_former_settings() {
    // Files do not switch schedulers: bfq's tunables do not appear, and the second write fails.
    let fake = server();
    let plan = plan(&fake, "sda", "scheduler=bfq read_ahead_kb=64 slice_idle=0").unwrap();
    let message = plan.apply().unwrap_err().to_string();
    assert!(message.starts_with("sda: slice_idle=0 was refused: there is no such setting"), "{message}");
    assert!(message.ends_with("all former settings are restored"), "{message}");
    assert_eq!(fake.text(&format!("{SDA}/queue/read_ahead_kb")), "128");
    assert_eq!(fake.text(&format!("{SDA}/queue/scheduler")), "mq-deadline");
    assert!(!fake.path(&format!("{SDA}/queue/iosched/slice_idle")).exists());
}

#[test]
fn a_vanished_device_is_an_error() {
    let fake = server();
    let plan = plan(&fake, "nbd0", "read_expire=1").unwrap();
    fs::remove_dir_all(fake.path("/sys/devices/virtual/block/nbd0")).unwrap();
    assert_eq!(plan.apply().unwrap_err().to_string(), "nbd0: the device has vanished");
}

#[test]
fn a_value_with_blanks_is_quoted_for_a_shell() {
    let word = Assignment { name: "write_cache".into(), value: "it's back".into() };
    assert_eq!(word.to_string(), r"'write_cache=it'\''s back'");
}

/// A loop device of this machine over a file, detached on drop. Drop also restores its queue,
/// because the kernel keeps the settings for the next file.
struct Loop {
    name: String,
    found: Queue,
    _folder: tempfile::TempDir,
}

impl Loop {
    /// Attaches a file. `None`, with a message, if loop devices cannot be made.
    fn attach() -> Option<Loop> {
        let folder = tempfile::tempdir().expect("a folder");
        let image: PathBuf = folder.path().join("image");
        fs::File::create(&image).and_then(|file| file.set_len(16 << 20)).expect("an image");
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let node = match made {
            Ok(output) if output.status.success() => String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned(),
            _ => return skipped("loop devices cannot be made here (it needs root and losetup)"),
        };
        let name = node.trim_start_matches("/dev/").to_owned();
        let found = device(&Root::machine(), &name).queue.expect("a queue");
        let loop_device = Loop { name, found, _folder: folder };
        let schedulers = &loop_device.found.schedulers;
        if ["none", "mq-deadline", "bfq"].iter().any(|name| !schedulers.iter().any(|other| other == name)) {
            return skipped("the kernel does not have all of none, mq-deadline and bfq");
        }
        Some(loop_device)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let sysfs = PathBuf::from(format!("/sys/block/{}", self.name));
        let scheduler = self.found.scheduler.clone().unwrap_or_default();
        let _ = fs::write(sysfs.join("queue/scheduler"), scheduler);
        for attribute in self.found.settings.iter().chain(&self.found.tunables).filter(|attribute| attribute.writable) {
            let file = sysfs.join(&attribute.file);
            if fs::read_to_string(&file).is_ok_and(|now| now.trim() != attribute.value) {
                let _ = fs::write(file, &attribute.value);
            }
        }
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.name)]).status();
    }
}

/// Skips a test because this machine lacks something. In CI, where `CI` is `true`, the test fails.
fn skipped<T>(why: &str) -> Option<T> {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{why}");
    eprintln!("skipped: {why}");
    None
}

#[test]
fn a_loop_device_is_switched_and_restored() {
    let Some(attached) = Loop::attach() else { return };
    let root = Root::machine();
    let set = |text: &str| {
        let words: Vec<Assignment> = text.split(' ').map(|word| Assignment::parse(word).unwrap()).collect();
        SettingsPlan::new(&root, &device(&root, &attached.name), &words).unwrap().apply().unwrap()
    };
    set("scheduler=mq-deadline read_expire=300");
    let before = device(&root, &attached.name).queue.unwrap();
    let applied = set("scheduler=bfq slice_idle=0 low_latency=0 read_ahead_kb=64");
    let queue = device(&root, &attached.name).queue.unwrap();
    assert_eq!(queue.scheduler.as_deref(), Some("bfq"));
    assert_eq!(queue.tunable("slice_idle").unwrap().value, "0");
    assert_eq!(queue.tunable("low_latency").unwrap().value, "0");
    assert_eq!(queue.setting("read_ahead_kb").unwrap().value, "64");
    let back: Vec<String> = applied.back.iter().map(ToString::to_string).collect();
    assert_eq!(back[0], "scheduler=mq-deadline");
    assert!(back.contains(&"read_expire=300".to_owned()), "{back:?}");
    set(&back.join(" "));
    assert_eq!(device(&root, &attached.name).queue.unwrap(), before);
}

#[test]
fn a_value_that_the_kernel_rounds_is_reported() {
    let Some(attached) = Loop::attach() else { return };
    let root = Root::machine();
    let plan = |text: &str| SettingsPlan::new(&root, &device(&root, &attached.name), &words(text)).unwrap();
    let applied = plan("nr_requests=1").apply().unwrap();
    let change = &applied.changes[0];
    assert!(!change.is_as_requested() && change.after.as_deref().is_some_and(|after| after != "1"), "{change:?}");
}

#[test]
fn a_failure_on_a_loop_device_restores_the_former_scheduler_and_its_tunables() {
    let Some(attached) = Loop::attach() else { return };
    let root = Root::machine();
    let plan = |text: &str| SettingsPlan::new(&root, &device(&root, &attached.name), &words(text)).unwrap();
    plan("scheduler=mq-deadline read_expire=321").apply().unwrap();
    let before = device(&root, &attached.name).queue.unwrap();
    // The kernel takes only numbers there; the file has no description to check the value against.
    let result = plan("scheduler=bfq stable_writes=many").apply();
    match result {
        Err(error) => {
            assert!(error.to_string().ends_with("all former settings are restored"), "{error}");
            assert_eq!(device(&root, &attached.name).queue.unwrap(), before);
        }
        Ok(applied) => panic!("the kernel accepted the value: {applied:?}"),
    }
}
