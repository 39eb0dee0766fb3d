//! Exports of other NBD servers behind `serve`: nbdkit, qemu-nbd, and another `hoistway serve`.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hoistway_nbd::wire::{Command as Request, CommandFlags, Errno};

use super::client::Client;
use super::server::{Server, write_pattern};
use super::tls::Authority;
use crate::common::{Folder, eventually, run};

/// A server of another program. It is killed on drop.
struct Daemon(Child);

impl Daemon {
    /// Starts a program and waits until it accepts connections. `None` if it is not installed.
    #[track_caller]
    fn start(program: &str, args: &[&str], socket: &Path) -> Option<Daemon> {
        let _ = std::fs::remove_file(socket);
        let child = match Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                eprintln!("SKIPPED: {program} is not installed");
                return None;
            }
            other => other.expect("the program starts"),
        };
        let daemon = Daemon(child);
        // The file of the socket exists a moment before the program listens.
        eventually(|| UnixStream::connect(socket)).unwrap_or_else(|error| panic!("{program} does not listen: {error}"));
        Some(daemon)
    }

    /// Serves the file `disk` of a folder by nbdkit on the socket `kit`.
    #[track_caller]
    fn nbdkit(folder: &Folder) -> Option<Daemon> {
        let (socket, disk) = (folder.name("kit"), folder.name("disk"));
        Daemon::start("nbdkit", &["-f", "-U", &socket, "file", &disk], Path::new(&socket))
    }

    fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it can be waited for");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn disk() -> Folder {
    let folder = Folder::new();
    write_pattern(&folder.path("disk"), 8 << 20);
    folder
}

/// Writes, reads, zeroes, trims and flushes at aligned and other offsets, and compares with a model
/// of the disk.
#[track_caller]
fn check_data(server: &Server, export: &str) {
    let mut client = Client::of(&server.socket(), export);
    let mut model = std::fs::read(server.folder.path("disk")).expect("the disk");
    for (number, (offset, length)) in
        [(0, 4096), (100, 300), (4000, 200), (65_536, 1 << 20), (70_001, 99_999), (5 << 20, 3 << 20)].iter().enumerate()
    {
        let data: Vec<u8> = (0..*length).map(|at| (at * 7 + number * 31 + 1) as u8).collect();
        client.write(*offset as u64, &data).expect("it can be written");
        model[*offset..*offset + *length].copy_from_slice(&data);
    }
    client.command(Request::WriteZeroes, CommandFlags::default(), 8192 + 77, 20_000).expect("it can be zeroed");
    model[8192 + 77..8192 + 77 + 20_000].fill(0);
    client.flush().expect("it can be flushed");
    for (offset, length) in [(0, 8 << 20), (1, 4095), (4_000, 200), (3 << 20, 5 << 20)] {
        let read = client.read(offset, length).expect("it can be read");
        assert!(read == model[offset as usize..(offset + length) as usize], "{length} bytes at {offset} differ");
    }
}

#[test]
fn an_export_of_nbdkit_keeps_its_data_and_features() {
    let folder = disk();
    let Some(_kit) = Daemon::nbdkit(&folder) else { return };
    let server = Server::start_in(folder, &["--export", "vm=nbd+unix:///?socket=FOLDER/kit"]);
    check_data(&server, "vm");
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("up to 4 connections, flush and FUA"), "{log}");
}

#[test]
fn an_export_of_qemu_nbd_with_blocks_of_4096_bytes_accepts_every_offset() {
    let folder = disk();
    let (socket, path) = (folder.name("q"), folder.name("disk"));
    let image = format!("driver=raw,file.driver=file,file.filename={path}");
    let options = ["-t", "-e", "8", "-x", "vm", "-k", &socket, "--image-opts", &image];
    let Some(_qemu) = Daemon::start("qemu-nbd", &options, Path::new(&socket)) else { return };
    let server = Server::start_in(folder, &["--export", "vm=nbd+unix:///vm?socket=FOLDER/q,connections=2"]);
    check_data(&server, "vm");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn blocks_of_the_remote_are_widened() {
    let folder = disk();
    let (socket, path) = (folder.name("kit"), folder.name("disk"));
    let options = [
        "-f",
        "-U",
        &socket,
        "--filter=blocksize-policy",
        "file",
        &path,
        "blocksize-minimum=4096",
        "blocksize-preferred=4096",
        "blocksize-maximum=1M",
        "blocksize-error-policy=error",
    ];
    let Some(_kit) = Daemon::start("nbdkit", &options, Path::new(&socket)) else { return };
    let server = Server::start_in(folder, &["--export", "vm=nbd+unix:///?socket=FOLDER/kit,request-max=2M"]);
    check_data(&server, "vm");
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("blocks of 4096 bytes"), "{log}");
}

