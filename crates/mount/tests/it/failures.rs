//! Failures: a killed server, a full or broken disk, killed clients, many clients, unsuitable mount
//! points.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hoistway_mount::{FILE_SYSTEM, MountError, MountOptions, Options, Session, Unmounted, Unscheduled, WriteBack};

use crate::support::{
    LONG, MountProcess, MountVariant, Mounted, Parking, Volume, can_mount, drop_inode_caches, has, hold, run, scratch,
    unmount, wait_until,
};

fn variants() -> [MountVariant; 4] {
    [WriteBack::Ours, WriteBack::Kernel]
        .map(|variant| [MountVariant::open(variant), MountVariant::waiting(variant)])
        .concat()
        .try_into()
        .expect("four")
}

#[test]
fn synced_data_survive_a_killed_server() {
    if !can_mount("killing a mount") {
        return;
    }
    for variant in variants() {
        let place = scratch();
        let mut mounted = MountProcess::new(place.path(), variant);
        let stop = Arc::new(AtomicBool::new(false));
        let counts: [Arc<AtomicU64>; 4] = Default::default();
        let writers: Vec<_> = (0..)
            .zip(counts.clone())
            .map(|(number, synced)| {
                let (path, stop) = (mounted.path().join(format!("log-{number}")), stop.clone());
                std::thread::spawn(move || write_synced_records(&path, number, &stop, &synced))
            })
            .collect();
        wait_until("each writer has synced two records", || {
            counts.iter().all(|synced| synced.load(Ordering::SeqCst) >= 2)
        });
        mounted.kill();
        stop.store(true, Ordering::Relaxed);
        for (number, (writer, synced)) in writers.into_iter().zip(counts).enumerate() {
            writer.join().expect("no panic");
            let synced = synced.load(Ordering::SeqCst);
            let found = fs::read(place.path().join(format!("log-{number}"))).expect("it is there");
            assert!(synced >= 2, "{variant:?}: {synced} records were synced");
            for record in 0..synced {
                let expected = record_of(number as u64, record);
                let at = record as usize * expected.len();
                assert!(
                    found.get(at..at + expected.len()) == Some(&expected[..]),
                    "{variant:?}: record {record} of {synced} is lost"
                );
            }
        }
        // Clients get an error, and the directory can be mounted again.
        let reported = fs::read_dir(mounted.path()).map(drop).unwrap_err().raw_os_error();
        assert_eq!(reported, Some(libc::ENOTCONN));
    }
}

fn record_of(writer: u64, record: u64) -> Vec<u8> {
    (0..512u64).flat_map(|word| (writer << 56 ^ record << 16 ^ word).to_le_bytes()).collect()
}

