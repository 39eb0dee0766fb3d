//! Tests of block devices, on machines made of files.

use crate::fake::{Fake, array, server};
use hoistway_machine::{
    BlockDevice, FindError, Kind, Root, Transport, WriteCache, all_below, devices, drives_below, find, hidden_paths,
    openers, queues_below,
};

fn read(fake: &Fake) -> Vec<BlockDevice> {
    devices(&Root::at(fake.root())).expect("there is a sysfs")
}

fn one<'a>(devices: &'a [BlockDevice], name: &str) -> &'a BlockDevice {
    devices.iter().find(|device| device.name == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn devices_are_sorted_by_name_and_followed_by_their_partitions() {
    let fake = server();
    let devices = read(&fake);
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    let expected = [
        "dm-0",
        "dm-1",
        "loop0",
        "loop1",
        "md0",
        "nbd0",
        "nvme0n1",
        "nvme0n1p1",
        "sda",
        "sda1",
        "sda2",
        "sdb",
        "sdc",
        "sdx",
        "sr0",
        "vda",
        "zram0",
    ];
    assert_eq!(names, expected);
}

#[test]
fn all_properties_of_a_sata_disk_are_read() {
    let fake = server();
    let devices = read(&fake);
    let sda = one(&devices, "sda");
    assert_eq!((sda.kind, sda.number.to_string(), sda.bytes), (Kind::Disk, "8:0".into(), 4_000_787_030_016));
    assert_eq!(sda.partitions, ["sda1", "sda2"]);
    let identity = &sda.identity;
    assert_eq!(identity.model.as_deref(), Some("WDC WD40EFRX-68N32N0"));
    assert_eq!(identity.vendor.as_deref(), Some("ATA"));
    assert_eq!(identity.serial.as_deref(), Some("WD-WCC7K4ABCDEF"));
    assert_eq!(identity.wwid.as_deref(), Some("naa.50014ee2b5e7c1d2"));
    assert_eq!(identity.transport, Some(Transport::Sata));
    assert_eq!(identity.links.len(), 2);
    let queue = sda.queue.as_ref().expect("a queue");
    assert_eq!(queue.schedulers, ["none", "mq-deadline", "kyber", "bfq"]);
    assert_eq!(queue.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!((queue.rotational, queue.nr_requests, queue.device_depth), (Some(true), Some(64), Some(32)));
    assert_eq!((queue.write_cache, queue.fua, queue.zoned.as_deref()), (Some(WriteCache::Back), Some(false), None));
    assert_eq!((queue.hardware_queues, queue.discard_max_bytes), (Some(1), Some(0)));
    assert_eq!((queue.logical_block_bytes, queue.physical_block_bytes), (Some(512), Some(4096)));
    let expire = queue.tunable("read_expire").expect("a tunable");
    assert_eq!((expire.value.as_str(), expire.writable), ("500", true));
    assert!(queue.setting("read_ahead_kb").is_some_and(|setting| setting.writable && setting.value == "128"));
    assert!(queue.setting("fua").is_some_and(|setting| !setting.writable));
    assert!(queue.setting("queue_depth").is_some_and(|setting| setting.value == "32"));
    assert!(queue.setting("scheduler").is_none());
}

#[test]
fn kinds_follow_the_driver_and_the_device_mapper() {
    let fake = server();
    let devices = read(&fake);
    for (name, kind) in [
        ("dm-0", Kind::Crypt),
        ("dm-1", Kind::Lvm),
        ("md0", Kind::Md),
        ("nvme0n1", Kind::Nvme),
        ("nvme0n1p1", Kind::Partition),
        ("vda", Kind::Virtio),
        ("loop0", Kind::Loop),
        ("nbd0", Kind::Nbd),
        ("zram0", Kind::Zram),
        ("sr0", Kind::Rom),
    ] {
        assert_eq!(one(&devices, name).kind, kind, "{name}");
    }
    assert_eq!(one(&devices, "md0").label.as_deref(), Some("raid1"));
    assert_eq!(one(&devices, "dm-1").label.as_deref(), Some("vg-data"));
}

#[test]
fn an_nvme_drive_has_many_queues_and_its_own_name() {
    let fake = server();
    let devices = read(&fake);
    let nvme = one(&devices, "nvme0n1");
    let queue = nvme.queue.as_ref().expect("a queue");
    assert_eq!((queue.hardware_queues, queue.depth()), (Some(8), Some(1023)));
    assert_eq!(nvme.identity.model.as_deref(), Some("Samsung SSD 980 PRO 1TB"));
    assert_eq!(nvme.identity.wwid.as_deref(), Some("eui.002538b111b2c3d4"));
    assert_eq!(nvme.identity.transport, Some(Transport::Pcie));
}

#[test]
fn mounts_and_swap_are_found_by_number_by_node_and_by_the_members_of_a_file_system() {
    let fake = server();
    fake.read_only_file("/sys/fs/btrfs/aaaa-bbbb/devices/md0", "");
    fake.read_only_file("/sys/fs/btrfs/aaaa-bbbb/devices/vda", "");
    let devices = read(&fake);
    let at = |name: &str| one(&devices, name).mounts.iter().map(|mount| mount.at.to_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(at("nvme0n1p1"), ["/"]);
    assert_eq!(at("dm-1"), ["/srv/my data"]);
    assert_eq!(at("md0"), ["/home"]);
    assert_eq!(at("vda"), ["/home"]);
    assert_eq!(at("loop0"), ["/mnt/image"]);
    assert_eq!(at("sda"), [""; 0]);
    assert_eq!(one(&devices, "md0").mounts[0].file_system, "btrfs");
    let swaps: Vec<&str> = devices.iter().filter(|device| device.swap).map(|device| device.name.as_str()).collect();
    assert_eq!(swaps, ["zram0"]);
}

#[test]
fn invalid_values_are_absent() {
    let fake = server();
    let devices = read(&fake);
    let sdx = one(&devices, "sdx");
    assert_eq!((sdx.bytes, sdx.read_only, sdx.removable), (0, false, false));
    let queue = sdx.queue.as_ref().expect("a queue");
    assert_eq!((queue.rotational, queue.nr_requests, queue.write_cache), (None, None, None));
    assert_eq!(sdx.identity.transport, Some(Transport::Usb));
}

#[test]
fn a_device_without_a_scheduler_has_no_choice() {
    let fake = server();
    let devices = read(&fake);
    for (name, choice) in [("zram0", false), ("md0", false), ("dm-1", false), ("vda", true), ("sda", true)] {
        assert_eq!(one(&devices, name).queue.as_ref().expect("a queue").has_choice(), choice, "{name}");
    }
}

#[test]
fn devices_below_end_at_the_disks() {
    let fake = server();
    let devices = read(&fake);
    let root = Root::at(fake.root());
    let below =
        |name: &str| all_below(&root, &devices, one(&devices, name)).iter().map(|d| d.name.clone()).collect::<Vec<_>>();
    assert_eq!(below("dm-1"), ["dm-1", "dm-0", "sda2", "sda"]);
    assert_eq!(below("md0"), ["md0", "sdb", "sdc"]);
    assert_eq!(below("loop0"), ["loop0", "dm-1", "dm-0", "sda2", "sda"]);
    let queues = |name: &str| {
        queues_below(&root, &devices, one(&devices, name)).iter().map(|d| d.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(queues("loop0"), ["sda"]);
    assert_eq!(queues("md0"), ["sdb", "sdc"]);
    assert_eq!(queues("sda1"), ["sda"]);
    assert_eq!(queues("vda"), ["vda"]);
}

#[test]
fn a_circle_of_devices_ends() {
    let fake = Fake::empty();
    let one_device = fake.virtual_device("dm-0", "253:0", 8);
    let other = fake.virtual_device("dm-1", "253:1", 8);
    fake.stack(&one_device, &other);
    fake.stack(&other, &one_device);
    let devices = read(&fake);
    let root = Root::at(fake.root());
    assert_eq!(all_below(&root, &devices, &devices[0]).len(), 2);
    assert_eq!(queues_below(&root, &devices, &devices[0]).len(), 0);
}

#[test]
fn a_device_is_found_by_its_names_and_by_files_on_it() {
    let fake = server();
    let root = Root::at(fake.root());
    for (text, name) in [
        ("sda", "sda"),
        ("/dev/sda2", "sda2"),
        ("8:0", "sda"),
        ("vg-data", "dm-1"),
        ("mapper/vg-data", "dm-1"),
        ("/dev/mapper/vault", "dm-0"),
        ("/dev/disk/by-id/wwn-0x50014ee2b5e7c1d2", "sda"),
        ("/dev/disk/by-label/boot", "sda1"),
        ("/srv/my data/films/a.mkv", "dm-1"),
        ("/home", "md0"),
        ("/boot/grub", "sda1"),
        ("/etc", "nvme0n1p1"),
    ] {
        let found = find(&root, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(found.name, name, "{text}");
    }
}

#[test]
fn an_unknown_device_error_lists_the_devices() {
    let fake = server();
    let root = Root::at(fake.root());
    let error = find(&root, "sdq").unwrap_err();
    assert!(matches!(error, FindError::None { .. }));
    let message = error.to_string();
    assert!(message.starts_with("there is no block device `sdq`; there are dm-0, dm-1, loop0, md0"), "{message}");
    // Empty devices and partitions are not suggested.
    assert!(!message.contains("loop1") && !message.contains("sda1"), "{message}");
    let message = find(&root, "/run/lock").unwrap_err().to_string();
    assert_eq!(message, "/run/lock: the file is on no block device but on tmpfs at /run");
    assert!(matches!(find(&root, "").unwrap_err(), FindError::None { .. }));
    assert!(matches!(find(&root, "/dev/nothing").unwrap_err(), FindError::None { .. }));
}

#[test]
fn a_missing_sysfs_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let message = devices(&Root::at(folder.path())).unwrap_err().to_string();
    assert!(message.contains("/sys/block") && message.contains("sysfs has to be mounted"), "{message}");
}

#[test]
fn processes_that_have_a_device_open_are_listed() {
    let fake = server();
    let devices = read(&fake);
    let openers = openers(&Root::at(fake.root()), one(&devices, "sda"));
    let found: Vec<(u32, &str)> = openers.iter().map(|opener| (opener.pid, opener.comm.as_str())).collect();
    assert_eq!(found, [(901, "qemu-system-x86"), (812, "smartd")]);
}

#[test]
fn this_machine_can_be_read() {
    let root = Root::machine();
    let Ok(devices) = devices(&root) else {
        eprintln!("skipped: this machine has no sysfs");
        return;
    };
    for device in &devices {
        assert_eq!(find(&root, &device.name).expect("it is still there").number, device.number);
        assert!(device.disk.is_some() || device.queue.is_some(), "{}", device.name);
    }
}

#[test]
fn a_file_of_this_machine_leads_to_its_device() {
    let root = Root::machine();
    let folder = tempfile::tempdir().unwrap();
    match find(&root, folder.path().to_str().unwrap()) {
        Ok(device) => assert!(device.mounts.iter().any(|mount| folder.path().starts_with(&mount.at))),
        Err(FindError::NoDevice { at, .. }) => assert!(folder.path().starts_with(at)),
        Err(FindError::Unknown { what, .. }) => assert!(what.contains("not among those")),
        Err(error) => panic!("{error}"),
    }
    let message = find(&root, "/dev/null").unwrap_err().to_string();
    assert_eq!(message, "/dev/null: this is a character device");
}

#[test]
fn a_multipath_device_schedules_for_its_paths() {
    let fake = array();
    let (root, devices) = (Root::at(fake.root()), read(&fake));
    let names = |found: Vec<&BlockDevice>| found.iter().map(|device| device.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(queues_below(&root, &devices, one(&devices, "dm-1"))), ["dm-0"]);
    assert_eq!(names(queues_below(&root, &devices, one(&devices, "dm-0"))), ["dm-0"]);
    assert_eq!(names(drives_below(&root, &devices, one(&devices, "dm-1"))), ["sda", "sdb"]);
    assert_eq!(names(all_below(&root, &devices, one(&devices, "dm-1"))), ["dm-1", "dm-0", "sda", "sdb"]);
    // A multipath device that passes bios on has no scheduler; its paths schedule.
    fake.file("/sys/devices/virtual/block/dm-0/queue/scheduler", "none\n");
    let devices = read(&fake);
    assert_eq!(names(queues_below(&root, &devices, one(&devices, "dm-1"))), ["sda", "sdb"]);
}

#[test]
fn hidden_paths_and_transport_of_an_nvme_drive_are_read() {
    let fake = array();
    let (root, devices) = (Root::at(fake.root()), read(&fake));
    let drive = one(&devices, "nvme0n1");
    assert_eq!(hidden_paths(&root, drive), ["nvme0c0n1", "nvme0c1n1"]);
    assert_eq!(drive.identity.transport, Some(Transport::Fabrics));
    let fake = server();
    let (root, devices) = (Root::at(fake.root()), read(&fake));
    // The only path is called nvme0c0n1.
    assert_eq!(hidden_paths(&root, one(&devices, "sda")), Vec::<String>::new());
    assert_eq!(one(&devices, "nvme0n1").identity.transport, Some(Transport::Pcie));
}
