//! The records of a connection: however they are cut, the plain text is the same, and the end of a
//! connection is known from its truncation.

use hoistway_tls::ChannelState;
use proptest::prelude::*;

use crate::authority::Authority;
use crate::peer::{Pair, Side, pattern};

/// Exchanges a handshake, 100 bytes and the end of the connection in both directions. The bytes of
/// one direction, counted over the whole connection, are cut once. Returns the number of bytes in
/// each direction: to the channel, and to its peer.
fn connection_cut_at(authority: &Authority, side: Side, cut: Option<(usize, usize)>) -> [usize; 2] {
    let data = pattern(100);
    let mut pair = Pair::new(authority, side, Some("alice"));
    let mut lengths = [0, 0];
    let (mut sent, mut closed) = (false, false);
    loop {
        let mut any = false;
        for (direction, length) in lengths.iter_mut().enumerate() {
            let bytes = if direction == 0 { pair.of_peer() } else { pair.of_channel() };
            any |= !bytes.is_empty();
            let start = *length;
            *length += bytes.len();
            let within = cut.filter(|&(of, at)| of == direction && at > start && at < *length);
            let (first, second) = bytes.split_at(within.map_or(bytes.len(), |(_, at)| at - start));
            for piece in [first, second] {
                if direction == 0 { pair.pass_to_channel(piece) } else { pair.pass_to_peer(piece) }
                    .expect("good records");
            }
        }
        if any || pair.channel.is_handshaking() {
            continue;
        }
        if !sent {
            sent = true;
            pair.channel.send(&data);
            pair.peer_sends(&data);
        } else if !closed {
            closed = true;
            pair.channel.close();
            pair.peer.send_close_notify();
        } else {
            break;
        }
    }
    assert_eq!((&pair.received, &pair.peer_received, pair.state), (&data, &data, ChannelState::Closed), "{cut:?}");
    lengths
}

#[test]
fn a_connection_survives_a_cut_at_every_byte() {
    let authority = Authority::new();
    for side in [Side::Server, Side::Client] {
        // The length of a signature differs by a few bytes.
        let [to_channel, _] = connection_cut_at(&authority, side, None);
        for at in 1..to_channel + 8 {
            connection_cut_at(&authority, side, Some((0, at)));
        }
    }
}

#[test]
fn a_connection_survives_bytes_that_come_one_at_a_time() {
    let authority = Authority::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let mut pair = Pair::of_version(&authority, version);
        pair.exchange(|| 1).expect("good records");
        assert!(!pair.channel.is_handshaking());
        assert_eq!(pair.peer.protocol_version(), Some(version.version), "the server offers both versions");
        let data = pattern(40_000);
        pair.channel.send(&data);
        pair.peer_sends(&data);
        pair.exchange(|| 1).expect("good records");
        assert!(pair.received == data && pair.peer_received == data);
    }
}

#[test]
fn megabytes_are_taken_in_one_call() {
    let authority = Authority::new();
    let data = pattern(5 << 20);
    for side in [Side::Server, Side::Client] {
        let mut pair = Pair::new(&authority, side, None).connect();
        pair.peer_sends(&data);
        pair.channel.send(&data);
        pair.exchange(|| usize::MAX).expect("good records");
        assert!(pair.received == data && pair.peer_received == data, "{side:?}");
    }
}

#[test]
fn data_in_front_of_the_end_of_the_handshake_is_received() {
    // A client may send data right after its last message of the handshake.
    let authority = Authority::new();
    let mut pair = Pair::new(&authority, Side::Server, Some("alice"));
    let hello = pair.of_peer();
    pair.pass_to_channel(&hello).expect("good records");
    let flight = pair.of_channel();
    pair.pass_to_peer(&flight).expect("good records");
    pair.peer_sends(b"at once");
    let last = pair.of_peer();
    assert!(pair.channel.is_handshaking());
    pair.pass_to_channel(&last).expect("good records");
    assert_eq!((pair.received.as_slice(), pair.channel.is_handshaking()), (b"at once".as_slice(), false));
}

#[test]
fn only_close_notify_ends_a_connection_and_data_before_it_are_delivered() {
    let authority = Authority::new();
    for side in [Side::Server, Side::Client] {
        let mut pair = Pair::new(&authority, side, None).connect();
        let data = pattern(20_000);
        pair.peer_sends(&data);
        pair.peer.send_close_notify();
        let bytes = pair.of_peer();
        for (at, byte) in bytes.iter().enumerate() {
            pair.pass_to_channel(&[*byte]).expect("good records");
            let is_last = at + 1 == bytes.len();
            // A connection that is cut here has no end that its peer has confirmed.
            assert_eq!(pair.state == ChannelState::Closed, is_last, "{side:?}: byte {at} of {}", bytes.len());
            assert!(data.starts_with(&pair.received));
        }
        assert_eq!(pair.received, data);
    }
}