/// Writes and syncs records until that fails, and counts them in `synced`.
fn write_synced_records(path: &Path, writer: u64, stop: &AtomicBool, synced: &AtomicU64) {
    let mut file = File::create(path).expect("it is created");
    while !stop.load(Ordering::Relaxed) {
        let record = record_of(writer, synced.load(Ordering::SeqCst));
        if file.write_all(&record).and_then(|()| file.sync_data()).is_err() {
            return;
        }
        synced.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_dead_mount_is_reported_and_can_be_removed() {
    if !can_mount("cleaning a dead mount") {
        return;
    }
    let place = scratch();
    let mut dead = MountProcess::new(place.path(), MountVariant::open(WriteBack::Ours));
    dead.kill();
    let mount = |clean| {
        Session::mount(
            place.path(),
            dead.path(),
            Arc::new(Unscheduled),
            Options::default(),
            &MountOptions { clean, ..MountOptions::default() },
        )
    };
    let refused = mount(false).map(drop).expect_err("a dead mount occupies the mount point");
    assert!(matches!(refused, MountError::Dead { .. }), "{refused}");
    assert!(refused.to_string().contains("umount"), "{refused}");
    let session = mount(true).expect("it is cleaned");
    fs::write(dead.path().join("a"), "x").expect("it works");
    assert_eq!(session.unmount(LONG).expect("it goes"), Unmounted::Clean);
    assert_eq!(fs::read(place.path().join("a")).expect("it is there"), b"x");
}

#[test]
fn a_full_disk_is_reported_and_no_data_are_lost() {
    if !can_mount("a full disk") || !has("a full disk", "mkfs.ext4") {
        return;
    }
    for variant in variants() {
        let volume = Volume::new("ext4", 16);
        let mounted = MountProcess::new(&volume.path(), variant);
        let path = mounted.path().join("much");
        let mut file = File::create(&path).expect("it is created");
        let piece = vec![b'x'; 100_000];
        let (mut written, mut reported) = (0u64, None);
        while reported.is_none() && written < 64 << 20 {
            match file.write(&piece) {
                Ok(more) => written += more as u64,
                Err(error) => reported = error.raw_os_error(),
            }
        }
        // With the kernel's write-back cache the error may appear only at fsync.
        let synced = file.sync_all().map_err(|error| error.raw_os_error());
        assert!(
            reported == Some(libc::ENOSPC) || synced == Err(Some(libc::ENOSPC)),
            "{variant:?}: {reported:?} {synced:?}"
        );
        if variant.write_back == WriteBack::Ours {
            assert_eq!(reported, Some(libc::ENOSPC), "{variant:?}");
            let found = fs::read(volume.path().join("much")).expect("it is there");
            assert!(
                found.len() as u64 == written && found.iter().all(|byte| *byte == b'x'),
                "{variant:?}: {} of {written}",
                found.len()
            );
        }
        drop(file);
        fs::remove_file(&path).expect("there is room for that");
        // The blocks are freed at the last release, which the kernel sends after the close.
        wait_until(&format!("there is room, {variant:?}"), || {
            let little = File::create(mounted.path().join("little"))
                .and_then(|mut file| file.write_all(b"y").and_then(|()| file.sync_all()));
            assert!(matches!(little.as_ref().map_err(io::Error::raw_os_error), Ok(()) | Err(Some(libc::ENOSPC))));
            little.is_ok()
        });
        drop(mounted);
        assert_eq!(fs::read(volume.path().join("little")).expect("it is there"), b"y");
    }
}

#[test]
fn users_do_not_get_reserved_blocks() {
    if !can_mount("blocks for root") || !has("blocks for root", "mkfs.ext4") {
        return;
    }
    let fill = |directory: &Path| -> u64 {
        let path = directory.join("much");
        File::create(&path)
            .and_then(|file| std::os::unix::fs::fchown(&file, Some(1234), Some(1234)))
            .expect("it is created");
        crate::support::as_user(1234, &[], || {
            let mut file = File::options().append(true).open(&path).expect("it is mine");
            let mut written = 0;
            while let Ok(more) = file.write(&[b'x'; 4096]) {
                written += more as u64;
            }
            written
        })
    };
    let (plain, through) = (Volume::new("ext4", 32), Volume::new("ext4", 32));
    let expected = fill(&plain.path());
    let mounted = MountProcess::new(&through.path(), MountVariant::open(WriteBack::Ours));
    let found = fill(mounted.path());
    assert!(found.abs_diff(expected) < 100_000, "{found} bytes through the mount, {expected} without");
}

#[test]
fn a_broken_disk_is_reported() {
    if !can_mount("a broken disk") || !has("a broken disk", "mkfs.ext4") || !has("a broken disk", "losetup") {
        return;
    }
    let place = scratch();
    let (image, at) = (place.path().join("image"), place.path().join("volume"));
    fs::create_dir(&at).expect("a directory");
    File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("an image");
    let (image_name, at_name) = (image.to_str().expect("a path"), at.to_str().expect("a path"));
    run("mkfs.ext4", &["-q", "-F", image_name]);
    run("mount", &["-o", "loop", image_name, at_name]);
    fs::write(at.join("a"), vec![7; 40 << 20]).expect("it is written");
    unmount(at_name);
    run("mount", &["-o", "loop,errors=continue", image_name, at_name]);
    let mounted = MountProcess::new(&at, MountVariant::waiting(WriteBack::Ours));
    let file = File::open(mounted.path().join("a")).expect("it opens");
    // The end of the disk below becomes unreadable.
    File::options().write(true).open(&image).and_then(|image| image.set_len(20 << 20)).expect("it is cut");
    let mut buffer = vec![0; 65_536];
    let (mut read, mut failed) = (0, 0);
    for at in (0..40 << 20).step_by(1 << 20) {
        match file.read_at(&mut buffer, at) {
            Ok(length) => {
                assert!(length == buffer.len() && buffer.iter().all(|byte| *byte == 7), "wrong data at {at}");
                read += 1;
            }
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EIO));
                failed += 1;
            }
        }
    }
    drop((file, mounted));
    run("umount", &["-l", at_name]);
    assert!(read > 0 && failed > 0, "{read} read, {failed} failed");
}

