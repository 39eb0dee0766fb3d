//! Administration and monitoring of a running server: control socket, `hoistway ctl`, `hoistway
//! top`, metrics, recordings.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;

use hoistway_nbd::wire::{self, CommandFlags};

use super::client::Client;
use super::server::{Server, ctl, get};
use crate::common::{Folder, PATIENCE, run};

/// Starts a server with two tenants on one device, identified by their exports.
const TWO: &str = r#"
[control]
socket = "control"
[[device]]
name = "sda"
backend = "mem:64M"
elevator = "bfq"
[[export]]
name = "db"
device = "sda"
size = "32M"
[[export]]
name = "backup"
device = "sda"
offset = "32M"
[[tenant]]
name = "database"
export = "db"
weight = 300
[[tenant]]
name = "backup"
export = "backup"
"#;

fn start() -> Server {
    let folder = Folder::new();
    folder.file("two.toml", TWO);
    Server::start_in(folder, &["--config", "FOLDER/two.toml"])
}

#[test]
fn elevators_are_switched_under_a_client_that_reads_back_what_it_wrote() {
    let server = start();
    let mut client = Client::of(&server.socket(), "db");
    for (round, elevator) in ["noop", "deadline", "cfq", "kyber", "fiops", "bfq", "cfq-v3"].into_iter().enumerate() {
        let data = vec![round as u8 + 1; 8192];
        client.write(round as u64 * 8192, &data).expect("it can be written");
        assert_eq!(ctl(&server, &["set", "devices/sda/queue/scheduler", elevator]).code, Some(0));
        assert!(get(&server, "devices/sda/queue/scheduler").contains(&format!("[{elevator}]")));
        assert_eq!(client.read(round as u64 * 8192, 8192).expect("it can be read"), data);
    }
    assert_eq!(ctl(&server, &["set", "devices/sda/queue/iosched/slice_idle", "3"]).code, Some(0));
    assert_eq!(get(&server, "devices/sda/queue/iosched/slice_idle"), "3");
    ctl(&server, &["set", "devices/sda/queue/scheduler", "cqf"]).refused(1, &["did you mean \"cfq\"?"]);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn the_control_socket_is_private_and_removed_at_the_end() {
    let server = start();
    let path = server.folder.path("control");
    let mode = std::fs::metadata(&path).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let folder = server.folder.name("s");
    run(&["ctl", "get", "server/version", "--control", &folder]).refused(1, &["is where NBD clients connect"]);
    // As with socat: the last line has no line break.
    let mut stream = UnixStream::connect(&path).expect("it listens");
    stream.write_all(b"get server/version\nls tenants\nget tenants/database/weight").expect("it takes it");
    stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply and the end of the connection");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(reply, format!("= {version}\nok\n= database/\n= backup/\n= default/\nok\n= 300\nok\n"));
    assert_eq!(server.end().0, Some(0));
    assert!(!path.exists(), "the control socket is left behind");
}

#[test]
fn a_client_is_listed_counted_and_disconnected() {
    let server = start();
    let mut client = Client::of(&server.socket(), "backup");
    client.write(0, &[7; 65536]).expect("it can be written");
    client.read(0, 4096).expect("it can be read");
    let number = ctl(&server, &["ls", "clients"]).out.trim_end().trim_end_matches('/').to_owned();
    let values = ctl(&server, &["get", "-r", &format!("clients/{number}")]).out;
    for line in ["export: backup", "tenant: backup", "address: unix", &format!("pid: {}", std::process::id())] {
        assert!(values.contains(line), "{line}: {values}");
    }
    assert!(values.contains("stat: requests=2 in_flight=0 rbytes=4096 wbytes=65536"), "{values}");
    let stat = get(&server, "tenants/backup/stat");
    assert!(stat.starts_with("sda rbytes=4096 wbytes=65536 rios=1 wios=1 "), "{stat}");
    let json: serde_json::Value = serde_json::from_str(&get(&server, "tenants/backup/stat.json")).expect("JSON");
    assert_eq!((&json["requests"], &json["latency_ns"]["count"]), (&2.into(), &2.into()));
    for (path, clients) in
        [("exports/backup", "1"), ("exports/db", "0"), ("tenants/backup", "1"), ("tenants/database", "0")]
    {
        assert_eq!(get(&server, &format!("{path}/clients")), clients, "{path}");
    }
    assert_eq!(ctl(&server, &["set", &format!("clients/{number}/disconnect"), "1"]).code, Some(0));
    assert_eq!(client.stream.read(&mut [0]).expect("an end"), 0);
    assert_eq!(ctl(&server, &["ls", "clients"]).out, "");
    assert_eq!(
        (get(&server, "exports/backup/clients").as_str(), get(&server, "tenants/backup/clients").as_str()),
        ("0", "0")
    );
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_reload_discards_values_set_at_run_time() {
    let server = start();
    assert_eq!(ctl(&server, &["set", "tenants/backup/weight", "7"]).code, Some(0));
    assert_eq!(ctl(&server, &["set", "server/reload", "1"]).code, Some(0));
    let end = std::time::Instant::now() + PATIENCE;
    while get(&server, "server/reload") != "ok" && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!((get(&server, "server/reload").as_str(), get(&server, "tenants/backup/weight").as_str()), ("ok", "100"));
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn top_prints_figures_of_a_running_server() {
    let server = start();
    let mut client = Client::of(&server.socket(), "db");
    client.write(0, &[7; 65536]).expect("it can be written");
    let control = server.folder.name("control");
    let json = run(&["top", "--json", "--interval", "0.1", "--control", &control]).json();
    assert_eq!((&json["devices"][0]["name"], &json["devices"][0]["elevator"]), (&"sda".into(), &"bfq".into()));
    assert_eq!(json["devices"][0]["tenants"][0]["name"], "database");
    assert_eq!(json["connections"], 1);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn metrics_are_served_over_http() {
    let server = Server::start(&["--export", "=mem:1M", "--metrics", "127.0.0.1:0"]);
    let mut client = Client::of(&server.socket(), "");
    client.write(0, &[7; 4096]).expect("it can be written");
    let mut stream = BufReader::new(TcpStream::connect(server.metrics()).expect("it listens"));
    for _ in 0..2 {
        stream.get_mut().write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it takes it");
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).expect("it answers");
            if let Some(bytes) = line.strip_prefix("Content-Length: ") {
                length = bytes.trim().parse().expect("a number");
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("as many bytes as it said");
        let text = String::from_utf8(body).expect("text");
        let bytes = text.lines().find(|line| line.starts_with("hoistway_bytes_total{op=\"write\",tenant=\"default\""));
        assert!(bytes.is_some_and(|line| line.ends_with(" 4096")) && text.ends_with("# EOF\n"), "{text}");
    }
    assert_eq!(server.end().0, Some(0));
}

/// Scrapes a server until a line is among the metrics, and returns the text of that scrape.
pub(super) fn scrape_until(address: &str, line: &str) -> String {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it takes it");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        if text.lines().any(|present| present == line) {
            return text;
        }
        assert!(std::time::Instant::now() < end, "{line} is not in\n{text}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Returns the value of a sample.
fn sample(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} is not in\n{text}"))
}

#[test]
fn metrics_show_the_terms_and_the_result_of_each_reload() {
    let folder = Folder::new();
    folder.file("two.toml", TWO);
    let unix_s = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("after 1970").as_secs_f64()
    };
    let started_s = unix_s();
    let server = Server::start_in(folder, &["--config", "FOLDER/two.toml", "--metrics", "127.0.0.1:0"]);
    let address = server.metrics();
    let mut client = Client::of(&server.socket(), "db");
    client.write(0, &[7; 65536]).expect("it can be written");
    let text = scrape_until(&address, "hoistway_weight{tenant=\"database\",device=\"sda\"} 300");
    assert_eq!(sample(&text, "hoistway_last_reload_success"), 1.0);
    let read_s = sample(&text, "hoistway_last_reload_timestamp_seconds");
    assert!((started_s - 0.01..unix_s()).contains(&read_s), "{started_s} {read_s}");
    assert!(sample(&text, "process_start_time_seconds") <= read_s + 1.0, "{text}");
    assert_eq!(sample(&text, "hoistway_connections"), 1.0);
    assert!(sample(&text, "hoistway_connections_max") >= 1.0);
    // The two devices of memory are not touched as a whole.
    assert!((1e6..1e9).contains(&sample(&text, "process_resident_memory_bytes")), "{text}");

    let reload = |config: &str, line: &str| {
        server.folder.file("two.toml", config);
        assert_eq!(ctl(&server, &["set", "server/reload", "1"]).code, Some(0));
        scrape_until(&address, line)
    };
    // A value out of range is found when the file is read, another size of a device afterwards.
    let text = reload(&TWO.replace("300", "3000"), "hoistway_reloads_total{result=\"failure\"} 1");
    assert_eq!(sample(&text, "hoistway_last_reload_success"), 0.0);
    let failed_s = sample(&text, "hoistway_last_reload_timestamp_seconds");
    assert!(failed_s >= read_s && failed_s <= unix_s(), "{read_s} {failed_s}");
    let text = reload(&TWO.replace("64M", "128M"), "hoistway_reloads_total{result=\"failure\"} 2");
    assert_eq!(sample(&text, "hoistway_last_reload_success"), 0.0);
    assert_eq!(sample(&text, "hoistway_weight{tenant=\"database\",device=\"sda\"}"), 300.0, "the old terms");
    let text = reload(
        &format!("{TWO}limit = \"20M\"\n").replace("300", "500"),
        "hoistway_reloads_total{result=\"success\"} 1",
    );
    assert_eq!(sample(&text, "hoistway_last_reload_success"), 1.0);
    assert_eq!(sample(&text, "hoistway_reloads_total{result=\"failure\"}"), 2.0);
    assert_eq!(sample(&text, "hoistway_weight{tenant=\"database\",device=\"sda\"}"), 500.0);
    Client::of(&server.socket(), "backup").write(0, &[7; 4096]).expect("it can be written");
    scrape_until(&address, "hoistway_limit_bytes_per_second{tenant=\"backup\",device=\"sda\"} 20971520");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn devices_added_by_a_reload_are_recorded() {
    let kept = tempfile::tempdir().expect("a folder");
    let trace = kept.path().join("trace").display().to_string();
    let folder = Folder::new();
    folder.file("two.toml", TWO);
    let server = Server::start_in(folder, &["--config", "FOLDER/two.toml", "--record", &trace]);
    let more = "[[device]]\nname = \"sdb\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"new\"\ndevice = \"sdb\"\n";
    server.folder.file("two.toml", format!("{TWO}{more}"));
    assert_eq!(ctl(&server, &["set", "server/reload", "1"]).code, Some(0));
    let end = std::time::Instant::now() + PATIENCE;
    while get(&server, "server/reload") == "never" && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let mut client = Client::of(&server.socket(), "new");
    client.write(8192, &[7; 4096]).expect("it can be written");
    drop(client);
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    let [first, second] = ["trace", "trace.sdb"].map(|name| kept.path().join(format!("{name}.blktrace.0")));
    let length = |path: &std::path::Path| std::fs::metadata(path).unwrap_or_else(|_| panic!("{log}")).len();
    assert!(length(&second) > length(&first) + 4 * 48, "{log}");
    let mode = std::fs::metadata(&second).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_failed_start_keeps_the_former_recording() {
    let folder = Folder::new();
    let [kept, new] = ["kept", "new"].map(|name| folder.name(&format!("{name}.blktrace.0")));
    std::fs::write(&kept, "kept").expect("it can be written");
    for trace in [&kept, &new] {
        let socket = folder.name("s");
        let args =
            ["serve", "--export", "=mem:1M", "--socket", &socket, "--record", trace, "--pid-file", "/nowhere/pid"];
        run(&args).refused(1, &["/nowhere/pid"]);
    }
    assert_eq!(std::fs::read(&kept).expect("it is there"), b"kept");
    assert!(!std::path::Path::new(&new).exists());
}

#[test]
fn a_recording_keeps_flushes_and_durable_writes() {
    let kept = tempfile::tempdir().expect("a folder");
    let trace = kept.path().join("trace").display().to_string();
    let folder = Folder::new();
    folder.file("two.toml", TWO);
    let server = Server::start_in(folder, &["--config", "FOLDER/two.toml", "--record", &trace]);
    let mut client = Client::of(&server.socket(), "db");
    client.write(8192, &[7; 4096]).expect("it can be written");
    client.flush().expect("it can be flushed");
    let fua = CommandFlags { fua: true, ..CommandFlags::default() };
    let cookie = client.send(wire::Command::Write, fua, 16_384, 4096, &[8; 4096]);
    let answer = client.answers(1).remove(0);
    assert!(answer.cookie == cookie && answer.result.is_ok(), "{:?}", answer.result);
    drop(client);
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    let json = run(&["trace", "describe", "--json", &format!("{trace}.blktrace.0")]).json();
    let all = &json["all"];
    // The server flushes the device at its end, too.
    let counts = ["writes", "flushes", "fua"].map(|name| all["mix"][name].as_u64());
    assert_eq!((counts, all["requests"].as_u64()), ([Some(2), Some(2), Some(1)], Some(4)), "{json}");
    assert_eq!((&all["phases"]["flush_q2c_ns"]["count"], &all["unfinished"]), (&2.into(), &0.into()), "{json}");
}

#[test]
fn a_recording_is_read_by_blkparse() {
    let kept = tempfile::tempdir().expect("a folder");
    let trace = kept.path().join("trace").display().to_string();
    let folder = Folder::new();
    folder.file("two.toml", TWO);
    let server = Server::start_in(folder, &["--config", "FOLDER/two.toml", "--record", &trace]);
    let mut client = Client::of(&server.socket(), "db");
    client.write(8192, &[7; 4096]).expect("it can be written");
    for _ in 0..10 {
        client.read(8192, 4096).expect("it can be read");
    }
    drop(client);
    // The recording is outside of the server's folder, which is removed with the server.
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("recorded"), "{log}");
    let Ok(output) = Command::new("blkparse").args(["-i", "trace"]).current_dir(kept.path()).output() else {
        return eprintln!("SKIPPED: blkparse does not run here; Debian has it in the package blktrace");
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Q  WS 16 + 8 [database]") && text.contains("C   R 16 + 8 [0]"), "{text}");
    // The server flushes the device at its end. blkparse counts flushes of a device as reads.
    assert!(text.contains("Reads Completed:       11,       40KiB"), "{text}");
    assert!(text.contains("D  FN [hoistway]"), "{text}");
}
