//! Facts about devices, on machines made of files.

use crate::fake::{Fake, array, server};
use hoistway_advise::device_facts::{
    self, ModelQuality, candidates, current_settings, drive_model, drive_model_below, host_of, usual_host, warnings,
};
use hoistway_core::Kind;
use hoistway_machine::{BlockDevice, Root, devices};

fn all(fake: &Fake) -> (Root, Vec<BlockDevice>) {
    let root = Root::at(fake.root());
    let devices = devices(&root).expect("devices");
    (root, devices)
}

fn named<'a>(devices: &'a [BlockDevice], name: &str) -> &'a BlockDevice {
    devices.iter().find(|device| device.name == name).unwrap_or_else(|| panic!("there is {name}"))
}

/// The warnings about a topic.
fn said(fake: &Fake, name: &str, about: &str) -> Vec<String> {
    let (root, devices) = all(fake);
    let warnings = warnings(&root, &devices, named(&devices, name));
    warnings.into_iter().filter(|warning| warning.about == about).map(|warning| warning.text).collect()
}

#[test]
fn every_kind_of_device_has_the_nearest_model() {
    let (_, devices) = all(&server());
    let model = |name: &str| drive_model(named(&devices, name)).map(|model| (model.profile, model.quality));
    assert_eq!(model("sda"), Some(("cmr-4tb", ModelQuality::Generic)));
    assert_eq!(model("nvme0n1"), Some(("ssd-nvme-tlc", ModelQuality::Generic)));
    assert_eq!(model("vda"), Some(("cloud-gp3", ModelQuality::Unknown)));
    assert_eq!(model("nbd0").map(|model| model.1), Some(ModelQuality::Unknown));
    assert_eq!(model("zram0"), None, "memory is no drive");
    for device in &devices {
        if let Some(model) = drive_model(device) {
            assert!(hoistway_drive::Profile::builtin(model.profile).is_some(), "{}: {}", device.name, model.profile);
        }
    }
}

#[test]
fn a_loop_device_has_the_drive_model_of_its_file() {
    let fake = server();
    let (root, devices) = all(&fake);
    let under = drive_model_below(&root, &devices, named(&devices, "loop0")).expect("a model");
    assert_eq!((under.profile, under.quality), ("cmr-4tb", ModelQuality::Generic));
    assert!(under.why.starts_with("it is on sda"), "{}", under.why);
}

#[test]
fn disks_get_models_by_size_and_transport() {
    let (_, devices) = all(&server());
    let of = |bytes: u64, rotational: bool, model: &str| {
        let mut device = named(&devices, "sda").clone();
        device.bytes = bytes;
        device.identity.model = Some(model.into());
        if let Some(queue) = &mut device.queue {
            queue.rotational = Some(rotational);
        }
        drive_model(&device).expect("a model")
    };
    const TB: u64 = 1_000_000_000_000;
    assert_eq!(of(20 * TB, true, "ST20000").profile, "cmr-20tb");
    assert_eq!(of(8 * TB, true, "HUS").profile, "cmr-8tb");
    assert_eq!(of(2 * TB, true, "ST2000").profile, "st2000dm006");
    assert_eq!(of(TB / 8, true, "old").profile, "sata-7200-2006");
    assert_eq!(of(TB, false, "Samsung SSD 860").profile, "ssd-sata-consumer");
    let made_up = of(TB, true, "QEMU HARDDISK");
    assert_eq!(made_up.quality, ModelQuality::Unknown);
    assert!(made_up.why.contains("is unknown"), "{}", made_up.why);
}

#[test]
fn current_settings_follow_the_files() {
    let fake = server();
    fake.file("/sys/block/sda/queue/iosched/fifo_batch", "1\n");
    let (root, devices) = all(&fake);
    let sda = named(&devices, "sda");
    let queue = sda.queue.as_ref().expect("a queue");
    assert_eq!(current_settings(sda, queue).choice.name(), "mq-deadline fifo_batch=1");
    let (can, cannot) = candidates(&root, sda, queue);
    assert_eq!((can, cannot), (vec![Kind::Noop, Kind::MqDeadline, Kind::Kyber, Kind::Bfq], vec![]));
    let host = host_of(queue, usual_host());
    assert_eq!((host.depth_max, host.read_ahead_kib, host.queue.max_sectors), (Some(32), 128, 2560));
    assert!(host.pool_follows_drive, "64 is what the kernel sets for a depth of 32");
}

#[test]
fn a_scheduler_in_an_installed_module_can_be_set() {
    let fake = server();
    fake.file("/sys/block/sda/queue/scheduler", "none [mq-deadline]\n");
    let of = |fake: &Fake| {
        let (root, devices) = all(fake);
        let sda = named(&devices, "sda");
        candidates(&root, sda, sda.queue.as_ref().expect("a queue"))
    };
    assert_eq!(of(&fake), (vec![Kind::Noop, Kind::MqDeadline], vec!["kyber", "bfq"]));
    fake.read_only_file("/proc/sys/kernel/osrelease", "6.1.0-test\n");
    fake.read_only_file("/lib/modules/6.1.0-test/modules.dep", "kernel/block/bfq.ko:\n");
    assert_eq!(of(&fake), (vec![Kind::Noop, Kind::MqDeadline, Kind::Bfq], vec!["kyber"]));
}

