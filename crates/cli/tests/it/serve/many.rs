//! Many clients, and clients that are greedy, slow or disconnected.

use std::io::{Read as _, Write as _};

use hoistway_nbd::client::RequestSpec;
use hoistway_nbd::wire::{Command, CommandFlags};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::client::{Client, connect};
use super::server::Server;
use crate::common::Folder;

const MIB: u64 = 1 << 20;

#[test]
fn a_client_that_does_not_receive_uses_bounded_memory() {
    let folder = Folder::new();
    // Data instead of holes, so that each reply needs memory.
    folder.file("disk", vec![1; 64 << 20]);
    let server = Server::start_in(folder, &["--export", "=FOLDER/disk"]);
    let mut greedy = Client::of(&server.socket(), "");
    let mut requests = Vec::new();
    for at in 0..3000 {
        let asked = greedy.nbd.request(
            &RequestSpec { command: Command::Read, flags: CommandFlags::default(), offset: at % 64 * MIB, length: MIB },
            &[],
            &mut requests,
        );
        asked.expect("it may be asked");
    }
    // All requests fit into the socket and the receive buffer; the server accepts as many as it may
    // have in flight.
    greedy.stream.write_all(&requests).expect("the requests are taken");
    let mut modest = Client::of(&server.socket(), "");
    for _ in 0..100 {
        modest.read(0, 4096).expect("a greedy neighbour does not keep others from their data");
    }
    let memory = server.memory_bytes_max();
    assert!(memory < 256 * MIB, "{} MiB for 64 MiB that one client may have under way", memory / MIB);
    for answer in greedy.answers(3000) {
        answer.result.expect("all are answered once they are taken");
    }
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn clients_that_disconnect_at_any_point_leave_no_state() {
    let server = Server::start(&["--export", "=mem:64M"]);
    let mut witness = Client::of(&server.socket(), "");
    witness.write(0, &[3; 8192]).expect("it can be written");
    for kept in [0, 3, 20, 28, 29, 4000, 300_000, MIB as usize + 27] {
        let mut client = Client::of(&server.socket(), "");
        let mut request = Vec::new();
        let data = vec![9; MIB as usize];
        client
            .nbd
            .request(
                &RequestSpec { command: Command::Write, flags: CommandFlags::default(), offset: 0, length: MIB },
                &data,
                &mut request,
            )
            .expect("it may be asked");
        client.stream.write_all(&request[..kept]).expect("the server takes it");
    }
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 100], &[0; 4]] {
        let mut stream = connect(&server.socket());
        stream.write_all(garbage).expect("the server takes it");
        let _ = stream.read(&mut [0; 1000]);
    }
    for reads in [1, 1000] {
        let mut client = Client::of(&server.socket(), "");
        for at in 0..reads {
            client.send(Command::Read, CommandFlags::default(), at * 4096, 4096, &[]);
        }
    }
    assert_eq!(witness.read(0, 8192).expect("it can be read"), vec![3; 8192], "half a write is no write");
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn two_thousand_clients_are_served_at_once() {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let have = setrlimit(Resource::Nofile, most).map_or(limit.current, |()| limit.maximum).unwrap_or(u64::MAX);
    if have < 2100 {
        eprintln!("SKIPPED: {have} open files are not enough for 2000 clients");
        return;
    }
    let server = Server::start(&["--export", "=mem:64M"]);
    let mut clients: Vec<Client> = (0..2000).map(|_| Client::of(&server.socket(), "")).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        let data = (at as u64).to_be_bytes();
        client.send(Command::Write, CommandFlags::default(), at as u64 * 8, 8, &data);
    }
    for client in &mut clients {
        client.answers(1).remove(0).result.expect("it can be written");
    }
    for (at, client) in clients.iter_mut().enumerate() {
        let other = (at as u64 + 1000) % 2000;
        assert_eq!(client.read(other * 8, 8).expect("it can be read"), other.to_be_bytes());
    }
    let memory = server.memory_bytes_max();
    assert!(memory < 256 * MIB, "{} MiB for 2000 clients", memory / MIB);
    assert_eq!(server.end().0, Some(0));
}