#[test]
fn a_server_behind_a_server_has_the_same_export() {
    let back = Server::start_in(disk(), &["--export", "x=FOLDER/disk"]);
    let uri = format!("vm={}", back.uri(0));
    let front = Server::start(&["--export", &uri, "--export", &format!("frozen={},read-only", back.uri(0))]);
    std::fs::copy(back.folder.path("disk"), front.folder.path("disk")).expect("a copy for the model");
    check_data(&front, "vm");
    let mut frozen = Client::of(&front.socket(), "frozen");
    assert!(frozen.nbd.session.abilities().read_only && frozen.read(0, 512).is_ok());
    assert_eq!(front.end().0, Some(0));
    assert_eq!(back.end().0, Some(0));
}

#[test]
fn requests_wait_for_a_remote_that_is_started_again() {
    let folder = disk();
    let Some(kit) = Daemon::nbdkit(&folder) else { return };
    let server = Server::start_in(folder, &["--export", "vm=nbd+unix:///?socket=FOLDER/kit"]);
    let mut client = Client::of(&server.socket(), "vm");
    client.write(0, &[1; 65_536]).expect("it can be written");
    kit.kill();
    // The write before the kill is not flushed, the next one is not sent: the flush covers both.
    let writer = std::thread::spawn(move || {
        client.write(4096, &[2; 4096]).expect("it is written after the restart");
        client.flush().expect("the writes are sent again");
        client.read(0, 65_536).expect("it can be read")
    });
    std::thread::sleep(Duration::from_millis(300));
    write_pattern(&server.folder.path("disk"), 8 << 20);
    let _kit = Daemon::nbdkit(&server.folder).expect("it is installed");
    let data = writer.join().expect("all requests succeed");
    let mut expected = vec![1; 65_536];
    expected[4096..8192].fill(2);
    assert!(data == expected, "a write is lost");
    let disk = std::fs::read(server.folder.path("disk")).expect("the disk");
    assert!(disk[..65_536] == expected, "the remote has not all writes");
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("connection lost") && log.contains("unflushed writes are sent again"), "{log}");
}

#[test]
fn requests_fail_after_the_timeout_and_succeed_again_after_the_restart() {
    let folder = disk();
    let Some(kit) = Daemon::nbdkit(&folder) else { return };
    // The short timeout also applies to a remote that runs, but is slow on a busy machine.
    let server = Server::start_repeatedly(folder, &["--export", "vm=nbd+unix:///?socket=FOLDER/kit,timeout=1s"]);
    let mut client = Client::of(&server.socket(), "vm");
    eventually(|| client.write(0, &[1; 4096])).expect("it can be written");
    kit.kill();
    assert_eq!(client.read(0, 4096).unwrap_err().0, Errno::Io);
    assert_eq!(client.flush().unwrap_err().0, Errno::Io);
    let _kit = Daemon::nbdkit(&server.folder).expect("it is installed");
    eventually(|| client.flush()).expect("the remote is back");
    assert_eq!(eventually(|| client.read(0, 4096)), Ok(vec![1; 4096]));
    let (_, log) = server.end();
    assert!(log.contains("the remote did not complete it in time; the client gets EIO"), "{log}");
}