#[test]
fn an_unknown_scheduler_is_named_and_replaced() {
    let fake = server();
    fake.file("/sys/block/sda/queue/scheduler", "none [adios] mq-deadline\n");
    let (_, devices) = all(&fake);
    let sda = named(&devices, "sda");
    let current = current_settings(sda, sda.queue.as_ref().expect("a queue"));
    assert_eq!((current.choice.name().as_str(), current.unknown_scheduler.as_deref()), ("mq-deadline", Some("adios")));
}

#[test]
fn warnings_name_the_effect_of_ionice_under_each_scheduler() {
    let fake = server();
    let priorities = |scheduler: &str| {
        fake.file("/sys/block/sda/queue/scheduler", scheduler);
        said(&fake, "sda", "priorities")
    };
    assert!(priorities("none [mq-deadline] kyber bfq")[0].contains("only the class of `ionice` counts"));
    assert!(priorities("[none] mq-deadline kyber bfq")[0].contains("`ionice` has no effect on sda now: none"));
    assert!(priorities("none mq-deadline [kyber] bfq")[0].contains("kyber ignores priorities"));
    assert_eq!(priorities("none mq-deadline kyber [bfq]"), [""; 0]);
}

#[test]
fn warnings_about_layers_name_the_queue_that_schedules() {
    let fake = server();
    assert!(said(&fake, "dm-1", "layers")[0].contains("the queue of sda schedules its requests"));
    assert!(said(&fake, "md0", "layers")[0].contains(" and "), "both halves of a mirror");
    let on_loop = said(&fake, "loop0", "layers");
    assert!(on_loop[0].contains("is a file on"), "{on_loop:?}");
    assert!(said(&fake, "vda", "layers")[0].contains("its host schedules the requests again"));
    assert_eq!(said(&fake, "nvme0n1", "layers"), [""; 0]);
}

#[test]
fn a_rotating_virtual_disk_has_a_warning() {
    let fake = server();
    fake.file("/sys/block/vda/queue/rotational", "1\n");
    assert!(said(&fake, "vda", "rotational")[0].contains("not a drive"));
    assert_eq!(said(&fake, "sda", "rotational"), [""; 0], "a disk that says so is one");
    fake.file("/sys/block/sda/queue/rotational", "0\n");
    assert!(said(&fake, "sda", "rotational")[0].contains("its model is that of a rotating disk"));
}

#[test]
fn a_write_cache_has_a_warning_and_the_throttling_of_write_back_is_that_of_the_device() {
    let fake = server();
    let queue = || named(&all(&fake).1, "sda").queue.as_ref().expect("a queue").clone();
    assert!(said(&fake, "sda", "write-cache")[0].contains("in its cache"));
    let host = host_of(&queue(), usual_host());
    assert_eq!((host.write_back_throttling, host.write_back_latency_us), (true, 75_000));
    fake.file("/sys/block/sda/queue/write_cache", "write through\n");
    fake.file("/sys/block/sda/queue/wbt_lat_usec", "0\n");
    assert!(said(&fake, "sda", "write-cache").is_empty());
    assert!(!host_of(&queue(), usual_host()).write_back_throttling);
    fake.file("/sys/block/sda/queue/scheduler", "mq-deadline none [bfq]\n");
    assert!(host_of(&queue(), usual_host()).write_back_throttling, "bfq switches it off, not the administrator");
    let queue = queue();
    let profile = hoistway_drive::Profile::builtin("cmr-4tb").expect("a drive");
    assert_ne!(device_facts::profile_as_set(&queue, profile.clone()), profile, "a disk without its cache is another");
}

#[test]
fn the_queue_above_several_paths_schedules() {
    let fake = array();
    let above = said(&fake, "dm-0", "layers");
    assert!(above.len() == 1 && above[0].contains("only its own queue schedules them"), "{above:?}");
    let path = said(&fake, "sda", "layers");
    assert!(path.len() == 1 && path[0].contains("the queue of dm-0 schedules the requests"), "{path:?}");
    let volume = said(&fake, "dm-1", "layers");
    assert!(volume.len() == 1 && volume[0].ends_with("the queue of dm-0 schedules its requests"), "{volume:?}");
    let (root, devices) = all(&fake);
    let model = drive_model_below(&root, &devices, named(&devices, "dm-0")).expect("a model");
    assert_eq!(model.quality, ModelQuality::Unknown, "the disks of an array are unknown: {}", model.why);
}

#[test]
fn a_loop_device_on_an_unknown_device_is_not_its_own_drive() {
    let fake = server();
    fake.file("/sys/devices/virtual/block/loop0/queue/scheduler", "none mq-deadline kyber [bfq]\n");
    fake.file("/proc/self/mountinfo", "23 22 0:21 / / rw,nosuid shared:2 - tmpfs tmpfs rw\n");
    let said = said(&fake, "loop0", "layers");
    assert!(said.len() == 1 && said[0].contains("a file on an unknown device"), "{said:?}");
}
