//! Conformance tests with live servers and clients: this server's state machine behind a socket
//! against the list of checks and against common clients; this client against common servers.
//!
//! `HOISTWAY_NBD_URI=nbd+unix:///export?socket=PATH cargo test -p hoistway-nbd --test it
//! conformance` runs the checks against any other server; they overwrite the first MiB of the
//! export.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::live::Live;
use crate::machine::{Server, Shelf, Standing, export};
use hoistway_nbd::Limits;
use hoistway_nbd::server::Tls;

/// A temporary folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("hoistway-nbd-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Serves an export "disk" of 4 MiB in memory on a Unix socket, until the process ends.
fn serve(socket: &Path) {
    let listener = UnixListener::bind(socket).expect("a socket");
    let disk = std::sync::Arc::new(std::sync::Mutex::new(vec![0u8; 4 << 20]));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), disk) = (stream, disk.clone()) else { break };
            std::thread::spawn(move || {
                let mut disk_export = export("disk");
                disk_export.size = 4 << 20;
                let (mut out, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
                let mut server = Server::new(Shelf(vec![disk_export]), Tls::Off, Limits::default(), &mut out);
                server.piece_bytes = 16 << 10;
                while stream.write_all(&std::mem::take(&mut out)).is_ok() && server.standing == Standing::Open {
                    match stream.read(&mut buffer) {
                        Ok(count) if count > 0 => {
                            // All connections share one buffer.
                            let mut disk = disk.lock().expect("the memory");
                            std::mem::swap(&mut *disk, &mut server.disk);
                            server.receive(&buffer[..count], &mut out);
                            std::mem::swap(&mut *disk, &mut server.disk);
                        }
                        _ => break,
                    }
                }
            });
        }
    });
}

fn uri(socket: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", socket.display())
}

/// Runs a program; None, with a message, if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            None
        }
    }
}

fn succeeded(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    out.into_owned()
}

#[test]
fn the_server_in_memory_passes_all_checks() {
    let folder = Folder::new("checks");
    let socket = folder.0.join("socket");
    serve(&socket);
    let failures = crate::live::run(&Live { uri: uri(&socket, "disk").parse().expect("a URI") });
    assert!(failures.is_empty(), "\n  {}", failures.join("\n  "));
}

#[test]
fn the_server_named_by_the_environment_passes_all_checks() {
    let Ok(text) = std::env::var("HOISTWAY_NBD_URI") else {
        return eprintln!("skipped: HOISTWAY_NBD_URI names no server");
    };
    let failures = crate::live::run(&Live { uri: text.parse().expect("a URI") });
    assert!(failures.is_empty(), "\n  {}", failures.join("\n  "));
}

