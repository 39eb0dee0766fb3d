//! Clients of other programs: nbdinfo, nbdcopy, qemu, fio.

use std::process::{Command, Output};

use super::server::{Server, write_pattern};
use crate::common::Folder;

/// Runs a program, or prints that it is not installed.
#[track_caller]
fn tool(program: &str, args: &[&str]) -> Option<String> {
    match Command::new(program).args(args).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: {program} is not installed");
            None
        }
        Err(error) => panic!("{program}: {error}"),
        Ok(Output { status, stdout, stderr }) => {
            let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
            assert!(status.success(), "{program} {args:?} ends with {status}:\n{out}{err}");
            Some(out.into_owned())
        }
    }
}

fn disk() -> Folder {
    let folder = Folder::new();
    write_pattern(&folder.path("disk"), 8 << 20);
    folder
}

#[test]
fn nbdinfo_finds_all_exports_and_features() {
    let server = Server::start_in(disk(), &["--export", "=FOLDER/disk", "--export", "other=null:1T"]);
    let Some(out) = tool("nbdinfo", &["--json", &server.uri(0)]) else { return };
    let info: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let export = &info["exports"][0];
    assert_eq!(export["export-size"], 8 << 20);
    for ability in ["can_flush", "can_fua", "can_multi_conn", "can_trim", "can_zero", "can_df"] {
        assert_eq!(export[ability], true, "{ability}: {export}");
    }
    assert_eq!(export["contexts"], serde_json::json!(["base:allocation"]));
    let list = tool("nbdinfo", &["--list", "--json", &server.uri(0)]).expect("it is installed");
    assert_eq!(list.matches("export-name").count(), 2, "{list}");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn nbdcopy_copies_with_many_connections() {
    let server = Server::start_in(disk(), &["--export", "=FOLDER/disk", "--export", "copy=mem:8M"]);
    let back = server.folder.name("back");
    if tool("nbdcopy", &["--connections=4", &server.uri(0), &server.uri(1)]).is_none() {
        return;
    }
    tool("nbdcopy", &[&server.uri(1), &back]);
    let (disk, back) = (std::fs::read(server.folder.path("disk")), std::fs::read(back));
    assert!(disk.expect("a disk") == back.expect("a copy"), "the copy differs");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn qemu_converts_and_checks() {
    let server = Server::start_in(disk(), &["--export", "=FOLDER/disk", "--export", "copy=mem:8M"]);
    let (from, to) = (&server.uri(0), &server.uri(1));
    if tool("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", from, to]).is_none() {
        return;
    }
    tool("qemu-img", &["compare", "-f", "raw", "-F", "raw", from, to]);
    let commands =
        ["write -P 9 1M 64k", "write -z 1M 4k", "discard 2M 1M", "flush", "read -P 0 1M 4k", "read -P 9 1028k 60k"];
    let mut args = vec!["-f", "raw"];
    commands.iter().for_each(|command| args.extend(["-c", command]));
    args.push(to);
    let Some(out) = tool("qemu-io", &args) else { return };
    assert!(!out.contains("failed"), "{out}");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn fio_reads_back_what_it_wrote() {
    let server = Server::start_in(disk(), &["--export", "=FOLDER/disk"]);
    let uri = format!("--uri={}", server.uri(0));
    let args = [
        "--name=verify",
        "--ioengine=nbd",
        &uri,
        "--rw=randwrite",
        "--bsrange=512-64k",
        "--blockalign=512",
        "--iodepth=16",
        "--size=8M",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--randseed=1",
        // fio writes a file to the current folder.
        "--verify_state_save=0",
    ];
    if Command::new("fio").arg("--enghelp=nbd").output().is_ok_and(|output| !output.status.success()) {
        eprintln!("SKIPPED: fio has no nbd engine here");
        return;
    }
    tool("fio", &args);
    assert_eq!(server.end().0, Some(0));
}
