//! Arbitrary streams of bytes: the pieces make no difference, there is no panic, memory is bounded.
//! The checks are in `machine`; the fuzz targets run the same ones.

use std::path::Path;

use crate::machine::{Numbers, Pair, Server, Shelf, Standing, cut, export, wants};
use hoistway_nbd::client::{Handshake, Progress, ReplyContent, RequestSpec, send_option};
use hoistway_nbd::server::{Replies, Tls};
use hoistway_nbd::wire::{Command, CommandFlags, RequestHeader, option};
use hoistway_nbd::{Limits, server};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, RngSeed};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(0x4e42_444d_4147_4943),
        ..ProptestConfig::default()
    }
}

/// Valid and invalid options.
fn any_option() -> impl Strategy<Value = Vec<u8>> {
    let name =
        prop::sample::select(vec![&b"disk"[..], b"", b"secret", b"absent", b"a\0b", b"\xff", b"a long name, that is"]);
    let query = prop::sample::select(vec![&b"base:"[..], b"base:allocation", b"x-y:z", b"nonsense", b"\xff:"]);
    let counted = |bytes: &[u8]| [&(bytes.len() as u32).to_be_bytes(), bytes].concat();
    let info = (name.clone(), vec(0u16..6, 0..4)).prop_map(move |(name, items)| {
        let bytes = items.iter().flat_map(|item| item.to_be_bytes()).collect::<Vec<_>>();
        [counted(name), (items.len() as u16).to_be_bytes().to_vec(), bytes].concat()
    });
    let meta = (name, vec(query, 0..3)).prop_map(move |(name, queries)| {
        let bytes = queries.iter().flat_map(|query| counted(query)).collect::<Vec<_>>();
        [counted(name), (queries.len() as u32).to_be_bytes().to_vec(), bytes].concat()
    });
    let data = prop_oneof![3 => info, 3 => meta, 2 => Just(vec![]), 1 => vec(any::<u8>(), 0..300)];
    (0u32..14, data).prop_map(|(option, data)| {
        let mut bytes = Vec::new();
        send_option(option, &data, &mut bytes);
        bytes
    })
}

