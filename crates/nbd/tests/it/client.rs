//! The client with servers that follow the protocol and with servers that violate it.

use crate::machine::{Ended, Shelf, Standing, export, shake, wants};
use hoistway_nbd::client::{
    Collector, Context, ExportInfo, Findings, Goal, Handshake, HandshakeError, HandshakeOptions, Progress,
    ProtocolError, ReplyContent, Session, TlsMode,
};
use hoistway_nbd::server::{Replies, Tls};
use hoistway_nbd::wire::{Command, Errno, chunk, option, rep};

fn shelf() -> Shelf {
    let mut secret = export("secret");
    secret.tls_only = true;
    Shelf(vec![export(""), export("disk"), secret])
}

fn ready(wants: HandshakeOptions, tls: Tls) -> Session {
    match shake(wants, shelf(), tls).1 {
        Ended::Ready(session) => *session,
        ended => panic!("{ended:?}"),
    }
}

fn failed(wants: HandshakeOptions, tls: Tls) -> HandshakeError {
    let (server, ended) = shake(wants, shelf(), tls);
    let Ended::Failed(failure) = ended else { panic!("{ended:?}") };
    // A client that cannot continue sends ABORT.
    assert_eq!(server.standing, Standing::Aborted);
    failure
}

#[test]
fn a_client_enters_by_go_and_by_name_with_all_forms_of_replies() {
    for goal in [Goal::Enter, Goal::EnterByName] {
        for replies in [Replies::Simple, Replies::Structured, Replies::Extended] {
            let session = ready(HandshakeOptions { goal, ..wants(replies) }, Tls::Off);
            assert_eq!((session.info.size, session.replies), (1 << 20, replies));
            assert_eq!(session.contexts.len(), usize::from(replies != Replies::Simple));
            let by_go = goal == Goal::Enter;
            assert_eq!(session.info.name.as_deref(), by_go.then_some("disk"));
            assert_eq!(session.info.block_sizes, by_go.then_some((1, 4096, 1 << 25)));
        }
    }
}

#[test]
fn a_client_uses_tls_as_configured_and_as_the_server_requires() {
    for (tls, wish, encrypted) in [
        (Tls::Off, TlsMode::IfOffered, false),
        (Tls::Offered, TlsMode::IfOffered, true),
        (Tls::Offered, TlsMode::Never, false),
        (Tls::Required, TlsMode::Always, true),
    ] {
        let secret = HandshakeOptions { tls: wish, export: "secret".to_owned(), ..wants(Replies::Structured) };
        let (_, ended) = shake(secret, shelf(), tls);
        assert_eq!(matches!(ended, Ended::Ready(_)), encrypted, "{tls:?} {wish:?} {ended:?}");
        if tls != Tls::Required {
            ready(HandshakeOptions { tls: wish, ..wants(Replies::Structured) }, tls);
        }
    }
    let always = HandshakeOptions { tls: TlsMode::Always, ..wants(Replies::Simple) };
    assert!(matches!(
        failed(always, Tls::Off),
        HandshakeError::Refused { option: option::STARTTLS, kind: rep::ERR_POLICY, .. }
    ));
    let never = failed(wants(Replies::Simple), Tls::Required);
    assert!(matches!(never, HandshakeError::Refused { option: option::GO, kind: rep::ERR_TLS_REQD, .. }));
}

#[test]
fn a_client_lists_exports() {
    let (server, ended) = shake(HandshakeOptions { goal: Goal::List, ..wants(Replies::Simple) }, shelf(), Tls::Offered);
    let Ended::Over(findings) = ended else { panic!("{ended:?}") };
    let pair = |name: &str| (name.to_owned(), format!("about {name}"));
    assert_eq!(findings, Findings { exports: vec![pair(""), pair("disk")], ..Findings::default() });
    assert_eq!(server.standing, Standing::Aborted);
}

#[test]
fn a_client_describes_an_export() {
    let described = HandshakeOptions { goal: Goal::Describe, contexts: vec![], ..wants(Replies::Structured) };
    let (server, ended) = shake(described, shelf(), Tls::Off);
    let Ended::Over(findings) = ended else { panic!("{ended:?}") };
    assert_eq!(findings.contexts, ["base:allocation"]);
    let reported = findings.info.expect("something");
    assert_eq!((reported.size, reported.description.as_deref()), (1 << 20, Some("about disk")));
    assert!(server.session.is_none());
}

