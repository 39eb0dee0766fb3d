//! Tests of processes and control groups, on machines made of files and on this machine.

use std::process::Command;

use crate::fake::{Fake, server};
use hoistway_machine::priority::{self, PriorityTarget};
use hoistway_machine::{
    Class, CpuPolicy, DeviceUse, Priority, Root, device_use, devices, find, io_weight, is_cost_enabled, policies,
    process,
};

fn root(fake: &Fake) -> Root {
    Root::at(fake.root())
}

#[test]
fn a_process_is_read_from_its_files() {
    let fake = server();
    fake.read_only_file(
        "/proc/901/io",
        "rchar: 5\nwchar: 6\nsyscr: 7\nsyscw: 8\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 0\n",
    );
    let found = process(&root(&fake), 901).unwrap();
    assert_eq!((found.comm.as_str(), found.uid, found.cgroup.as_str()), ("qemu-system-x86", 1000, "/"));
    assert_eq!(found.command, ["/usr/bin/qemu-system-x86", "--all"]);
    assert_eq!((found.nice, found.policy, found.priority), (0, CpuPolicy::Normal, Priority::UNSET));
    assert_eq!(found.moved_bytes, Some((4096, 8192)));
    assert_eq!(process(&root(&fake), 4242).unwrap_err().to_string(), "process 4242: there is no such process");
}

#[test]
fn a_process_uses_the_devices_of_its_files_directory_and_program() {
    let fake = server();
    fake.link("/proc/901/cwd", "/home");
    fake.link("/proc/901/exe", "/usr/bin/qemu");
    fake.link("/proc/901/fd/7", "/run/lock (deleted)");
    let devices = devices(&root(&fake)).unwrap();
    let found = device_use(&root(&fake), &devices, 901);
    assert!(found.all_seen);
    let of = |device: &str, open_files, working_directory, program| DeviceUse {
        device: device.to_owned(),
        open_files,
        working_directory,
        program,
    };
    let expected = [
        of("dm-1", 1, false, false),
        of("sda", 1, false, false),
        of("md0", 0, true, false),
        of("nvme0n1p1", 0, false, true),
    ];
    assert_eq!(found.devices, expected);
    // A socket and a file in memory are on no device, and a missing process uses none.
    assert_eq!(device_use(&root(&fake), &devices, 4242).devices, []);
}

#[test]
fn policies_are_read_from_the_group_and_its_ancestors() {
    let fake = server();
    let group = "/sys/fs/cgroup/system.slice/backup.service";
    fake.file(&format!("{group}/io.weight"), "default 50\n8:0 30\n");
    fake.file(&format!("{group}/io.prio.class"), "idle\n");
    fake.file(&format!("{group}/io.latency"), "8:0 target=5000\n");
    fake.file("/sys/fs/cgroup/system.slice/io.bfq.weight", "default 300\n");
    fake.file("/sys/fs/cgroup/system.slice/io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=max\n");
    fake.file("/sys/fs/cgroup/system.slice/io.prio.class", "no-change\n");
    fake.file("/sys/fs/cgroup/io.cost.qos", "8:0 enable=1 ctrl=auto\n8:16 enable=0\n");
    let root = root(&fake);
    let (sda, sdb) = (find(&root, "sda").unwrap().number, find(&root, "sdb").unwrap().number);
    let found = policies(&root, "/system.slice/backup.service", sda);
    assert_eq!(found.len(), 2);
    assert_eq!(
        (found[0].weight, found[0].prio_class.as_deref(), found[0].latency_us),
        (Some(30), Some("idle"), Some(5000))
    );
    assert_eq!((found[1].bfq_weight, found[1].prio_class.as_deref()), (Some(300), None));
    assert_eq!(found[1].max.as_deref(), Some("rbps=1048576 wbps=max riops=max wiops=max"));
    let found = policies(&root, "/system.slice/backup.service", sdb);
    assert_eq!((found[0].weight, found[0].latency_us, found[1].max.as_deref()), (Some(50), None, None));
    assert_eq!((is_cost_enabled(&root, sda), is_cost_enabled(&root, sdb)), (true, false));
    assert_eq!(io_weight(&root, "/system.slice/backup.service"), Some(50));
    assert_eq!(io_weight(&root, "/system.slice"), None);
    assert_eq!(policies(&root, "/", sda), []);
}

#[test]
fn version_one_of_control_groups_is_read_too() {
    let fake = server();
    fake.file("/sys/fs/cgroup/blkio/docker/x/blkio.bfq.weight", "700\n");
    fake.file("/sys/fs/cgroup/blkio/docker/x/blkio.prio.class", "restrict-to-be\n");
    let root = root(&fake);
    let found = policies(&root, "/docker/x", find(&root, "sda").unwrap().number);
    assert_eq!(
        (found.len(), found[0].bfq_weight, found[0].prio_class.as_deref()),
        (1, Some(700), Some("restrict-to-be"))
    );
}

#[test]
fn the_priority_of_another_process_is_set_and_read() {
    let mut child = Command::new("sleep").arg("60").spawn().expect("sleep starts");
    let set = priority::set(PriorityTarget::Process(child.id()), Priority::new(Class::BestEffort, 6));
    let found = process(&Root::machine(), child.id());
    child.kill().and_then(|()| child.wait()).expect("it ends");
    set.expect("the child belongs to this user");
    assert_eq!(found.unwrap().priority.to_string(), "best-effort: prio 6");
    let gone = priority::get(PriorityTarget::Process(child.id())).unwrap_err().to_string();
    assert!(gone.ends_with("there is no such process"), "{gone}");
}