/// Request headers, most of them near the limits.
fn any_request(extended: bool) -> impl Strategy<Value = Vec<u8>> {
    let offset = prop_oneof![3 => 0u64..1 << 17, 1 => Just(u64::MAX), 1 => (0u64..258).prop_map(|block| block * 512)];
    let length = prop_oneof![3 => 0u64..4096, 2 => (0u64..260).prop_map(|block| block * 512), 1 => any::<u64>()];
    (0u16..10, 0u16..64, offset, length, any::<bool>()).prop_map(move |(command, flags, offset, length, carries)| {
        let header = RequestHeader { flags, command, cookie: offset ^ length, offset, length };
        let mut bytes = Vec::new();
        if extended {
            header.write_extended(&mut bytes)
        } else {
            header.write_compact(&mut bytes)
        }
        let payload = if extended { flags & 0x20 != 0 } else { command == 1 };
        if payload && carries {
            bytes.resize(bytes.len() + length.min(1 << 17) as usize, 0x5a);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn a_handshake_of_any_options_is_the_same_in_any_pieces(
        choice: u8, flags in prop::sample::select(vec![3u32, 1, 0, 2, 4]), options in vec(any_option(), 0..12)
    ) {
        let mut bytes = vec![choice & 0x7f];
        bytes.extend(flags.to_be_bytes());
        bytes.extend(options.concat());
        crate::machine::handshake(&bytes);
    }

    #[test]
    fn a_handshake_of_garbage_is_the_same_in_any_pieces(bytes in vec(any::<u8>(), 0..600)) {
        crate::machine::handshake(&bytes);
    }

    #[test]
    fn garbage_behind_a_greeting_is_the_same_in_any_pieces(choice: u8, bytes in vec(any::<u8>(), 0..200)) {
        crate::machine::handshake(&[&[choice & 0x7f, 0, 0, 0, 3][..], b"IHAVEOPT", &bytes].concat());
    }

    #[test]
    fn garbage_of_a_server_is_the_same_in_any_pieces(bytes in vec(any::<u8>(), 0..600)) {
        crate::machine::client(&bytes);
    }

    #[test]
    fn garbage_behind_a_servers_greeting_is_the_same_in_any_pieces(choice: u8, bytes in vec(any::<u8>(), 0..200)) {
        let reply = 0x0003_e889_0455_65a9u64.to_be_bytes();
        crate::machine::client(&[&[choice | 0x80][..], b"NBDMAGICIHAVEOPT\0\x03", &reply, &bytes].concat());
    }

    #[test]
    fn chunks_of_a_server_are_the_same_in_any_pieces(
        choice in 0u8..3,
        chunks in vec((0u16..2, prop::sample::select(vec![0u16, 1, 2, 5, 6, 0x8001, 0x8002, 0x8003, 9]), 1u64..8, vec(0u8..70, 0..40)), 0..6),
    ) {
        let mut bytes = vec![choice];
        for (flags, kind, cookie, payload) in chunks {
            match choice {
                0 => bytes.extend([&0x6744_6698u32.to_be_bytes()[..], &u32::from(kind).to_be_bytes()].concat()),
                1 => bytes.extend([&0x668e_33efu32.to_be_bytes()[..], &flags.to_be_bytes(), &kind.to_be_bytes()].concat()),
                _ => bytes.extend([&0x6e8a_278cu32.to_be_bytes()[..], &flags.to_be_bytes(), &kind.to_be_bytes()].concat()),
            }
            bytes.extend(cookie.to_be_bytes());
            match choice {
                0 => {}
                1 => bytes.extend((payload.len() as u32).to_be_bytes()),
                _ => bytes.extend([[0; 8], (payload.len() as u64).to_be_bytes()].concat()),
            }
            bytes.extend(payload);
        }
        crate::machine::client(&bytes);
    }

    #[test]
    fn any_requests_are_answered_the_same_in_any_pieces(
        choice: u8, compact in vec(any_request(false), 0..8), extended in vec(any_request(true), 0..8)
    ) {
        let stream = if choice % 3 == 2 { extended } else { compact };
        crate::machine::requests(&[vec![choice], stream.concat()].concat());
    }

    #[test]
    fn garbage_for_requests_is_the_same_in_any_pieces(bytes in vec(any::<u8>(), 0..400)) {
        crate::machine::requests(&bytes);
    }

    #[test]
    fn garbage_behind_a_requests_magic_is_the_same_in_any_pieces(choice: u8, bytes in vec(any::<u8>(), 0..100)) {
        let magic: [u8; 4] = if choice % 3 == 2 { [0x21, 0xe4, 0x1c, 0x71] } else { [0x25, 0x60, 0x95, 0x13] };
        crate::machine::requests(&[&[choice][..], &magic, &bytes].concat());
    }
}

#[test]
fn a_whole_session_is_the_same_in_any_pieces_in_both_directions() {
    for (number, replies) in [Replies::Simple, Replies::Structured, Replies::Extended].into_iter().enumerate() {
        for seed in 0..30 {
            let mut pair = pair_in_pieces(replies, seed);
            pair.server.piece_bytes = 600;
            let mut numbers = Numbers::new(seed * 3 + number as u64);
            let mut model = vec![0u8; 1 << 16];
            let (mut bytes, mut wanted) = (Vec::new(), Vec::new());
            for _ in 0..40 {
                let (start, length) = (numbers.below(1 << 15), 1 + numbers.below(3000));
                let byte = [0, numbers.below(256) as u8][numbers.below(2)];
                let command = if numbers.below(2) == 0 { Command::Read } else { Command::Write };
                let data = vec![byte; length];
                let flags = CommandFlags::default();
                let asked = pair.client.request(
                    &RequestSpec { command, flags, offset: start as u64, length: length as u64 },
                    &data,
                    &mut bytes,
                );
                asked.expect("a range within the export");
                match command {
                    Command::Read => wanted.push(ReplyContent::Data(model[start..start + length].to_vec())),
                    _ => {
                        model[start..start + length].copy_from_slice(&data);
                        wanted.push(ReplyContent::Nothing);
                    }
                }
            }
            let mut done = Vec::new();
            for piece in cut(&bytes, seed) {
                let mut out = Vec::new();
                pair.server.receive(piece, &mut out);
                for piece in cut(&out, seed + 1) {
                    pair.client.receive(piece, &mut done).unwrap();
                }
            }
            let reported = done.into_iter().map(|done| done.result.expect("success")).collect::<Vec<_>>();
            assert!(reported == wanted, "seed {seed}");
            assert_eq!(pair.client.session.in_flight(), 0);
        }
    }
}

/// Runs a handshake in which both sides receive single pieces.
fn pair_in_pieces(replies: Replies, seed: u64) -> Pair {
    let mut to_client = Vec::new();
    let mut server = Server::new(Shelf(vec![export("disk")]), Tls::Off, Limits::default(), &mut to_client);
    let mut handshake = Handshake::new(wants(replies));
    let mut session = None;
    while session.is_none() {
        let said = std::mem::take(&mut to_client);
        assert!(!said.is_empty(), "both wait");
        for piece in cut(&said, seed) {
            let mut to_server = Vec::new();
            let (used, progress) = handshake.receive(piece, &mut to_server).unwrap();
            for piece in cut(&to_server, seed) {
                server.receive(piece, &mut to_client);
            }
            if let Progress::Ready(ready) = progress {
                assert_eq!(used, piece.len());
                session = Some(*ready);
            }
        }
    }
    assert_eq!(server.standing, Standing::Open);
    Pair { server, client: hoistway_nbd::client::Collector::new(session.expect("a session")) }
}

#[test]
fn a_claim_of_bytes_that_do_not_come_costs_no_memory() {
    let mut out = Vec::new();
    let mut handshake = server::Handshake::new(Tls::Off, Limits::default(), &mut out);
    let claim = [&[0, 0, 0, 3][..], b"IHAVEOPT", &option::GO.to_be_bytes(), &65_536u32.to_be_bytes()].concat();
    handshake.receive(&claim, &Shelf(vec![]), &mut out);
    assert!(handshake.buffered_bytes() < 100, "{}", handshake.buffered_bytes());
    for come in 1..65_536usize {
        handshake.receive(&[0], &Shelf(vec![]), &mut out);
        assert!(handshake.buffered_bytes() <= (2 * come).clamp(16, 65_536));
    }
    handshake.receive(&[0], &Shelf(vec![]), &mut out);
    assert!(handshake.buffered_bytes() <= 4096, "what is done with is given back");
}

/// The corpus: inputs found by fuzzing, and a whole session of each kind.
#[test]
fn the_corpus_holds() {
    for (folder, run) in [
        ("handshake", crate::machine::handshake as fn(&[u8])),
        ("requests", crate::machine::requests),
        ("client", crate::machine::client),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder);
        let mut files = std::fs::read_dir(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
            .map(|entry| entry.expect("an entry").path())
            .collect::<Vec<_>>();
        files.sort();
        assert!(!files.is_empty(), "{} is empty", path.display());
        for file in files {
            eprintln!("{}", file.display());
            run(&std::fs::read(&file).expect("a file"));
        }
    }
}
