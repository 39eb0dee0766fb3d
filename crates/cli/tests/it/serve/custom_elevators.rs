//! Servers with custom elevators: a correct one, and ones that break rules.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use hoistway_nbd::client::{ReplyContent, RequestSpec};
use hoistway_nbd::wire::{Command, CommandFlags};
use rustix::process::Signal;

use super::client::Client;
use super::server::Server;
use super::watch::scrape_until;
use crate::common::{Folder, PATIENCE, Ran, example, run};

const BLOCK: u64 = 4096;
/// The number of requests of a client that are in progress at a time.
const REQUESTS: u64 = 32;

/// A drive that takes one command at a time, and one that takes many.
const DISK: &str = "sata-7200-2006";
const SSD: &str = "ssd-sata-consumer";

/// Starts a server of an example program with a file behind an emulated drive and two exports.
fn start(program: &str, elevator: &str, drive: &str, more: &[&str]) -> Server {
    let folder = Folder::new();
    folder.file("disk", vec![0; 8 << 20]);
    let here = folder.path("").display().to_string();
    folder.file(
        "config.toml",
        format!(
            "[control]\nsocket = \"control\"\n[[device]]\nname = \"sda\"\nbackend = \"file:{here}disk\"\n\
             elevator = \"{elevator}\"\ndrive = \"{drive}\"\ndepth = 2\n\
             [[export]]\nname = \"left\"\ndevice = \"sda\"\nsize = \"4M\"\n\
             [[export]]\nname = \"right\"\ndevice = \"sda\"\noffset = \"4M\"\n"
        ),
    );
    let args = [&["--config", "FOLDER/config.toml"], more].concat();
    Server::start_program(&example(program), folder, &args)
}

fn ctl(server: &Server, args: &[&str]) -> Ran {
    let control = server.folder.name("control");
    run(&[&["ctl"], args, &["--control", control.as_str()]].concat())
}

#[track_caller]
fn get(server: &Server, path: &str) -> String {
    let ran = ctl(server, &["get", path]);
    assert_eq!(ran.code, Some(0), "{path}: {}", ran.err);
    ran.out.trim_end().to_owned()
}

/// The contents of a block, which differ from those of all others.
fn block(export: usize, round: u64, number: u64) -> Vec<u8> {
    let tag = [export as u64, round, number].map(u64::to_le_bytes).concat();
    tag.iter().copied().cycle().take(BLOCK as usize).collect()
}

/// The offset of a block: neighbours in time are far from one another on the disk.
fn offset(number: u64) -> u64 {
    number * 29 % REQUESTS * 16 * BLOCK
}

/// Writes blocks by two clients, all at once, and reads them back the same way. Each request must
/// be answered exactly once, and each block have the data of its last write.
#[track_caller]
fn write_and_verify(server: &Server, round: u64) {
    let mut clients = ["left", "right"].map(|export| Client::of(&server.socket(), export));
    for command in [Command::Write, Command::Read] {
        let mut sent = [const { Vec::new() }; 2];
        for number in 0..REQUESTS {
            for (at, client) in clients.iter_mut().enumerate() {
                let data = if command == Command::Write { block(at, round, number) } else { Vec::new() };
                sent[at].push(client.send(command, CommandFlags::default(), offset(number), BLOCK, &data));
            }
        }
        for (at, client) in clients.iter_mut().enumerate() {
            let mut answers = client.answers(REQUESTS as usize);
            answers.sort_by_key(|answer| answer.cookie);
            let cookies: Vec<u64> = answers.iter().map(|answer| answer.cookie).collect();
            assert_eq!(cookies, sent[at], "each request has one reply");
            for (number, answer) in (0..).zip(answers) {
                let content = answer.result.unwrap_or_else(|error| panic!("block {number}: {error:?}"));
                if command == Command::Read {
                    assert!(content == ReplyContent::Data(block(at, round, number)), "block {number} has other data");
                }
            }
        }
    }
}

#[test]
fn a_server_runs_a_custom_elevator_and_switches_to_and_from_it() {
    let kept = tempfile::tempdir().expect("a folder");
    let trace = kept.path().join("trace").display().to_string();
    let server = start("my-hoistway", "slices", DISK, &["--record", &trace]);
    for (round, elevator) in ["slices", "bfq", "slices", "noop"].into_iter().enumerate() {
        let set = ctl(&server, &["set", "devices/sda/queue/scheduler", elevator]);
        assert_eq!(set.code, Some(0), "{}", set.err);
        assert!(get(&server, "devices/sda/queue/scheduler").contains(&format!("[{elevator}]")));
        write_and_verify(&server, round as u64);
        assert_eq!(get(&server, "devices/sda/violation"), "-");
    }
    ctl(&server, &["set", "devices/sda/queue/scheduler", "slice"]).refused(1, &["did you mean \"slices\"?"]);
    assert_eq!(ctl(&server, &["set", "devices/sda/queue/scheduler", "slices"]).code, Some(0));
    assert_eq!(get(&server, "devices/sda/queue/iosched/slice_ms"), "100");
    assert_eq!(ctl(&server, &["set", "devices/sda/queue/iosched/slice_ms", "20"]).code, Some(0));
    assert_eq!(get(&server, "devices/sda/queue/iosched/slice_ms"), "20");
    ctl(&server, &["set", "devices/sda/queue/iosched/slice_ms", "2000"]).refused(1, &["1 to 1000"]);
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("broke a rule"), "{log}");
    let described = run(&["trace", "describe", &trace]);
    assert_eq!(described.code, Some(0), "{}", described.err);
    // Two clients wrote and read their blocks in four rounds; the elevator's time is recorded.
    // At its end the server flushed the disk.
    assert!(described.out.contains(&format!(": {} requests, ", 2 * 2 * 4 * REQUESTS + 1)), "{}", described.out);
    assert!(described.out.contains("in the elevator"), "{}", described.out);
}

