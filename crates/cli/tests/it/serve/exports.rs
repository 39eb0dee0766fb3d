//! Exports: extents of devices, read-only exports, and exports of certain tenants.

use hoistway_nbd::client::{Goal, HandshakeOptions, ReplyContent};
use hoistway_nbd::server::Replies;
use hoistway_nbd::wire::{Command, CommandFlags, Errno};

use super::client::{Client, Led, shake_hands, wants};
use super::server::{Server, write_pattern};
use crate::common::Folder;

const KIB: u64 = 1024;

#[test]
fn two_exports_of_one_file_share_its_device() {
    let folder = Folder::new();
    write_pattern(&folder.path("disk"), 1 << 20);
    let server = Server::start_in(
        folder,
        &["--export", "whole=FOLDER/disk", "--export", "part=FOLDER/disk,offset=64k,size=128k"],
    );
    let (mut whole, mut part) = (Client::of(&server.socket(), "whole"), Client::of(&server.socket(), "part"));
    assert_eq!((whole.nbd.session.info.size, part.nbd.session.info.size), (1 << 20, 128 * KIB));
    assert_eq!(part.read(4096, 4096).expect("it lies within"), vec![17; 4096]);
    whole.write(64 * KIB + 100, b"by the other way").expect("it can be written");
    assert_eq!(part.read(100, 16).expect("it lies within"), b"by the other way");
    part.write(0, &[9; 512]).expect("it can be written");
    part.flush().expect("it can be flushed");
    assert_eq!(whole.read(64 * KIB, 512).expect("it lies within"), vec![9; 512]);
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log.matches("opened device").count(), 1, "{log}");
}

#[test]
fn requests_beyond_the_end_of_an_export_fail() {
    let server = Server::start(&["--export", "=mem:1M", "--export", "part=mem:1M,size=64k"]);
    let mut client = Client::of(&server.socket(), "");
    let flags = CommandFlags::default();
    let mut out = Vec::new();
    client.nbd.request_unchecked(Command::Read, 0, (1 << 20) - 512, 1024, &mut out);
    client.nbd.request_unchecked(Command::Trim, 0, 1 << 20, 512, &mut out);
    client.stream.write_all(&out).expect("the server takes it");
    let errors: Vec<_> =
        client.answers(2).into_iter().map(|answer| answer.result.expect_err("it is beyond").0).collect();
    assert_eq!(errors, [Errno::Inval, Errno::Inval]);
    assert_eq!(client.command(Command::Flush, flags, 0, 0), Ok(ReplyContent::Nothing));
}

#[test]
fn a_read_only_export_is_read_and_not_written() {
    let folder = Folder::new();
    write_pattern(&folder.path("disk"), 64 << 10);
    let server = Server::start_in(folder, &["--export", "=FOLDER/disk,read-only=true"]);
    let mut client = Client::of(&server.socket(), "");
    assert_eq!(client.read(4096, 1).expect("it can be read"), [1]);
    let mut out = Vec::new();
    client.nbd.request_unchecked(Command::WriteZeroes, 0, 0, 4096, &mut out);
    client.stream.write_all(&out).expect("the server takes it");
    let refused = client.answers(1).remove(0).result.expect_err("it is read-only");
    assert_eq!(refused.0, Errno::Perm);
    assert_eq!(client.read(0, 4096).expect("it can be read"), vec![0; 4096]);
}

#[test]
fn a_tenant_sees_only_its_own_exports() {
    let folder = Folder::new();
    let uid = rustix::process::getuid().as_raw();
    folder.file(
        "config.toml",
        format!(
            "[[device]]\nname = \"memory\"\nbackend = \"mem:1M\"\n\
             [[export]]\nname = \"mine\"\ndevice = \"memory\"\ntenants = [\"me\"]\ndescription = \"for me\"\n\
             [[export]]\nname = \"theirs\"\ndevice = \"memory\"\ntenants = [\"they\"]\n\
             [[export]]\nname = \"everybody's\"\ndevice = \"memory\"\n\
             [[tenant]]\nname = \"they\"\nuid = {}\n\
             [[tenant]]\nname = \"me\"\nuid = {uid}\n",
            uid + 1
        ),
    );
    let server = Server::start_in(folder, &["--config", "FOLDER/config.toml"]);
    let list = HandshakeOptions { goal: Goal::List, ..wants("") };
    let Ok(Led::Over(findings)) = shake_hands(&server.socket(), list, None) else {
        panic!("a list ends the handshake")
    };
    let named = |name: &str, description: &str| (name.to_owned(), description.to_owned());
    assert_eq!(findings.exports, [named("mine", "for me"), named("everybody's", "")]);
    Client::of(&server.socket(), "mine").write(0, &[1; 512]).expect("it is mine");
    assert!(shake_hands(&server.socket(), wants("theirs"), None).is_err());
    let (code, log) = server.end();
    assert_eq!(code, Some(0));
    assert!(log.contains("tenant=\"me\""), "{log}");
}

#[test]
fn every_command_works_with_every_form_of_replies() {
    let server = Server::start(&["--export", "=mem:4M"]);
    for replies in [Replies::Simple, Replies::Structured, Replies::Extended] {
        let contexts = if replies == Replies::Simple { Vec::new() } else { wants("").contexts };
        let mut client = Client::with(&server.socket(), HandshakeOptions { replies, contexts, ..wants("") });
        assert_eq!(client.nbd.session.replies, replies);
        let none = CommandFlags::default();
        let data: Vec<u8> = (0..100_000).map(|at| (at % 249) as u8 + 1).collect();
        client.write(12_345, &data).expect("it can be written");
        assert_eq!(client.read(12_345, 100_000).expect("it can be read"), data, "{replies:?}");
        assert_eq!(client.read(2 << 20, 4096).expect("it can be read"), vec![0; 4096], "{replies:?}");
        let one_piece = CommandFlags { dont_fragment: replies != Replies::Simple, ..none };
        assert_eq!(
            client.command(Command::Read, one_piece, 12_345, 1000),
            Ok(ReplyContent::Data(data[..1000].to_vec())),
            "{replies:?}"
        );
        for flags in [none, CommandFlags { fua: true, ..none }, CommandFlags { no_hole: true, ..none }] {
            client.write(64 << 10, &[7; 4096]).expect("it can be written");
            assert_eq!(client.command(Command::WriteZeroes, flags, 64 << 10, 4096), Ok(ReplyContent::Nothing));
            assert_eq!(client.read(64 << 10, 4096).expect("it can be read"), vec![0; 4096], "{replies:?}");
        }
        for command in [Command::Trim, Command::Cache] {
            assert_eq!(client.command(command, none, 0, 4096), Ok(ReplyContent::Nothing), "{replies:?}");
        }
        assert_eq!(client.command(Command::Flush, none, 0, 0), Ok(ReplyContent::Nothing));
        if replies != Replies::Simple {
            let Ok(ReplyContent::Extents(contexts)) = client.command(Command::BlockStatus, none, 2 << 20, 1 << 20)
            else {
                panic!("no extents in {replies:?}");
            };
            let (name, extents) = &contexts[0];
            assert_eq!(name, "base:allocation");
            assert!(extents[0].length >= 1 << 20 && extents[0].flags == 3, "{extents:?}");
        }
        client.send(Command::Disconnect, none, 0, 0, &[]);
        assert!(client.is_closed(), "a client that says goodbye is let go");
    }
}
