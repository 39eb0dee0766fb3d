//! Start, reload and end of a server.

use hoistway_nbd::client::RequestSpec;
use hoistway_nbd::wire::{Command, CommandFlags, Errno, REQUEST_BYTES};
use rustix::process::Signal;

use super::client::{Client, shake_hands, wants};
use super::server::Server;
use crate::common::{Folder, Ran, hoistway, run};

#[test]
fn sigterm_completes_earlier_requests_and_refuses_later_ones() {
    // Each request takes 50 ms or more on this drive, so that some are in flight at the time of the
    // signal.
    let server = Server::start(&["--export", "=mem:64M", "--drive", "sata-7200-2006", "--elevator", "noop"]);
    let mut client = Client::of(&server.socket(), "");
    let mut bytes = Vec::new();
    let mut ask = |client: &mut Client, command, offset, length, data: &[u8]| {
        let flags = CommandFlags::default();
        client.encode(RequestSpec { command, flags, offset, length }, data, &mut bytes)
    };
    let mut earlier: Vec<u64> =
        (0..32).map(|at| ask(&mut client, Command::Read, (at * 7 % 32) << 20, 4096, &[])).collect();
    earlier.push(ask(&mut client, Command::Write, 0, 4096, &[7; 4096]));
    let later = ask(&mut client, Command::Read, 0, 512, &[]);
    // The server receives the first part at once, so that it has begun all requests but the last
    // when it answers one. A write whose payload is incomplete keeps the connection open.
    let (begun, rest) = bytes.split_at(33 * REQUEST_BYTES + 2048);
    client.stream.write_all(begun).expect("the server takes it");
    let mut answers = client.answers(1);
    server.signal(Signal::TERM);
    server.await_log("draining");
    client.stream.write_all(rest).expect("the server takes it");
    answers.extend(client.answers(33));
    // Requests before the signal complete; the request after it is refused.
    let at = answers.iter().position(|answer| answer.cookie == later).expect("it is answered");
    assert_eq!(answers.remove(at).result.expect_err("it is later").0, Errno::Shutdown);
    assert!(answers.iter().all(|answer| answer.result.is_ok()), "{answers:?}");
    answers.sort_by_key(|answer| answer.cookie);
    assert_eq!(answers.iter().map(|answer| answer.cookie).collect::<Vec<_>>(), earlier);
    let (code, log) = server.ended();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn an_idle_server_drains_at_once() {
    let server = Server::start(&["--export", "=mem:1M"]);
    let mut idle = Client::of(&server.socket(), "");
    idle.write(0, &[1; 512]).expect("it can be written");
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(idle.is_closed());
}

#[test]
fn sighup_reloads_the_configuration_and_keeps_clients() {
    let folder = Folder::new();
    let config = |more: &str| {
        format!(
            "[[device]]\nname = \"memory\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"a\"\ndevice = \"memory\"\n{more}"
        )
    };
    folder.file("config.toml", config(""));
    let server = Server::start_in(folder, &["--config", "FOLDER/config.toml"]);
    let mut before = Client::of(&server.socket(), "a");
    before.write(0, &[5; 512]).expect("it can be written");
    assert!(shake_hands(&server.socket(), wants("b"), None).is_err());
    server.folder.file("config.toml", config("size = \"512k\n"));
    server.signal(Signal::HUP);
    server.await_log("the configuration stays as it was");
    assert_eq!(before.read(0, 512).expect("a wrong configuration changes nothing"), vec![5; 512]);
    let more =
        "[[export]]\nname = \"b\"\ndevice = \"memory\"\n[[tenant]]\nname = \"t\"\nexport = \"b\"\nweight = 300\n";
    server.folder.file("config.toml", config(more));
    server.signal(Signal::HUP);
    let mut after = loop {
        if let Ok(super::client::Led::To(client)) = shake_hands(&server.socket(), wants("b"), None) {
            break client;
        }
    };
    assert_eq!(after.read(0, 512).expect("it is the same device"), vec![5; 512]);
    assert_eq!(before.read(0, 512).expect("it was left alone"), vec![5; 512]);
    server.folder.file("config.toml", config(""));
    server.signal(Signal::HUP);
    assert!(after.is_closed(), "its export is served no more");
    assert_eq!(before.read(0, 512).expect("it was left alone"), vec![5; 512]);
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn the_exit_code_of_run_is_that_of_the_command() {
    let folder = Folder::new();
    let socket = folder.name("s");
    let command =
        "test -S \"$unixsocket\" && test \"$uri\" = \"$NBD_URI\" && echo \"$uri $exportname $tls\" && exit 42";
    let ran = run(&["serve", "--export", "a b=mem:1M", "--socket", &socket, "--run", command]);
    assert_eq!(ran.code, Some(42), "{}", ran.err);
    let uri = format!("nbd+unix:///a%20b?socket={socket}");
    assert_eq!(ran.out, format!("{uri} a b off\n"));
    assert!(folder.files().is_empty(), "{:?}", folder.files());
}

#[test]
fn a_command_does_not_inherit_the_variables_of_systemd() {
    let folder = Folder::new();
    let socket = folder.name("s");
    let command = "! env | grep -E '^(LISTEN_|WATCHDOG_|NOTIFY_)'";
    let mut serve = hoistway(&["serve", "-q", "--export", "=mem:1M", "--socket", &socket, "--run", command]);
    // LISTEN_PID names another process, so that the sockets are ignored.
    for name in ["LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PID", "WATCHDOG_USEC", "WATCHDOG_PID", "NOTIFY_SOCKET"] {
        serve.env(name, "1");
    }
    let ran = Ran::of(serve.output().expect("the binary starts"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{}", ran.err);
}

#[test]
fn a_failed_start_is_reported_and_leaves_no_files() {
    let folder = Folder::new();
    let socket = folder.name("s");
    folder.file("disk", vec![0; 4096]);
    folder.file("nonsense.pem", "nonsense");
    let (disk, pem) = (folder.name("disk"), folder.name("nonsense.pem"));
    let gone = folder.name("gone");
    let before = folder.files();
    // 2: an invalid command line; 1: a failure.
    let cases: [(&[&str], i32, &str); 6] = [
        (&["--export", &format!("={gone}")], 2, "gone"),
        (&["--export", "a=mem:1M", "--export", "a=mem:2M"], 2, "already export `a`"),
        (&["--export", &format!("={disk},size=1M")], 2, "4096"),
        (&["--export", "=mem:1M", "--tls-cert", &pem, "--tls-key", &pem], 1, "nonsense.pem"),
        (&["--export", "=mem:1M", "--tls-cert", &gone, "--tls-key", &gone], 1, "gone"),
        (&["--export", "=mem:1M", "--listen", "192.0.2.1:10809"], 2, "192.0.2.1"),
    ];
    for (args, code, said) in cases {
        let ran = run(&[&["serve", "-q", "--socket", &socket], args].concat());
        ran.refused(code, &[said]);
        assert_eq!(folder.files().len(), before.len(), "{args:?} leaves {:?}", folder.files());
    }
}

#[test]
fn the_socket_of_a_running_server_is_not_replaced() {
    let server = Server::start(&["--export", "=mem:1M"]);
    let socket = server.socket();
    let second = run(&["serve", "-q", "--export", "=mem:1M", "--socket", socket.to_str().expect("UTF-8")]);
    second.refused(1, &["busy"]);
    Client::of(&socket, "").write(0, &[1; 512]).expect("the first is still there");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_configuration_that_is_a_directory_is_named_once_with_one_cause() {
    let expected = "serve.toml: cannot read the configuration: it is a directory, and a regular file is needed";
    let folder = Folder::new();
    std::fs::create_dir(folder.path("serve.toml")).expect("it is ours");
    let ran = run(&["serve", "--config", &folder.name("serve.toml"), "--socket", &folder.name("s")]);
    ran.refused(2, &[&format!("{expected}\n")]);
    std::fs::remove_dir(folder.path("serve.toml")).expect("it is empty");
    folder.file("serve.toml", "[[device]]\nname = \"m\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"\"\n");
    let server = Server::start_in(folder, &["--config", "FOLDER/serve.toml"]);
    std::fs::remove_file(server.folder.path("serve.toml")).expect("it is ours");
    std::fs::create_dir(server.folder.path("serve.toml")).expect("it is ours");
    server.signal(Signal::HUP);
    server.await_log("the configuration stays as it was");
    Client::of(&server.socket(), "").read(0, 512).expect("the old configuration stays");
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("cannot read the configuration")).collect();
    assert!(lines.len() == 1 && lines[0].ends_with(expected), "{lines:?}");
    assert_eq!(lines[0].matches("a directory").count(), 1, "{lines:?}");
}