#[test]
fn a_wrong_elevator_loses_no_request_and_is_reported_once() {
    for (elevator, drive, what) in [
        ("losing", DISK, "returned nothing although"),
        ("twice", SSD, "which had been dispatched before"),
        ("starving", DISK, "passed over the write"),
    ] {
        let server = start("wrong-elevators", elevator, drive, &["--metrics", "127.0.0.1:0"]);
        let address = server.metrics();
        assert_eq!(get(&server, "devices/sda/violation"), "-");
        scrape_until(&address, "hoistway_device_violation{device=\"sda\"} 0");
        write_and_verify(&server, 0);
        let violation = get(&server, "devices/sda/violation");
        assert!(violation.starts_with(&format!("elevator {elevator} broke a rule: call ")), "{violation}");
        for part in [what, " of dispatch, at ", " s, ", " sectors at sector ", " by process ", "order of arrival"] {
            assert!(violation.contains(part), "`{part}` is missing in: {violation}");
        }
        assert!(violation.contains("until devices/sda/queue/scheduler is set to another elevator"), "{violation}");
        scrape_until(&address, "hoistway_device_violation{device=\"sda\"} 1");
        write_and_verify(&server, 1);
        assert_eq!(ctl(&server, &["set", "devices/sda/queue/scheduler", "deadline"]).code, Some(0));
        write_and_verify(&server, 2);
        assert_eq!(get(&server, "devices/sda/violation"), "-", "{elevator}");
        let (code, log) = server.end();
        assert_eq!(code, Some(0), "{log}");
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("broke a rule")).collect();
        assert_eq!(lines.len(), 1, "{log}");
        assert!(lines[0].contains("ERROR") && lines[0].contains("sda") && lines[0].contains(&violation), "{log}");
    }
}

/// An elevator that refuses to be drained is replaced without a lost request.
#[test]
fn an_elevator_that_cannot_be_drained_is_replaced_under_load() {
    let server = start("wrong-elevators", "keeping", DISK, &[]);
    let mut client = Client::of(&server.socket(), "left");
    client.read(0, 512).expect("it can be read");
    let mut control = BufReader::new(UnixStream::connect(server.folder.path("control")).expect("it listens"));
    control.get_ref().set_read_timeout(Some(PATIENCE)).expect("it is a socket");
    let mut command = |line: &str, then: &dyn Fn()| {
        control.get_mut().write_all(line.as_bytes()).expect("it takes it");
        then();
        let mut reply = String::from("= ");
        while reply.starts_with("= ") {
            reply.clear();
            control.read_line(&mut reply).expect("it answers");
        }
        assert!(reply.starts_with("ok"), "{line}{reply}");
    };
    command("get server/version\n", &|| ());
    // The server receives on both connections now. It finds the requests first when it continues,
    // and the command with them.
    let data = |number| block(0, 0, number)[..512].to_vec();
    let mut requests = Vec::new();
    let mut written = Vec::new();
    for number in 0..REQUESTS {
        let (command, flags) = (Command::Write, CommandFlags::default());
        let request = RequestSpec { command, flags, offset: offset(number), length: 512 };
        written.push(client.encode(request, &data(number), &mut requests));
    }
    server.stop();
    client.stream.write_all(&requests).expect("the socket has room");
    command("set devices/sda/queue/scheduler noop\n", &|| server.signal(Signal::CONT));
    let mut answers = client.answers(REQUESTS as usize);
    assert!(answers.iter().all(|answer| answer.result.is_ok()), "{answers:?}");
    answers.sort_by_key(|answer| answer.cookie);
    assert_eq!(answers.iter().map(|answer| answer.cookie).collect::<Vec<_>>(), written);
    for number in 0..REQUESTS {
        assert_eq!(client.read(offset(number), 512).expect("it can be read"), data(number));
    }
    assert!(get(&server, "devices/sda/queue/scheduler").contains("[noop]"));
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log.matches("elevator keeping broke a rule").count(), 1, "{log}");
    assert!(log.contains("is being drained"), "{log}");
}
