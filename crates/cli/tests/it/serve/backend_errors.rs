//! Backends that fail while they are served: a file that is cut off or grows, a full file system, a
//! device with unreadable sectors. Clients get the error, and the log names it.

use std::fs::OpenOptions;
use std::process::Command;

use hoistway_nbd::wire::Errno;

use super::client::Client;
use super::server::{Server, ctl, get, write_pattern};
use crate::common::Folder;

const KIB: u64 = 1024;

fn skipped(why: &str) {
    eprintln!("SKIPPED: {}", why.trim());
}

/// Changes the length of a file while it is served.
fn set_length(server: &Server, bytes: u64) {
    let disk = OpenOptions::new().write(true).open(server.folder.path("disk")).expect("the disk is there");
    disk.set_len(bytes).expect("there is room");
}

fn length(server: &Server) -> u64 {
    std::fs::metadata(server.folder.path("disk")).expect("the disk is there").len()
}

/// Serves a file of 1 MiB by each engine, with and without direct I/O.
fn on_every_engine(test: impl Fn(Server)) {
    for engine in ["uring", "threads"] {
        for direct in ["", ",direct=no"] {
            let folder = Folder::new();
            write_pattern(&folder.path("disk"), 1 << 20);
            test(Server::start_in(folder, &["--export", &format!("=FOLDER/disk{direct}"), "--engine", engine]));
        }
    }
}

#[track_caller]
fn error_of<T: std::fmt::Debug>(result: Result<T, (Errno, String)>) -> Errno {
    result.expect_err("the data are lost").0
}

#[test]
fn data_that_were_cut_off_are_errors_and_not_zeroes() {
    on_every_engine(|server| {
        let mut client = Client::of(&server.socket(), "");
        client.write(512 * KIB, &[7; 4096]).expect("it can be written");
        client.flush().expect("it is durable");
        set_length(&server, 64 * KIB);
        assert_eq!(error_of(client.read(512 * KIB, 4096)), Errno::Io);
        assert_eq!(error_of(client.read(62 * KIB, 4096)), Errno::Io, "a read across the end");
        assert_eq!(error_of(client.read(512 * KIB + 100, 100)), Errno::Io, "an unaligned read");
        assert_eq!(client.read(60 * KIB, 4096).expect("these bytes are left"), vec![15; 4096]);
        // A write would leave a hole of zeroes before it.
        assert_eq!(error_of(client.write(900 * KIB, &[1; 4096])), Errno::Io);
        assert_eq!(error_of(client.write(900 * KIB + 100, &[1; 100])), Errno::Io);
        assert_eq!(length(&server), 64 * KIB);
        client.write(0, &[2; 4096]).expect("these bytes are left");
        assert_eq!(error_of(client.flush()), Errno::Io);
        let number = ctl(&server, &["ls", "clients"]).out.trim_end().trim_end_matches('/').to_owned();
        assert_eq!(
            get(&server, &format!("clients/{number}/stat")),
            "requests=10 in_flight=0 rbytes=4096 wbytes=8192",
            "failed requests have no bytes"
        );
        // Bytes that come back are not the ones that were lost.
        set_length(&server, 1 << 20);
        assert_eq!(error_of(client.write(900 * KIB, &[1; 4096])), Errno::Io);
        assert_eq!(error_of(client.read(512 * KIB, 4096)), Errno::Io);
        drop(client);
        let (code, log) = server.end();
        assert_eq!(code, Some(1), "the flush at the end fails: {log}");
        let lines = [
            "shrank from 1048576 to 65536 bytes: requests beyond byte 65536 and all flushes fail with EIO",
            "grew from 65536 to 1048576 bytes: its data beyond byte 65536 were lost",
            "read of 4096 bytes at byte 524288 failed",
            "write of 4096 bytes at byte 921600 failed",
        ];
        lines.iter().for_each(|line| assert!(log.contains(line), "`{line}` is missing in:\n{log}"));
    });
}