#[test]
fn without_kept_writes_flushes_fail_after_a_lost_connection() {
    let folder = disk();
    let Some(kit) = Daemon::nbdkit(&folder) else { return };
    let server = Server::start_in(folder, &["--export", "vm=nbd+unix:///?socket=FOLDER/kit,unflushed=0"]);
    let mut client = Client::of(&server.socket(), "vm");
    client.write(0, &[1; 4096]).expect("it can be written");
    client.flush().expect("it can be flushed");
    kit.kill();
    let kit = Daemon::nbdkit(&server.folder).expect("it is installed");
    client.flush().expect("nothing was lost");
    client.write(0, &[2; 4096]).expect("it can be written");
    kit.kill();
    let _kit = Daemon::nbdkit(&server.folder).expect("it is installed");
    assert_eq!(client.read(0, 4096).map(|data| data.len()), Ok(4096));
    assert_eq!(client.flush().unwrap_err().0, Errno::Io);
    assert!(server.end().1.contains("written data may be lost"));
}

#[test]
fn a_remote_that_cannot_be_used_is_named_at_the_start() {
    let folder = disk();
    let Some(kit) = Daemon::nbdkit(&folder) else { return };
    let (socket, gone) = (folder.name("kit"), folder.name("gone"));
    let serve = |export: &str| run(&["serve", "--socket", &folder.name("s"), "--export", export]);
    serve("nbd://no-such-host.invalid/x").refused(1, &["nbd://no-such-host.invalid/x", "cannot connect", "lookup"]);
    serve(&format!("nbd+unix:///?socket={gone}")).refused(1, &[&gone, "cannot connect", "No such file"]);
    let qemu_socket = folder.name("q");
    let options = ["-t", "-r", "-f", "raw", "-x", "vm", "-k", &qemu_socket, &folder.name("disk")];
    if let Some(_qemu) = Daemon::start("qemu-nbd", &options, Path::new(&qemu_socket)) {
        let unknown = format!("nbd+unix:///other?socket={qemu_socket}");
        serve(&unknown).refused(1, &["no export of this name", "'other' not present"]);
        let read_only = format!("nbd+unix:///vm?socket={qemu_socket}");
        serve(&read_only).refused(1, &["exports it read-only", "read-only in --export"]);
        let server = Server::start(&["--export", &format!("{read_only},read-only")]);
        assert_eq!(Client::of(&server.socket(), "").read(0, 512).map(|data| data.len()), Ok(512));
    }
    let tls = format!("nbds+unix:///?socket={socket},tls-authority={}", folder.file("ca.pem", "x"));
    serve(&tls).refused(1, &["ca.pem"]);
    kit.kill();
    serve(&format!("nbd+unix:///?socket={socket}")).refused(1, &["Connection refused"]);
}

/// Serves the disk of a folder with TLS, and requires certificates of clients.
fn with_tls() -> Server {
    let folder = disk();
    let authority = Authority::new(&folder);
    authority.issue_client(&folder);
    let tls = ["--tls-cert", "FOLDER/cert.pem", "--tls-key", "FOLDER/key.pem", "--tls-ca", "FOLDER/ca-cert.pem"];
    std::fs::copy(folder.path("ca.pem"), folder.path("ca-cert.pem")).expect("a copy");
    Server::start_in(folder, &[&["--export", "x=FOLDER/disk", "--listen", "127.0.0.1:0"], &tls[..]].concat())
}

#[test]
fn tls_verifies_both_sides_and_the_name() {
    let back = with_tls();
    let here = back.folder.name("");
    let uri = format!("nbds+unix:///x?socket={}&tls-certificates={here}", back.folder.name("s"));
    let front = Server::start(&["--export", &format!("vm={uri}")]);
    std::fs::copy(back.folder.path("disk"), front.folder.path("disk")).expect("a copy for the model");
    check_data(&front, "vm");
    let serve = |export: &str| run(&["serve", "--socket", &front.folder.name("other"), "--export", export]);
    serve(&format!("{uri}&tls-hostname=example.org")).refused(1, &["TLS failed", "not valid for name", "example.org"]);
    let plain = format!("nbd+unix:///x?socket={}", back.folder.name("s"));
    serve(&plain).refused(1, &["the server requires TLS"]);
    let other = Folder::new();
    Authority::new(&other);
    let stranger = format!("nbds+unix:///x?socket={},tls-authority={}", back.folder.name("s"), other.name("ca.pem"));
    serve(&stranger).refused(1, &["TLS failed", "invalid peer certificate"]);
    assert_eq!(front.end().0, Some(0));
    assert_eq!(back.end().0, Some(0));
}