#[test]
fn an_unknown_export_fails_with_the_text_of_the_server() {
    let failure = failed(HandshakeOptions { export: "absent".to_owned(), ..wants(Replies::Extended) }, Tls::Off);
    assert_eq!(failure.to_string(), "the server refused option 7 with ERR_UNKNOWN: there is no such export");
}

// Servers of other kinds.

fn greeting(flags: u16) -> Vec<u8> {
    [&b"NBDMAGICIHAVEOPT"[..], &flags.to_be_bytes()].concat()
}

fn reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let head = [&0x0003_e889_0455_65a9u64.to_be_bytes()[..], &option.to_be_bytes(), &kind.to_be_bytes()].concat();
    [&head[..], &(data.len() as u32).to_be_bytes(), data].concat()
}

fn export_info_reply(option: u32) -> Vec<u8> {
    let data = [&[0, 0][..], &(1u64 << 20).to_be_bytes(), &[0, 1]].concat();
    [reply(option, rep::INFO, &data), reply(option, rep::ACK, &[])].concat()
}

/// Runs a handshake with a server that sends these messages one after the other.
fn lead(wants: HandshakeOptions, said: &[Vec<u8>]) -> Result<Progress, HandshakeError> {
    let mut handshake = Handshake::new(wants);
    let mut last = Progress::More;
    for bytes in said {
        last = handshake.receive(bytes, &mut Vec::new())?.1;
    }
    Ok(last)
}

#[test]
fn a_client_falls_back_if_the_server_does_not_support_an_option() {
    // Extended headers, then structured replies, then neither; and GO becomes EXPORT_NAME.
    let mut by_name = [(1u64 << 20).to_be_bytes().to_vec(), vec![0, 1]].concat();
    by_name.extend([0; 124]);
    let said = [
        greeting(1),
        reply(option::EXTENDED_HEADERS, rep::ERR_UNSUP, b"what?"),
        reply(option::STRUCTURED_REPLY, rep::ERR_UNSUP, b""),
        reply(option::GO, rep::ERR_UNSUP, b""),
        by_name,
    ];
    let Ok(Progress::Ready(session)) = lead(wants(Replies::Extended), &said) else { panic!() };
    assert_eq!((session.replies, session.info.size, session.contexts.len()), (Replies::Simple, 1 << 20, 0));
    // Without fixed newstyle EXPORT_NAME is the only option.
    let said = [greeting(2), [(1u64 << 20).to_be_bytes().to_vec(), vec![0, 1]].concat()];
    assert!(matches!(lead(wants(Replies::Extended), &said), Ok(Progress::Ready(_))));
    let list = HandshakeOptions { goal: Goal::List, ..wants(Replies::Simple) };
    assert_eq!(lead(list, &[greeting(0)]).unwrap_err(), HandshakeError::NotFixed);
}

#[test]
fn a_peer_without_nbd_is_detected_by_its_first_bytes() {
    let http = lead(wants(Replies::Simple), &[b"HTTP/1.1 400 Bad Request\r\n".to_vec()]).unwrap_err();
    assert!(matches!(http, HandshakeError::Magic { .. }));
    let oldstyle = [&b"NBDMAGIC"[..], &0x0000_4202_8186_1253u64.to_be_bytes(), &[0; 136]].concat();
    assert_eq!(lead(wants(Replies::Simple), &[oldstyle]).unwrap_err(), HandshakeError::Oldstyle);
}