#[test]
fn a_write_does_not_hide_that_data_were_cut_off() {
    on_every_engine(|server| {
        let mut client = Client::of(&server.socket(), "");
        client.flush().expect("it is durable");
        set_length(&server, 0);
        // This write would make the file as long as it was.
        assert_eq!(error_of(client.write((1 << 20) - 4096, &[1; 4096])), Errno::Io);
        assert_eq!(error_of(client.read(0, 4096)), Errno::Io);
        assert_eq!((length(&server), error_of(client.flush())), (0, Errno::Io));
        drop(client);
        server.end();
    });
}

#[test]
fn a_file_that_grows_keeps_its_size_in_the_export() {
    let folder = Folder::new();
    write_pattern(&folder.path("disk"), 1 << 20);
    let server = Server::start_in(folder, &["--export", "=FOLDER/disk"]);
    let mut client = Client::of(&server.socket(), "");
    set_length(&server, 2 << 20);
    client.write(4096, &[9; 4096]).expect("it can be written");
    assert_eq!(client.read(4096, 4096).expect("it can be read"), vec![9; 4096]);
    client.flush().expect("it can be flushed");
    assert_eq!(Client::of(&server.socket(), "").nbd.session.info.size, 1 << 20);
    drop(client);
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    let grown = "grew from 1048576 to 2097152 bytes: the device keeps its 1048576 bytes until it is opened again";
    assert_eq!(log.matches(grown).count(), 1, "{log}");
}

/// A file system of 1 MiB in memory, unmounted on drop.
struct SmallFileSystem(std::path::PathBuf);

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_logged_once_and_clients_get_enospc() {
    if !rustix::process::geteuid().is_root() {
        return skipped("a small tmpfs needs root");
    }
    let folder = Folder::new();
    let at = folder.path("small");
    std::fs::create_dir(&at).expect("it is ours");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&at).output();
    match mounted {
        Ok(output) if output.status.success() => {}
        other => return skipped(&format!("no tmpfs can be mounted: {other:?}")),
    }
    let _small = SmallFileSystem(at.clone());
    let disk = std::fs::File::create(at.join("disk")).expect("it is ours");
    disk.set_len(8 << 20).expect("it is sparse");
    drop(disk);
    for engine in ["uring", "threads"] {
        let export = format!("={}", at.join("disk").display());
        let server = Server::start(&["--export", &export, "--engine", engine]);
        let mut client = Client::of(&server.socket(), "");
        let errors: Vec<Errno> =
            (0..64).filter_map(|at| client.write(at << 16, &[1; 1 << 16]).err()).map(|error| error.0).collect();
        assert!(errors.len() > 40 && errors.iter().all(|errno| *errno == Errno::NoSpc), "{errors:?}");
        assert_eq!(client.read(0, 4096).expect("the first blocks were written"), vec![1; 4096]);
        drop(client);
        let (_, log) = server.end();
        let line = "failed: No space left on device (os error 28); the client gets ENOSPC";
        assert_eq!(log.matches(line).count(), 1, "one line a minute is allowed: {log}");
        assert!(log.contains("write of 65536 bytes at byte"), "{log}");
    }
}

#[test]
fn an_unreadable_device_is_logged_and_clients_get_eio() {
    if !rustix::process::geteuid().is_root() {
        return skipped("loop devices need root");
    }
    let folder = Folder::new();
    write_pattern(&folder.path("image"), 1 << 20);
    let attached = Command::new("losetup").args(["-f", "--show", &folder.name("image")]).output();
    let device = match attached {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        other => return skipped(&format!("no loop device: {other:?}")),
    };
    let server = Server::start(&["--export", &format!("={device}")]);
    let mut client = Client::of(&server.socket(), "");
    assert_eq!(client.read(4096, 4096).expect("it can be read"), vec![1; 4096]);
    // The device keeps its size, and its second half has no storage any more.
    let image = OpenOptions::new().write(true).open(folder.path("image")).expect("it is ours");
    image.set_len(512 * KIB).expect("it becomes shorter");
    let errno = client.read(768 * KIB, 4096).err().map(|error| error.0);
    drop(client);
    let (_, log) = server.end();
    let _ = Command::new("losetup").args(["-d", &device]).status();
    assert_eq!(errno, Some(Errno::Io), "{log}");
    assert!(log.contains("read of 4096 bytes at byte 786432 failed: Input/output error (os error 5)"), "{log}");
}