#[test]
fn data_and_their_close_notify_are_received_in_one_call() {
    let authority = Authority::new();
    let mut pair = Pair::new(&authority, Side::Server, None).connect();
    pair.peer_sends(b"the last words");
    pair.peer.send_close_notify();
    let bytes = pair.of_peer();
    pair.pass_to_channel(&bytes).expect("good records");
    assert_eq!((pair.received.as_slice(), pair.state), (b"the last words".as_slice(), ChannelState::Closed));
    // The other direction is open until it is closed, too.
    pair.channel.send(b"an answer");
    pair.channel.close();
    let bytes = pair.of_channel();
    pair.pass_to_peer(&bytes).expect("good records");
    assert_eq!(pair.peer_received, b"an answer");
    assert_eq!(std::io::Read::read(&mut pair.peer.reader(), &mut [0]).expect("an end with close_notify"), 0);
}

#[test]
fn an_end_without_close_notify_is_known_to_the_peer_as_a_truncation() {
    let authority = Authority::new();
    let mut pair = Pair::new(&authority, Side::Server, None).connect();
    pair.channel.send(b"not all of it");
    let bytes = pair.of_channel();
    pair.pass_to_peer(&bytes).expect("good records");
    assert_eq!(pair.peer.read_tls(&mut [].as_slice()).expect("the end of the bytes"), 0);
    pair.peer.process_new_packets().expect("nothing is wrong with the records");
    let error = std::io::Read::read(&mut pair.peer.reader(), &mut [0]).expect_err("no close_notify");
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}

#[test]
fn a_changed_byte_of_a_record_is_an_error_with_an_alert_and_gives_no_plain_text() {
    let authority = Authority::new();
    let record_length = |pair: &mut Pair| {
        pair.peer_sends(b"sixteen bytes ok");
        pair.of_peer()
    };
    let length = record_length(&mut Pair::new(&authority, Side::Server, None).connect()).len();
    // The type and the version in front are the same in all records and not looked at.
    for at in 3..length {
        let mut pair = Pair::new(&authority, Side::Server, None).connect();
        let mut record = record_length(&mut pair);
        record[at] ^= 1;
        // A changed length makes the channel wait for more bytes, or take some of the next record.
        let result = pair.pass_to_channel(&record).and_then(|()| pair.pass_to_channel(&[0; 512]));
        assert!(result.is_err() && pair.received.is_empty(), "byte {at}: {:?}", pair.received);
        assert!(pair.channel.has_records(), "byte {at}: an alert");
        let alert = pair.of_channel();
        assert!(matches!(pair.pass_to_peer(&alert), Err(rustls::Error::AlertReceived(_))), "byte {at}");
    }
}

#[test]
fn plain_text_in_place_of_a_hello_is_an_error_with_an_alert() {
    let authority = Authority::new();
    let mut pair = Pair::new(&authority, Side::Server, None);
    pair.pass_to_channel(b"GET / HTTP/1.1\r\nHost: server.test\r\n\r\n").expect_err("no TLS");
    assert!(pair.channel.is_handshaking() && pair.received.is_empty());
    // An alert record in plain text: its type is 21.
    assert_eq!(pair.of_channel().first(), Some(&21));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_plain_text_does_not_depend_on_how_it_is_sent_and_cut(
        is_client: bool,
        messages in prop::collection::vec((any::<bool>(), 0usize..40_000), 1..12),
        cuts in prop::collection::vec(prop_oneof![1usize..6, 1usize..70, 1usize..40_000], 1..40),
    ) {
        let authority = Authority::new();
        let side = if is_client { Side::Client } else { Side::Server };
        let mut pair = Pair::new(&authority, side, None);
        let mut next = cuts.iter().copied().cycle();
        pair.exchange(|| next.next().expect("a cycle")).expect("good records");
        let (mut sent, mut peer_sent) = (Vec::new(), Vec::new());
        for (by_channel, length) in messages {
            let plain = pattern(length);
            if by_channel {
                pair.channel.send(&plain);
                sent.extend(plain);
            } else {
                pair.peer_sends(&plain);
                peer_sent.extend(plain);
            }
            // Every third message waits for the next one.
            if length % 3 > 0 {
                pair.exchange(|| next.next().expect("a cycle")).expect("good records");
            }
        }
        pair.channel.close();
        pair.peer.send_close_notify();
        pair.exchange(|| next.next().expect("a cycle")).expect("good records");
        prop_assert!(pair.received == peer_sent && pair.peer_received == sent);
        prop_assert_eq!(pair.state, ChannelState::Closed);
    }
}