#[test]
fn invalid_option_replies_end_the_handshake() {
    let go = |data: &[u8], kind| reply(option::GO, kind, data);
    let mut too_long = go(&[], rep::ACK);
    too_long[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    let sizes = |sizes: [u32; 3]| go(&[&[0, 3][..], sizes.map(u32::to_be_bytes).as_flattened()].concat(), rep::INFO);
    for said in [
        vec![0; 20],
        reply(option::LIST, rep::ACK, &[]),
        go(&[], rep::SERVER),
        go(&[], 77),
        go(&[1], rep::ACK),
        go(&[], rep::ACK),
        go(&[0, 0, 1, 2], rep::INFO),
        go(&[0], rep::INFO),
        go(&[0, 1, 0xff], rep::INFO),
        go(&[0, 2, b'a', 0], rep::INFO),
        sizes([3, 4096, 1 << 25]),
        sizes([1 << 17, 1 << 17, 1 << 25]),
        sizes([1, 256, 1 << 25]),
        sizes([1, 4096, 512]),
        too_long,
    ] {
        let outcome = lead(wants(Replies::Simple), &[greeting(3), said.clone()]);
        assert!(outcome.is_err(), "{said:?}: {outcome:?}");
    }
    // Unknown information is ignored.
    let said = [go(&[0x77, 0x77, 1, 2, 3], rep::INFO), export_info_reply(option::GO)].concat();
    assert!(matches!(lead(wants(Replies::Simple), &[greeting(3), said]), Ok(Progress::Ready(_))));
}

#[test]
fn ambiguous_metadata_contexts_end_the_handshake() {
    let context = |id: u8, name: &str| {
        reply(option::SET_META_CONTEXT, rep::META_CONTEXT, &[&[0, 0, 0, id], name.as_bytes()].concat())
    };
    let twice = [context(1, "base:allocation"), context(1, "x-y:z")].concat();
    let said = [greeting(3), reply(option::STRUCTURED_REPLY, rep::ACK, &[]), twice];
    assert!(matches!(lead(wants(Replies::Structured), &said), Err(HandshakeError::Malformed { .. })));
}

#[test]
fn a_finished_handshake_consumes_no_bytes() {
    let mut handshake = Handshake::new(wants(Replies::Simple));
    let mut out = Vec::new();
    assert!(handshake.receive(&[0; 18], &mut out).is_err());
    assert_eq!(handshake.receive(&[], &mut out).unwrap_err(), HandshakeError::Over);
}

// Replies.

/// A client with a READ of 512 bytes at 1024 (1), the same with DF (2), a BLOCK_STATUS of 8192
/// bytes at 0 (3), the same for one extent (4), a WRITE (5) and a FLUSH (6) in flight.
fn asking(replies: Replies) -> Collector {
    let reported = ExportInfo { size: 1 << 20, flags: 0x0dfd, ..ExportInfo::default() };
    let contexts = [(1, "base:allocation"), (7, "x-test:colour")];
    let contexts = contexts.map(|(id, name)| Context { id, name: name.to_owned() }).to_vec();
    let mut collector = Collector::new(Session::new(reported, replies, contexts));
    let mut out = Vec::new();
    for (command, flags, offset, length) in [
        (Command::Read, 0, 1024, 512),
        (Command::Read, 4, 1024, 512),
        (Command::BlockStatus, 0, 0, 8192),
        (Command::BlockStatus, 8, 0, 8192),
        (Command::Write, 0, 0, 512),
        (Command::Flush, 0, 0, 0),
    ] {
        collector.request_unchecked(command, flags, offset, length, &mut out);
    }
    collector
}

fn structured(done: bool, kind: u16, cookie: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = 0x668e_33efu32.to_be_bytes().to_vec();
    bytes.extend(u16::from(done).to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn extended(done: bool, kind: u16, cookie: u64, offset: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = 0x6e8a_278cu32.to_be_bytes().to_vec();
    bytes.extend(u16::from(done).to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend((payload.len() as u64).to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn simple(error: u32, cookie: u64) -> Vec<u8> {
    [&0x6744_6698u32.to_be_bytes()[..], &error.to_be_bytes(), &cookie.to_be_bytes()].concat()
}

fn data(offset: u64, bytes: &[u8]) -> Vec<u8> {
    [&offset.to_be_bytes(), bytes].concat()
}

fn hole(offset: u64, length: u32) -> Vec<u8> {
    data(offset, &length.to_be_bytes())
}

fn error(number: u32, text: &str, rest: &[u8]) -> Vec<u8> {
    [&number.to_be_bytes()[..], &(text.len() as u16).to_be_bytes(), text.as_bytes(), rest].concat()
}

fn extents(context: u32, extents: &[(u32, u32)]) -> Vec<u8> {
    let pairs = extents.iter().flat_map(|(length, flags)| [length.to_be_bytes(), flags.to_be_bytes()].concat());
    context.to_be_bytes().into_iter().chain(pairs).collect()
}

const NONE: u16 = chunk::NONE;
const DATA: u16 = chunk::OFFSET_DATA;
const HOLE: u16 = chunk::OFFSET_HOLE;
const STATUS: u16 = chunk::BLOCK_STATUS;

fn broken(replies: Replies, said: &[Vec<u8>]) -> ProtocolError {
    let mut collector = asking(replies);
    let outcome = collector.receive(&said.concat(), &mut Vec::new());
    let error = outcome.expect_err(&format!("{said:?}"));
    assert_eq!(collector.receive(&[], &mut Vec::new()), Err(error.clone()), "once broken, always broken");
    error
}

#[test]
fn chunks_come_in_any_order_and_between_other_replies() {
    let mut collector = asking(Replies::Structured);
    let said = [
        structured(false, DATA, 1, &data(1524, &[7; 12])),
        structured(true, NONE, 5, &[]),
        structured(false, HOLE, 1, &hole(1024, 100)),
        structured(false, STATUS, 3, &extents(7, &[(8191, 1), (65536, 2)])),
        simple(0, 6),
        structured(false, DATA, 1, &data(1124, &[9; 400])),
        structured(true, STATUS, 3, &extents(1, &[(4096, 0)])),
        structured(true, NONE, 1, &[]),
    ];
    let mut done = Vec::new();
    collector.receive(&said.concat(), &mut done).unwrap();
    let cookies = done.iter().map(|done| done.cookie).collect::<Vec<_>>();
    assert_eq!(cookies, [5, 6, 3, 1]);
    let wanted = [vec![0; 100], vec![9; 400], vec![7; 12]].concat();
    assert_eq!(done[3].result, Ok(ReplyContent::Data(wanted)));
    assert_eq!(collector.session.in_flight(), 2);
}

#[test]
fn a_write_or_flush_may_be_answered_simply_and_a_read_or_status_must_not() {
    for cookie in [1, 2, 3, 4] {
        for error in [0, 5] {
            let broken = broken(Replies::Structured, &[simple(error, cookie)]);
            assert!(matches!(broken, ProtocolError::Chunk { .. }), "{broken:?}");
        }
    }
    let mut done = Vec::new();
    asking(Replies::Structured).receive(&[simple(0, 5), simple(28, 6)].concat(), &mut done).unwrap();
    assert_eq!(done[1].result, Err((Errno::NoSpc, String::new())));
}

#[test]
fn magic_numbers_must_match_the_negotiated_replies() {
    for (replies, said) in [
        (Replies::Simple, structured(true, NONE, 5, &[])),
        (Replies::Simple, extended(true, NONE, 5, 0, &[])),
        (Replies::Structured, extended(true, NONE, 5, 0, &[])),
        (Replies::Extended, structured(true, NONE, 5, &[])),
        (Replies::Extended, simple(0, 5)),
        (Replies::Simple, vec![0; 16]),
    ] {
        assert!(matches!(broken(replies, &[said]), ProtocolError::Magic { .. }));
    }
}

#[test]
fn a_reply_with_an_unknown_or_completed_cookie_breaks_the_connection() {
    for replies in [Replies::Simple, Replies::Structured] {
        assert_eq!(broken(replies, &[simple(0, 99)]), ProtocolError::Cookie { cookie: 99 });
        assert_eq!(broken(replies, &[simple(0, 5), simple(0, 5)]), ProtocolError::Cookie { cookie: 5 });
    }
    let again = [structured(true, NONE, 5, &[]), structured(true, NONE, 5, &[])];
    assert_eq!(broken(Replies::Structured, &again), ProtocolError::Cookie { cookie: 5 });
}

#[test]
fn content_must_lie_within_the_request_once_and_cover_it() {
    for said in [
        vec![structured(true, DATA, 1, &data(1023, &[0; 2]))],
        vec![structured(true, DATA, 1, &data(1535, &[0; 2]))],
        vec![structured(true, DATA, 1, &data(u64::MAX, &[0; 2]))],
        vec![structured(true, HOLE, 1, &hole(1024, 513))],
        vec![structured(true, HOLE, 1, &hole(1024, 0))],
        vec![structured(false, HOLE, 1, &hole(1024, 10)), structured(false, HOLE, 1, &hole(1033, 10))],
        vec![structured(false, HOLE, 1, &hole(1034, 10)), structured(false, HOLE, 1, &hole(1024, 11))],
        vec![structured(false, HOLE, 1, &hole(1024, 10)), structured(false, HOLE, 1, &hole(1024, 10))],
        vec![structured(false, DATA, 5, &data(0, &[0; 2]))],
        vec![structured(false, HOLE, 3, &hole(0, 2))],
        vec![structured(false, DATA, 1, &1024u64.to_be_bytes())],
        vec![structured(false, HOLE, 1, &[0; 16])],
    ] {
        let broken = broken(Replies::Structured, &said);
        assert!(matches!(broken, ProtocolError::Chunk { .. }), "{broken:?}");
    }
    let too_early = [structured(false, HOLE, 1, &hole(1025, 511)), structured(true, NONE, 1, &[])];
    assert_eq!(broken(Replies::Structured, &too_early), ProtocolError::Incomplete { cookie: 1 });
    assert_eq!(broken(Replies::Structured, &[structured(true, NONE, 1, &[])]), ProtocolError::Incomplete { cookie: 1 });
}

#[test]
fn an_unfragmented_read_has_one_chunk() {
    let pieces = [structured(false, HOLE, 2, &hole(1024, 256)), structured(true, HOLE, 2, &hole(1280, 256))];
    assert!(matches!(broken(Replies::Structured, &pieces), ProtocolError::Chunk { cookie: 2, .. }));
    let mut done = Vec::new();
    let said = [structured(false, DATA, 2, &data(1024, &[3; 512])), structured(true, NONE, 2, &[])];
    asking(Replies::Structured).receive(&said.concat(), &mut done).unwrap();
    assert_eq!(done[0].result, Ok(ReplyContent::Data(vec![3; 512])));
}

#[test]
fn errors_have_a_number_a_bounded_text_and_an_offset_within_the_request() {
    for payload in [
        error(0, "nothing", &[]),
        [5u32.to_be_bytes().to_vec(), vec![0xff, 0xff]].concat(),
        vec![0, 0, 0, 5],
        error(5, &"x".repeat(4097), &[]),
    ] {
        let broken = broken(Replies::Structured, &[structured(true, chunk::ERROR, 1, &payload)]);
        assert!(matches!(broken, ProtocolError::Chunk { .. }), "{broken:?}");
    }
    for offset in [1023u64, 1536, u64::MAX] {
        let payload = error(5, "bad", &offset.to_be_bytes());
        let broken = broken(Replies::Structured, &[structured(true, chunk::ERROR_OFFSET, 1, &payload)]);
        assert!(matches!(broken, ProtocolError::Chunk { .. }), "{broken:?}");
    }
    // Content at an offset with an earlier error.
    let said = [
        structured(false, chunk::ERROR_OFFSET, 1, &error(5, "", &1100u64.to_be_bytes())),
        structured(false, HOLE, 1, &hole(1024, 100)),
    ];
    assert!(matches!(broken(Replies::Structured, &said), ProtocolError::Chunk { .. }));
}

#[test]
fn unknown_errors_are_errors_and_unknown_numbers_are_einval() {
    let mut done = Vec::new();
    let said = [
        structured(true, 0x8777, 1, &error(5, "strange", &[1, 2, 3])),
        structured(false, chunk::ERROR, 5, &error(7777, "odd", &[])),
        structured(true, chunk::ERROR, 5, &error(28, "full", &[])),
    ];
    asking(Replies::Structured).receive(&said.concat(), &mut done).unwrap();
    assert_eq!(done[0].result, Err((Errno::Io, "strange".to_owned())));
    assert_eq!(done[1].result, Err((Errno::Inval, "odd".to_owned())));
}

#[test]
fn unknown_chunks_break_the_connection() {
    for kind in [3, 4, 6, 7, 0x7fff] {
        assert!(matches!(
            broken(Replies::Structured, &[structured(true, kind, 3, &[0; 12])]),
            ProtocolError::Chunk { .. }
        ));
    }
    // Extents of 32 bits are not for extended headers.
    let said = extended(true, STATUS, 3, 0, &extents(1, &[(4096, 0)]));
    assert!(matches!(broken(Replies::Extended, &[said]), ProtocolError::Chunk { .. }));
    for said in [structured(false, NONE, 5, &[]), structured(true, NONE, 5, &[0])] {
        assert!(matches!(broken(Replies::Structured, &[said]), ProtocolError::Chunk { .. }));
    }
}

#[test]
fn extents_stay_within_the_request() {
    for (cookie, payload) in [
        (3, extents(1, &[])),
        (3, extents(1, &[(4096, 0)])[..11].to_vec()),
        (3, extents(2, &[(4096, 0)])),
        (3, extents(1, &[(0, 0)])),
        (3, extents(1, &[(8192, 0), (1, 1)])),
        (4, extents(1, &[(8193, 0)])),
        (4, extents(1, &[(100, 0), (100, 1)])),
        (1, extents(1, &[(512, 0)])),
    ] {
        let broken = broken(Replies::Structured, &[structured(false, STATUS, cookie, &payload)]);
        assert!(matches!(broken, ProtocolError::Chunk { .. }), "{broken:?}");
    }
    let twice = structured(false, STATUS, 3, &extents(1, &[(4096, 0)]));
    assert!(matches!(broken(Replies::Structured, &[twice.clone(), twice.clone()]), ProtocolError::Chunk { .. }));
    // A success reports every context.
    let said = [twice, structured(true, NONE, 3, &[])];
    assert_eq!(broken(Replies::Structured, &said), ProtocolError::Incomplete { cookie: 3 });
}

#[test]
fn extended_replies_repeat_the_offset_and_count_their_extents() {
    let wrong = extended(true, DATA, 1, 1025, &data(1024, &[0; 512]));
    assert!(matches!(broken(Replies::Extended, &[wrong]), ProtocolError::Chunk { cookie: 1, .. }));
    let payload = |count: u32| {
        let pair = [4096u64.to_be_bytes(), (1u64 << 40).to_be_bytes()].concat();
        [&1u32.to_be_bytes()[..], &count.to_be_bytes(), &pair].concat()
    };
    for count in [0, 2] {
        let said = extended(false, chunk::BLOCK_STATUS_EXT, 3, 0, &payload(count));
        assert!(matches!(broken(Replies::Extended, &[said]), ProtocolError::Chunk { cookie: 3, .. }));
    }
    let huge = extended(true, DATA, 1, 1024, &[])[..24].iter().copied().chain([0xff; 8]).collect::<Vec<_>>();
    assert!(broken(Replies::Extended, &[huge, 1024u64.to_be_bytes().to_vec()]).to_string().contains("outside"));
    let mut collector = asking(Replies::Extended);
    let mut done = Vec::new();
    let mut other = payload(1);
    other[3] = 7;
    let said = [
        extended(false, chunk::BLOCK_STATUS_EXT, 3, 0, &payload(1)),
        extended(true, chunk::BLOCK_STATUS_EXT, 3, 0, &other),
        extended(true, DATA, 1, 1024, &data(1024, &[6; 512])),
    ];
    collector.receive(&said.concat(), &mut done).unwrap();
    let Ok(ReplyContent::Extents(reported)) = &done[0].result else { panic!("{done:?}") };
    assert_eq!((reported[0].0.as_str(), reported[0].1[0].flags), ("base:allocation", 1 << 40));
    assert_eq!(done[1].result, Ok(ReplyContent::Data(vec![6; 512])));
}

#[test]
fn a_simple_error_reply_to_a_read_has_no_data() {
    let mut done = Vec::new();
    let said = [simple(5, 1), simple(0, 2), vec![8; 512], simple(0, 5)];
    asking(Replies::Simple).receive(&said.concat(), &mut done).unwrap();
    assert_eq!(done[0].result, Err((Errno::Io, String::new())));
    assert_eq!(done[1].result, Ok(ReplyContent::Data(vec![8; 512])));
    assert_eq!(done[2].result, Ok(ReplyContent::Nothing));
}
