//! Uses of files and block devices, on machines made of files and on this machine.

use std::fs::{self, OpenOptions};
use std::path::Path;

use hoistway_machine::{InUse, OpenUnusedError, Root, Use, create_unused, find_use, open_unused};

use crate::fake::{Fake, array, server};

fn found(fake: &Fake, path: &str) -> Option<Use> {
    find_use(&Root::at(fake.root()), Path::new(path))
}

#[track_caller]
fn text(fake: &Fake, path: &str) -> String {
    found(fake, path).unwrap_or_else(|| panic!("{path} is not in use")).to_string()
}

#[test]
fn a_mount_of_a_device_of_its_partition_and_of_a_volume_is_found() {
    let fake = server();
    for (path, expected) in [
        ("/dev/nvme0n1p1", "/dev/nvme0n1p1 is mounted at / (ext4)"),
        ("/dev/nvme0n1", "/dev/nvme0n1p1 is mounted at / (ext4)"),
        ("/dev/sda", "/dev/sda1 is mounted at /boot (ext4)"),
        ("/dev/mapper/vg-data", "/dev/dm-1 is mounted at /srv/my data (xfs)"),
        // btrfs has a number of its own: the source of the mount names the array.
        ("/dev/md0", "/dev/md0 is mounted at /home (btrfs)"),
        ("/dev/loop0", "/dev/loop0 is mounted at /mnt/image (squashfs)"),
    ] {
        assert_eq!(text(&fake, path), expected);
    }
    let Some(used) = found(&fake, "/dev/sda1") else { panic!("it is mounted") };
    assert_eq!(used.remedy(), "unmount /boot, or only read");
    let refusal = |path: &str| InUse { path: path.into(), found: Box::new(used.clone()) }.to_string();
    let rest = "/dev/sda1 is mounted at /boot (ext4): writing to it would destroy data: unmount /boot, or only read";
    assert_eq!(refusal("/dev/sda1"), rest, "the path is named once");
    assert_eq!(refusal("/dev/sda"), format!("/dev/sda: {rest}"));
}

#[test]
fn members_of_volumes_and_arrays_are_in_use() {
    let fake = server();
    assert_eq!(text(&fake, "/dev/sda2"), "/dev/sda2 is part of /dev/dm-0 (vault)");
    assert_eq!(text(&fake, "/dev/dm-0"), "/dev/dm-0 is part of /dev/dm-1 (vg-data), which is mounted at /srv/my data");
    assert_eq!(text(&fake, "/dev/sdb"), "/dev/sdb is part of /dev/md0 (raid1), which is mounted at /home");
    assert_eq!(
        found(&fake, "/dev/sdb").map(|used| used.remedy()),
        Some("stop /dev/md0, or write to it instead".into())
    );
    // Without the link `holders`, the list of the array still names the member.
    fs::remove_file(fake.path("/sys/block/sdc/holders/md0")).expect("a link goes");
    assert_eq!(text(&fake, "/dev/sdc"), "/dev/sdc is part of /dev/md0 (raid1), which is mounted at /home");
    let paths = array();
    assert_eq!(text(&paths, "/dev/sda"), "/dev/sda is part of /dev/dm-0 (mpatha)");
    assert_eq!(found(&paths, "/dev/dm-1"), None, "a volume that is not mounted is free");
}

#[test]
fn swap_is_in_use_on_devices_and_in_files() {
    let fake = server();
    assert_eq!(text(&fake, "/dev/zram0"), "/dev/zram0 is swap space");
    assert_eq!(text(&fake, "/swapfile"), "/swapfile is swap space");
    assert_eq!(found(&fake, "/swapfile").map(|used| used.remedy()), Some("swapoff /swapfile, or only read".into()));
}

#[test]
fn the_file_behind_a_loop_device_is_in_use_in_both_directions() {
    let fake = server();
    let image = "/srv/my data/image.squashfs";
    assert_eq!(text(&fake, image), "it is behind the loop device /dev/loop0, which is mounted at /mnt/image");
    // A second loop device over the same file, and one over a disk.
    for (name, number, file) in [("loop2", "7:2", image), ("loop3", "7:3", "/dev/vda"), ("loop4", "7:4", "/dev/sda")] {
        let folder = fake.virtual_device(name, number, 409_600);
        fake.read_only_file(&format!("{folder}/loop/backing_file"), format!("{file}\n"));
    }
    assert_eq!(text(&fake, "/dev/loop2"), "it is behind the loop device /dev/loop0, which is mounted at /mnt/image");
    assert_eq!(text(&fake, "/dev/vda"), "it is behind the loop device /dev/loop3");
    assert_eq!(found(&fake, "/dev/loop3"), None, "the loop device itself is free");
    assert_eq!(text(&fake, "/dev/loop4"), "/dev/sda1 is mounted at /boot (ext4)");
}

#[test]
fn a_loop_device_over_itself_ends() {
    let fake = Fake::empty();
    for (name, number, file) in [("loop0", "7:0", "/dev/loop1"), ("loop1", "7:1", "/dev/loop0")] {
        let folder = fake.virtual_device(name, number, 8);
        fake.read_only_file(&format!("{folder}/loop/backing_file"), format!("{file}\n"));
    }
    assert_eq!(text(&fake, "/dev/loop0"), "it is behind the loop device /dev/loop1");
}

#[test]
fn a_device_below_a_hoistway_mount_is_in_use() {
    let fake = server();
    let mounts = fake.text("/proc/self/mountinfo");
    let above = r"40 25 0:60 / /srv/my\040data rw,nosuid - fuse.hoistway hoistway rw";
    fake.file("/proc/self/mountinfo", format!("{mounts}\n{above}\n"));
    assert_eq!(text(&fake, "/dev/dm-1"), "/dev/dm-1 is mounted at /srv/my data (xfs, below a hoistway mount)");
}

#[test]
fn other_devices_and_files_are_free() {
    let fake = server();
    for path in ["/dev/nbd0", "/dev/vda", "/dev/sr0", "/srv/my data/other.img", "/nothing", "/dev/nothing"] {
        assert_eq!(found(&fake, path), None, "{path}");
    }
    // A second partition beside a mounted one.
    let folder = fake.path("/sys/block/nvme0n1");
    let folder = fs::canonicalize(folder).expect("a folder");
    let folder = Root::at(fs::canonicalize(fake.root()).expect("a folder")).machine_path(&folder);
    fake.partition(folder.to_str().expect("UTF-8"), "nvme0n1p2", (2, "259:2"), 2048);
    assert_eq!(found(&fake, "/dev/nvme0n1p2"), None);
}

#[test]
fn files_of_this_machine_are_opened_and_created() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("disk");
    let missing = open_unused(&path, OpenOptions::new().write(true), 0, false);
    assert!(matches!(missing, Err(OpenUnusedError::System(error)) if error.kind() == std::io::ErrorKind::NotFound));
    fs::write(&path, "contents").expect("a file");
    let opened = open_unused(&path, OpenOptions::new().write(true), 0, false).expect("it is free");
    assert_eq!((opened.overridden, opened.file.metadata().expect("a file").len()), (None, 8));
    assert_eq!(create_unused(&path).expect("it is free").metadata().expect("a file").len(), 0);
}