#[test]
fn clients_killed_while_waiting_leave_no_state_behind() {
    if !can_mount("clients that are killed") {
        return;
    }
    let place = scratch();
    fs::write(place.path().join("a"), vec![1; 1 << 20]).expect("it is written");
    // All requests wait, some of them for a second.
    let gate = Parking::new(1, Duration::from_secs(1));
    let mounted = Mounted::new(place.path(), gate.clone(), Options::default());
    let clients: Vec<_> = (0..20)
        .map(|number| {
            let script = format!("cat a > /dev/null; echo {number} > b-{number}; rm b-{number}");
            Command::new("sh")
                .args(["-c", &script])
                .current_dir(mounted.path())
                .stderr(Stdio::null())
                .spawn()
                .expect("the process starts")
        })
        .collect();
    wait_until("requests wait", || gate.counted.lock().expect("no panic").values().sum::<u64>() >= 20);
    for mut client in clients {
        client.kill().expect("it is killed");
        client.wait().expect("it ends");
    }
    assert_eq!(fs::read(mounted.path().join("a")).expect("the mount lives").len(), 1 << 20);
}

#[test]
fn a_thousand_processes_work_at_once() {
    if !can_mount("a thousand processes") {
        return;
    }
    let place = scratch();
    let mounted = MountProcess::new(place.path(), MountVariant::waiting(WriteBack::Ours));
    let script = "echo $0 > f-$0 && cat f-$0 > g-$0 && mv g-$0 h-$0 && rm f-$0 && ls h-$0 > /dev/null";
    let clients: Vec<_> = (0..1000)
        .map(|number| {
            Command::new("sh")
                .args(["-c", script, &number.to_string()])
                .current_dir(mounted.path())
                .spawn()
                .expect("the process starts")
        })
        .collect();
    let failed = clients
        .into_iter()
        .map(|mut client| client.wait().expect("it ends"))
        .filter(|status| !status.success())
        .count();
    assert_eq!(failed, 0);
    for number in 0..1000 {
        let found = fs::read_to_string(place.path().join(format!("h-{number}"))).expect("it is there");
        assert_eq!(found, format!("{number}\n"));
    }
    assert_eq!(fs::read_dir(place.path()).expect("a listing").count(), 1000);
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !can_mount("fio") || !has("fio", "fio") {
        return;
    }
    for variant in variants() {
        let place = scratch();
        let mounted = MountProcess::new(place.path(), variant);
        let directory = format!("--directory={}", mounted.path().display());
        for (engine, direct) in [("psync", "0"), ("mmap", "0"), ("libaio", "1")] {
            let (engine, direct) = (format!("--ioengine={engine}"), format!("--direct={direct}"));
            let shape = [
                "--name=v",
                "--rw=randrw",
                "--bsrange=4k-64k",
                "--size=16m",
                "--numjobs=2",
                "--verify=crc32c",
                "--do_verify=1",
            ];
            run(
                "fio",
                &[
                    &shape[..],
                    &[
                        "--verify_fatal=1",
                        "--verify_state_save=0",
                        "--iodepth=8",
                        "--output=/dev/null",
                        &directory,
                        &engine,
                        &direct,
                    ],
                ]
                .concat(),
            );
        }
    }
}

fn refused(source: &Path, at: &Path) -> MountError {
    Session::mount(source, at, Arc::new(Unscheduled), Options::default(), &MountOptions::default())
        .map(drop)
        .expect_err("it cannot be mounted")
}

type IsRight = fn(&MountError) -> bool;