#[test]
fn nbdinfo_understands_the_server() {
    let folder = Folder::new("nbdinfo");
    let socket = folder.0.join("socket");
    serve(&socket);
    let Some(output) = run("nbdinfo", &["--json", &uri(&socket, "disk")]) else { return };
    let text = succeeded(&output);
    for line in [
        r#""protocol": "newstyle-fixed""#,
        r#""structured": true"#,
        r#""description": "about disk""#,
        r#""export-size": 4194304"#,
        r#""is_rotational": true"#,
        r#""can_multi_conn": true"#,
        r#""can_fast_zero": true"#,
        r#""can_df": true"#,
        r#""block_size_preferred": 4096"#,
        r#""block_size_maximum": 33554432"#,
        "base:allocation",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let list = succeeded(&run("nbdinfo", &["--list", &uri(&socket, "")]).expect("it ran before"));
    assert!(list.contains(r#"export="disk""#), "{list}");
    let absent = run("nbdinfo", &[&uri(&socket, "absent")]).expect("it ran before");
    let text = String::from_utf8_lossy(&absent.stderr).into_owned();
    assert!(!absent.status.success() && text.contains("No such file"), "{text}");
}

#[test]
fn nbdcopy_and_qemu_img_read_back_their_writes() {
    let folder = Folder::new("copy");
    let (socket, original, copy) = (folder.0.join("socket"), folder.0.join("original"), folder.0.join("copy"));
    serve(&socket);
    let mut bytes = vec![0u8; 4 << 20];
    for (at, byte) in bytes.iter_mut().enumerate().filter(|(at, _)| at / 100_000 % 3 != 1) {
        *byte = ((at * 31) >> 7) as u8;
    }
    std::fs::write(&original, &bytes).expect("a file");
    let (original, copied) = (original.to_str().expect("a path"), copy.to_str().expect("a path"));
    let uri = uri(&socket, "disk");
    if let Some(output) = run("nbdcopy", &["--flush", original, &uri]) {
        succeeded(&output);
        succeeded(&run("nbdcopy", &[&uri, copied]).expect("it ran before"));
        assert!(std::fs::read(&copy).expect("a file") == bytes);
        let map = succeeded(&run("nbdinfo", &["--map", &uri]).expect("it is of the same package"));
        assert!(map.contains("hole,zero") && map.contains("data"), "{map}");
    }
    if let Some(output) = run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", original, &uri]) {
        succeeded(&output);
        let same = run("qemu-img", &["compare", "-f", "raw", "-F", "raw", original, &uri]).expect("it ran before");
        assert!(succeeded(&same).contains("identical"));
        let map = succeeded(&run("qemu-img", &["map", "--output=json", "-f", "raw", &uri]).expect("it ran before"));
        assert!(map.contains(r#""zero": true"#), "{map}");
    }
    let commands = ["-c", "write -P 7 -f 4k 8k", "-c", "write -z -u 8k 4k", "-c", "discard 1M 64k", "-c", "flush"];
    let reads = ["-c", "read -P 7 4k 4k", "-c", "read -P 0 8k 4k", "-c", "read -P 7 4097 3"];
    if let Some(output) = run("qemu-io", &[&["-f", "raw"], &commands[..], &reads[..], &[&uri]].concat()) {
        let text = succeeded(&output);
        assert!(!text.contains("failed"), "{text}");
    }
}

/// A server process that is killed when dropped.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server and waits for its socket.
fn daemon(program: &str, arguments: &[&str], socket: &Path) -> Option<Daemon> {
    let command = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let daemon = match command {
        Ok(child) => Daemon(child),
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            return None;
        }
    };
    for _ in 0..1000 {
        if std::os::unix::net::UnixStream::connect(socket).is_ok() {
            return Some(daemon);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{program} does not listen on {}", socket.display());
}

/// Checks of behaviour that the protocol leaves open or only recommends; other servers differ.
const OURS: [&str; 2] = ["it leaves a client that sends options without end", "it refuses options whose lengths"];

fn check_client_against(daemon: Option<Daemon>, socket: &Path, export: &str) {
    let Some(_daemon) = daemon else { return };
    let live = Live { uri: uri(socket, export).parse().expect("a URI") };
    for (name, check) in crate::live::CHECKS {
        let of_content = ["reads", "enters", "extents", "zeroes", "many", "lists"];
        if of_content.iter().any(|word| name.contains(word)) && !OURS.iter().any(|ours| name.starts_with(ours)) {
            if let Err(what) = check(&live) {
                panic!("{name}: {what}");
            }
            eprintln!("ok: {name}");
        }
    }
}

#[test]
fn the_client_understands_nbdkit() {
    let folder = Folder::new("nbdkit");
    let socket = folder.0.join("socket");
    let arguments = ["-f", "-U", socket.to_str().expect("a path"), "memory", "size=4M"];
    check_client_against(daemon("nbdkit", &arguments, &socket), &socket, "");
}

#[test]
fn the_client_understands_qemu_nbd() {
    let folder = Folder::new("qemu-nbd");
    let (socket, disk) = (folder.0.join("socket"), folder.0.join("disk"));
    std::fs::write(&disk, vec![0; 4 << 20]).expect("a file");
    let (path, disk) = (socket.to_str().expect("a path"), disk.to_str().expect("a path"));
    let arguments = ["-f", "raw", "-t", "-e", "8", "-x", "disk", "-k", path, disk];
    check_client_against(daemon("qemu-nbd", &arguments, &socket), &socket, "disk");
}