#[test]
fn unsuitable_mount_points_are_refused_without_a_mount() {
    if !can_mount("unsuitable mount points") {
        return;
    }
    let place = scratch();
    let path = |name: &str| place.path().join(name);
    for name in ["source", "source/below", "at"] {
        fs::create_dir(path(name)).expect("a directory");
    }
    fs::write(path("file"), "").expect("a file");
    let cases: [(&str, &str, IsRight, &str); 7] = [
        ("nowhere", "at", |error| matches!(error, MountError::Source { .. }), "nowhere"),
        ("file", "at", |error| matches!(error, MountError::SourceNotDirectory(_)), "not a directory"),
        ("source", "nowhere", |error| matches!(error, MountError::MountPoint { .. }), "nowhere"),
        ("source", "file", |error| matches!(error, MountError::MountPointNotDirectory(_)), "not a directory"),
        ("source", "source/below", |error| matches!(error, MountError::Inside { .. }), "is inside the source"),
        ("source/below", "source", |error| matches!(error, MountError::Covers { .. }), "would hide it"),
        ("source", "file/x", |error| matches!(error, MountError::MountPoint { .. }), "Not a directory"),
    ];
    for (source, at, is_right, says) in cases {
        let error = refused(&path(source), &path(at));
        assert!(is_right(&error) && error.to_string().contains(says), "{source} at {at}: {error:?}: {error}");
    }
    let mounted = Mounted::new(&path("source"), Arc::new(Unscheduled), Options::default());
    let busy = refused(&path("source"), mounted.path());
    assert!(matches!(&busy, MountError::Busy { kind, .. } if kind == FILE_SYSTEM), "{busy}");
    drop(mounted);
    let left = fs::read_to_string("/proc/self/mountinfo").expect("a table");
    assert!(!left.contains(place.path().to_str().expect("a path")), "{left}");
}

#[test]
fn a_directory_may_be_mounted_over_itself() {
    if !can_mount("a mount over its source") {
        return;
    }
    let place = scratch();
    fs::write(place.path().join("a"), "below").expect("it is written");
    let gate = Parking::new(0, Duration::ZERO);
    let session =
        Session::mount(place.path(), place.path(), gate.clone(), Options::default(), &MountOptions::default())
            .expect("it mounts");
    assert_eq!(fs::read(place.path().join("a")).expect("it is seen"), b"below");
    fs::write(place.path().join("b"), "through").expect("it is written");
    assert!(gate.count(hoistway_mount::Operation::BufferedWrite) > 0);
    assert_eq!(session.unmount(LONG).expect("it goes"), Unmounted::Clean);
    assert_eq!(fs::read(place.path().join("b")).expect("it is below"), b"through");
}

#[test]
fn a_busy_mount_is_detached_after_its_grace_period() {
    if !can_mount("a busy mount") {
        return;
    }
    let place = scratch();
    let at = scratch();
    let mount = || {
        Session::mount(place.path(), at.path(), Arc::new(Unscheduled), Options::default(), &MountOptions::default())
            .expect("it mounts")
    };
    let session = mount();
    fs::write(at.path().join("a"), "x").expect("it is written");
    let open = File::open(at.path().join("a")).expect("it opens");
    let started = Instant::now();
    assert_eq!(session.unmount(Duration::from_millis(300)).expect("it goes"), Unmounted::Detached);
    assert!(started.elapsed() >= Duration::from_millis(300));
    assert_eq!(fs::read_dir(at.path()).expect("the directory below").count(), 0);
    // Open files remain usable, and the directory can be mounted again.
    assert_eq!(open.metadata().expect("it is open").len(), 1);
    let again = mount();
    drop(open);
    assert_eq!(fs::read(at.path().join("a")).expect("it is seen"), b"x");
    drop(again);
    assert_eq!(fs::read_dir(at.path()).expect("the directory below").count(), 0);
}

#[test]
fn an_external_unmount_ends_the_session() {
    if !can_mount("an external unmount") {
        return;
    }
    let (place, at) = (scratch(), scratch());
    let session =
        Session::mount(place.path(), at.path(), Arc::new(Unscheduled), Options::default(), &MountOptions::default())
            .expect("it mounts");
    unmount(at.path().to_str().expect("a path"));
    assert!(session.wait().is_ok());
}

#[test]
fn links_and_swapped_names_do_not_lead_out_of_the_source() {
    if !can_mount("links") {
        return;
    }
    let place = scratch();
    let source = place.path().join("source");
    fs::create_dir_all(source.join("d")).expect("directories");
    fs::write(source.join("d/secret"), "inside").expect("it is written");
    fs::create_dir(place.path().join("outside")).expect("a directory");
    fs::write(place.path().join("outside/secret"), "outside").expect("it is written");
    let mounted =
        Mounted::new(&source, Arc::new(Unscheduled), Options { valid: Duration::from_secs(60), ..Options::default() });
    assert_eq!(fs::read(mounted.path().join("d/secret")).expect("it is seen"), b"inside");
    // Outside the mount the directory is replaced by a link; the kernel still caches the directory,
    // because a descriptor holds it, and looks up names in it.
    let _held = hold(&mounted.path().join("d"));
    fs::rename(source.join("d"), source.join("e")).expect("it is moved");
    std::os::unix::fs::symlink(place.path().join("outside"), source.join("d")).expect("a link");
    fs::write(source.join("e/more"), "inside").expect("it is written");
    assert_eq!(fs::read(mounted.path().join("d/more")).expect("it is the directory still"), b"inside");
    assert_eq!(fs::read(mounted.path().join("d/secret")).expect("it is the file still"), b"inside");
}

#[test]
fn file_systems_below_the_source_are_visible_with_distinct_inode_numbers() {
    if !can_mount("file systems below") || !has("file systems below", "mkfs.ext4") {
        return;
    }
    for handles in [true, false] {
        let (outer, inner) = (Volume::new("ext4", 32), Volume::new("ext4", 32));
        for (volume, text) in [(&outer, "outer"), (&inner, "inner")] {
            for number in 0..20 {
                fs::write(volume.path().join(format!("f{number}")), text).expect("it is written");
            }
        }
        let below = outer.path().join("below");
        fs::create_dir(&below).expect("a directory");
        let (from, to) = (inner.path(), below.clone());
        run("mount", &["--bind", from.to_str().expect("a path"), to.to_str().expect("a path")]);
        let mounted = Mounted::new(&outer.path(), Arc::new(Unscheduled), Options { handles, ..Options::default() });
        let mut numbers = std::collections::BTreeSet::new();
        for number in 0..20 {
            for (name, text) in [(format!("f{number}"), "outer"), (format!("below/f{number}"), "inner")] {
                let path = mounted.path().join(name);
                assert_eq!(fs::read_to_string(&path).expect("it is seen"), text);
                assert!(numbers.insert(fs::metadata(&path).expect("it is seen").ino()), "a number is used twice");
            }
        }
        let moved = fs::rename(mounted.path().join("f0"), mounted.path().join("below/g")).unwrap_err();
        assert_eq!(moved.kind(), io::ErrorKind::CrossesDevices);
        drop(mounted);
        unmount(below.to_str().expect("a path"));
    }
}

#[test]
fn a_file_system_below_can_be_unmounted_once_its_inodes_are_forgotten() {
    if !can_mount("unmounting below") {
        return;
    }
    for handles in [true, false] {
        let source = scratch();
        let below = source.path().join("below");
        fs::create_dir(&below).expect("a directory");
        let at = below.to_str().expect("a path");
        run("mount", &["-t", "tmpfs", "tmpfs", at]);
        fs::create_dir(below.join("d")).and_then(|()| fs::write(below.join("d/f"), "x")).expect("it is written");
        let mounted = Mounted::new(source.path(), Arc::new(Unscheduled), Options { handles, ..Options::default() });
        assert_eq!(fs::read(mounted.path().join("below/d/f")).expect("it is seen"), b"x");
        let until = Instant::now() + LONG;
        loop {
            drop_inode_caches();
            if Command::new("umount").arg(at).stderr(Stdio::null()).status().expect("it is there").success() {
                break;
            }
            if Instant::now() > until {
                drop(mounted);
                run("umount", &["-l", at]);
                panic!("it is busy still, handles: {handles}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        // Another file system takes its place.
        run("mount", &["-t", "tmpfs", "tmpfs", at]);
        fs::write(below.join("g"), "y").expect("it is written");
        std::thread::sleep(Duration::from_millis(1100));
        assert_eq!(fs::read(mounted.path().join("below/g")).expect("it is seen"), b"y");
        drop(mounted);
        unmount(at);
    }
}
