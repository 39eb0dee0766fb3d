//! The requirements of the protocol on a server before transmission.

use crate::machine::{ALL, Server, Shelf, Standing, export};
use hoistway_nbd::client::send_option;
use hoistway_nbd::server::{Replies, Tls, Violation};
use hoistway_nbd::wire::{OPTION_REPLY_MAGIC, info, option, rep, transmission_flags as flag};
use hoistway_nbd::{Abilities, Export, ExportError, Limits};

const FIXED: u32 = 1;
const FIXED_NO_ZEROES: u32 = 3;

/// A client whose bytes a test writes.
struct Client {
    server: Server,
}

/// Replies to an option: kinds and data.
type RepliesTo = Vec<(u32, Vec<u8>)>;

impl Client {
    fn with(tls: Tls, flags: u32, limits: Limits) -> Client {
        let mut secret = export("secret");
        secret.tls_only = true;
        let shelf = Shelf(vec![export(""), export("disk"), secret]);
        let mut greeting = Vec::new();
        let mut server = Server::new(shelf, tls, limits, &mut greeting);
        assert_eq!(greeting, b"NBDMAGICIHAVEOPT\x00\x03");
        let mut none = Vec::new();
        server.receive(&flags.to_be_bytes(), &mut none);
        assert!(none.is_empty());
        Client { server }
    }

    fn new(tls: Tls) -> Client {
        Client::with(tls, FIXED_NO_ZEROES, Limits::default())
    }

    /// Creates a client on an encrypted connection.
    fn encrypted(tls: Tls) -> Client {
        let mut client = Client::new(tls);
        assert_eq!(client.ask(option::STARTTLS, &[]), ack());
        client
    }

    fn raw(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.server.receive(bytes, &mut out);
        out
    }

    fn ask(&mut self, option: u32, data: &[u8]) -> RepliesTo {
        let mut bytes = Vec::new();
        send_option(option, data, &mut bytes);
        let out = self.raw(&bytes);
        read_replies(&out, option)
    }

    /// Sends an option and returns the type of its single error reply.
    fn refused(&mut self, option: u32, data: &[u8]) -> u32 {
        let replies = self.ask(option, data);
        assert_eq!(replies.len(), 1, "{replies:?}");
        assert!(!replies[0].1.is_empty(), "an error has words");
        replies[0].0
    }

    fn violation(&self) -> &Violation {
        let Standing::Violated(violation) = &self.server.standing else { panic!("{:?}", self.server.standing) };
        violation
    }

    fn still_works(&mut self) {
        assert_eq!(self.server.standing, Standing::Open);
        assert_eq!(self.ask(option::INFO, &go("", &[])).last(), ack().last());
    }
}

fn read_replies(mut out: &[u8], option: u32) -> RepliesTo {
    let mut replies = Vec::new();
    while !out.is_empty() {
        assert_eq!(out[..8], OPTION_REPLY_MAGIC.to_be_bytes());
        assert_eq!(out[8..12], option.to_be_bytes());
        let [kind, bytes] = [12, 16].map(|at| u32::from_be_bytes(out[at..at + 4].try_into().unwrap()));
        replies.push((kind, out[20..20 + bytes as usize].to_vec()));
        out = &out[20 + bytes as usize..];
    }
    replies
}

fn ack() -> RepliesTo {
    vec![(rep::ACK, vec![])]
}

fn counted(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text].concat()
}

fn go(name: &str, items: &[u16]) -> Vec<u8> {
    let items_bytes = items.iter().flat_map(|item| item.to_be_bytes()).collect::<Vec<_>>();
    [counted(name.as_bytes()), (items.len() as u16).to_be_bytes().to_vec(), items_bytes].concat()
}

fn meta(name: &str, queries: &[&[u8]]) -> Vec<u8> {
    let mut data = counted(name.as_bytes());
    data.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(counted(query)));
    data
}

fn transmission_flags_of(replies: &RepliesTo) -> u16 {
    let (_, data) = replies.iter().find(|(kind, data)| *kind == rep::INFO && data[..2] == [0, 0]).expect("the size");
    assert_eq!(data.len(), 12);
    u16::from_be_bytes([data[10], data[11]])
}

/// Returns all options and some unknown ones, with valid data.
fn all_options() -> Vec<(u32, Vec<u8>)> {
    let mut all = vec![
        (option::LIST, vec![]),
        (option::INFO, go("disk", &[])),
        (option::GO, go("disk", &[])),
        (option::STRUCTURED_REPLY, vec![]),
        (option::LIST_META_CONTEXT, meta("disk", &[])),
        (option::SET_META_CONTEXT, meta("disk", &[])),
        (option::EXTENDED_HEADERS, vec![]),
    ];
    all.extend([0, 4, 12, 99, u32::MAX].map(|option| (option, b"whatever".to_vec())));
    all
}

// The greeting.

#[test]
fn the_greeting_offers_fixed_newstyle_and_no_zeroes_and_nothing_else() {
    // `Client::with` compares it byte for byte.
    Client::new(Tls::Off);
}

#[test]
fn unknown_client_flags_close_the_connection() {
    for flags in [4, 7, 0x8000_0000, u32::MAX] {
        let client = Client::with(Tls::Off, flags, Limits::default());
        assert_eq!(*client.violation(), Violation::ClientFlags { flags });
    }
}

#[test]
fn a_wrong_magic_number_before_an_option_closes_the_connection() {
    let mut client = Client::new(Tls::Off);
    assert!(client.raw(b"IHAVEOPS\0\0\0\x03\0\0\0\0").is_empty());
    assert!(matches!(client.violation(), Violation::Magic { .. }));
}

#[test]
fn a_finished_handshake_sends_no_replies() {
    let mut client = Client::new(Tls::Off);
    assert_eq!(client.ask(option::ABORT, &[]), ack());
    assert_eq!(client.server.standing, Standing::Aborted);
    assert!(client.ask(option::LIST, &[]).is_empty());
    assert_eq!(*client.violation(), Violation::Over);
}

// EXPORT_NAME.

#[test]
fn export_name_is_answered_with_size_flags_and_124_zeroes() {
    let mut client = Client::with(Tls::Off, FIXED, Limits::default());
    let mut bytes = Vec::new();
    send_option(option::EXPORT_NAME, b"disk", &mut bytes);
    let out = client.raw(&bytes);
    assert_eq!(out.len(), 8 + 2 + 124);
    assert_eq!(out[..8], (1u64 << 20).to_be_bytes());
    assert_eq!(out[8..10], ALL.flags(false).to_be_bytes());
    assert!(out[10..].iter().all(|byte| *byte == 0));
    assert_eq!(client.server.session.as_ref().unwrap().replies, Replies::Simple);
}

#[test]
fn the_zeroes_are_omitted_if_both_sides_agree() {
    let mut client = Client::with(Tls::Off, FIXED_NO_ZEROES, Limits::default());
    let mut bytes = Vec::new();
    send_option(option::EXPORT_NAME, b"", &mut bytes);
    assert_eq!(client.raw(&bytes).len(), 10);
    assert_eq!(client.server.session.as_ref().unwrap().export.name, "");
}

#[test]
fn export_name_of_an_unknown_export_closes_the_connection() {
    for name in [&b"absent"[..], b"di\0sk", b"\xff\xfe", &[b'x'; 4097]] {
        let mut client = Client::new(Tls::Off);
        assert!(client.ask(option::EXPORT_NAME, name).is_empty());
        assert!(matches!(client.violation(), Violation::Unavailable { .. }), "{name:?}");
    }
}

#[test]
fn a_client_without_fixed_newstyle_can_only_send_export_name() {
    for flags in [0, 2] {
        let mut client = Client::with(Tls::Off, flags, Limits::default());
        let mut bytes = Vec::new();
        send_option(option::EXPORT_NAME, b"disk", &mut bytes);
        assert_eq!(client.raw(&bytes).len(), if flags == 0 { 134 } else { 10 });
        assert!(client.server.session.is_some());
        for option in [option::LIST, option::STARTTLS, option::GO, option::ABORT, 99] {
            let mut client = Client::with(Tls::Offered, flags, Limits::default());
            assert!(client.ask(option, &[]).is_empty());
            assert_eq!(*client.violation(), Violation::NotFixed { option });
        }
    }
}

// ABORT, LIST, unknown options.

#[test]
fn abort_is_acknowledged_whatever_data_it_has() {
    for data in [vec![], b"goodbye".to_vec(), vec![0; 100_000]] {
        let mut client = Client::new(Tls::Off);
        assert_eq!(client.ask(option::ABORT, &data), ack());
        assert_eq!(client.server.standing, Standing::Aborted);
    }
}

#[test]
fn list_sends_names_and_descriptions_then_acknowledges() {
    let mut client = Client::encrypted(Tls::Required);
    let replies = client.ask(option::LIST, &[]);
    let entry = |name: &str, description: &str| {
        (rep::SERVER, [counted(name.as_bytes()), description.as_bytes().to_vec()].concat())
    };
    let wanted =
        [entry("", "about "), entry("disk", "about disk"), entry("secret", "about secret"), (rep::ACK, vec![])];
    assert_eq!(replies, wanted);
}

#[test]
fn options_without_data_are_refused_with_data() {
    for option in [option::LIST, option::STARTTLS, option::STRUCTURED_REPLY, option::EXTENDED_HEADERS] {
        let mut client = Client::new(Tls::Offered);
        assert_eq!(client.refused(option, b"x"), rep::ERR_INVALID);
        client.still_works();
    }
}

#[test]
fn unknown_options_are_unsupported_and_the_next_one_is_understood() {
    for option in [0, 4, 12, 99, u32::MAX] {
        let mut client = Client::new(Tls::Off);
        assert_eq!(client.refused(option, &[7; 1000]), rep::ERR_UNSUP);
        client.still_works();
    }
}

// INFO and GO.

#[test]
fn go_sends_size_and_flags_and_enters_without_zeroes() {
    let mut client = Client::with(Tls::Off, FIXED, Limits::default());
    let replies = client.ask(option::GO, &go("disk", &[]));
    assert_eq!(replies.len(), 2);
    assert_eq!(replies[0].1[2..10], (1u64 << 20).to_be_bytes());
    assert_eq!(transmission_flags_of(&replies), ALL.flags(false));
    assert_eq!(replies[1], (rep::ACK, vec![]));
    assert_eq!(client.server.session.as_ref().unwrap().export.name, "disk");
}

#[test]
fn go_answers_all_known_information_requests() {
    let mut client = Client::new(Tls::Off);
    // Unknown requests are ignored, and so is a repetition.
    let items = [info::NAME, 77, info::BLOCK_SIZE, info::DESCRIPTION, info::EXPORT, info::NAME, 0xffff];
    let replies = client.ask(option::GO, &go("disk", &items));
    let reported = |kind: u16, rest: &[u8]| (rep::INFO, [&kind.to_be_bytes(), rest].concat());
    let sizes = [1u32, 4096, 1 << 25].map(u32::to_be_bytes);
    assert_eq!(replies[1], reported(info::NAME, b"disk"));
    assert_eq!(replies[2], reported(info::DESCRIPTION, b"about disk"));
    assert_eq!(replies[3], reported(info::BLOCK_SIZE, sizes.as_flattened()));
    assert_eq!(replies[4..], ack());
}

#[test]
fn info_sends_the_same_as_go_and_does_not_enter() {
    let mut client = Client::new(Tls::Off);
    let data = go("disk", &[info::BLOCK_SIZE, info::NAME]);
    let reported = client.ask(option::INFO, &data);
    assert!(client.server.session.is_none());
    assert_eq!(client.ask(option::GO, &data), reported);
    assert!(client.server.session.is_some());
}

#[test]
fn unusual_block_sizes_are_sent_without_a_request() {
    for (block_min, payload_max) in [(512, 1 << 25), (1, 1 << 20)] {
        let mut client = Client::new(Tls::Off);
        client.server.shelf.0[1].block_min = block_min;
        client.server.shelf.0[1].payload_max = payload_max;
        let replies = client.ask(option::INFO, &go("disk", &[]));
        let sizes = [block_min, 4096, payload_max].map(u32::to_be_bytes);
        assert_eq!(replies[1].1, [&info::BLOCK_SIZE.to_be_bytes(), sizes.as_flattened()].concat());
    }
}

#[test]
fn info_and_go_refuse_unknown_exports_and_invalid_data() {
    let long = "x".repeat(4097);
    let mut wrong_count = go("disk", &[1, 2]);
    *wrong_count.last_chunk_mut::<6>().unwrap() = [0, 3, 0, 1, 0, 2];
    let mut longer_than_data = go("disk", &[]);
    longer_than_data[3] = 7;
    let mut endless = go("disk", &[]);
    endless[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    for option in [option::INFO, option::GO] {
        for (data, kind) in [
            (go("absent", &[]), rep::ERR_UNKNOWN),
            (go("di\0sk", &[]), rep::ERR_INVALID),
            (go(&long, &[]), rep::ERR_TOO_BIG),
            ([&counted(b"\xff\xff")[..], &[0, 0]].concat(), rep::ERR_INVALID),
            (wrong_count.clone(), rep::ERR_INVALID),
            (longer_than_data.clone(), rep::ERR_INVALID),
            (endless.clone(), rep::ERR_INVALID),
            ([go("disk", &[]), vec![0]].concat(), rep::ERR_INVALID),
            (go("disk", &[])[..9].to_vec(), rep::ERR_INVALID),
            (vec![], rep::ERR_INVALID),
        ] {
            let mut client = Client::new(Tls::Off);
            assert_eq!(client.refused(option, &data), kind, "{data:?}");
            client.still_works();
        }
    }
}

#[test]
fn df_is_advertised_with_structured_replies_only() {
    for (agreed, df) in
        [(None, 0), (Some(option::STRUCTURED_REPLY), flag::SEND_DF), (Some(option::EXTENDED_HEADERS), flag::SEND_DF)]
    {
        let mut client = Client::new(Tls::Off);
        if let Some(option) = agreed {
            assert_eq!(client.ask(option, &[]), ack());
        }
        let replies = client.ask(option::INFO, &go("disk", &[]));
        assert_eq!(transmission_flags_of(&replies) & flag::SEND_DF, df);
    }
}

#[test]
fn fast_zero_is_not_advertised_without_write_zeroes() {
    let abilities = Abilities { write_zeroes: false, ..ALL };
    assert_eq!(abilities.flags(true) & flag::SEND_FAST_ZERO, 0);
    assert_eq!(Abilities::default().flags(false), flag::HAS_FLAGS);
    assert_eq!(ALL.flags(true), 0b1101_1111_1101);
    let reported = Abilities { block_status: false, ..ALL };
    assert_eq!(Abilities::from_flags(ALL.flags(true)), reported);
}

// Structured replies, extended headers.

#[test]
fn replies_have_the_negotiated_form() {
    for (options, replies) in [
        (&[][..], Replies::Simple),
        (&[option::STRUCTURED_REPLY], Replies::Structured),
        (&[option::EXTENDED_HEADERS], Replies::Extended),
        (&[option::STRUCTURED_REPLY, option::EXTENDED_HEADERS], Replies::Extended),
    ] {
        let mut client = Client::new(Tls::Off);
        for option in options {
            assert_eq!(client.ask(*option, &[]), ack());
        }
        client.ask(option::GO, &go("disk", &[]));
        assert_eq!(client.server.session.as_ref().unwrap().replies, replies);
    }
}

#[test]
fn a_repeated_negotiation_is_refused() {
    for (first, second) in [
        (option::STRUCTURED_REPLY, option::STRUCTURED_REPLY),
        (option::EXTENDED_HEADERS, option::EXTENDED_HEADERS),
        (option::EXTENDED_HEADERS, option::STRUCTURED_REPLY),
    ] {
        let mut client = Client::new(Tls::Off);
        assert_eq!(client.ask(first, &[]), ack());
        assert_eq!(client.refused(second, &[]), rep::ERR_INVALID);
        client.still_works();
    }
}

// Metadata contexts.

fn context(id: u32) -> (u32, Vec<u8>) {
    (rep::META_CONTEXT, [&id.to_be_bytes(), &b"base:allocation"[..]].concat())
}

fn structured() -> Client {
    let mut client = Client::new(Tls::Off);
    assert_eq!(client.ask(option::STRUCTURED_REPLY, &[]), ack());
    client
}

fn enters_with_context(mut client: Client, name: &str) -> bool {
    client.ask(option::GO, &go(name, &[]));
    client.server.session.expect("a session").base_allocation
}

#[test]
fn metadata_contexts_need_structured_replies() {
    for option in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        let mut client = Client::new(Tls::Off);
        assert_eq!(client.refused(option, &meta("disk", &[b"base:allocation"])), rep::ERR_INVALID);
        assert!(!enters_with_context(client, "disk"));
    }
}

#[test]
fn contexts_are_listed_without_query_by_wildcard_and_by_name() {
    let wildcards: [&[&[u8]]; 4] = [&[], &[b"base:"], &[b"base:allocation"], &[b"x-y:z", b"base:", b"base:"]];
    for queries in wildcards {
        let mut client = structured();
        assert_eq!(client.ask(option::LIST_META_CONTEXT, &meta("disk", queries)), [context(0), ack().remove(0)]);
        // Listing selects nothing.
        assert!(!enters_with_context(client, "disk"));
    }
}

#[test]
fn unknown_namespaces_and_leaves_are_ignored() {
    let unknown: [&[&[u8]]; 3] = [&[b"qemu:dirty-bitmap:x"], &[b"base:colour"], &[b"x-a:", b"base:alloc"]];
    for option in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        for queries in unknown {
            assert_eq!(structured().ask(option, &meta("disk", queries)), ack());
        }
    }
}

#[test]
fn contexts_are_selected_by_name_only() {
    let mut client = structured();
    let replies = client.ask(option::SET_META_CONTEXT, &meta("disk", &[b"x-y:z", b"base:allocation"]));
    assert_eq!(replies, [context(1), ack().remove(0)]);
    assert!(enters_with_context(client, "disk"));
    let nothing: [&[&[u8]]; 2] = [&[], &[b"base:"]];
    for queries in nothing {
        let mut client = structured();
        assert_eq!(client.ask(option::SET_META_CONTEXT, &meta("disk", queries)), ack());
        assert!(!enters_with_context(client, "disk"));
    }
}

#[test]
fn contexts_belong_to_the_export_that_they_were_set_for() {
    let mut client = structured();
    client.ask(option::SET_META_CONTEXT, &meta("disk", &[b"base:allocation"]));
    assert!(!enters_with_context(client, ""));
}

#[test]
fn each_selection_of_contexts_replaces_the_previous_one_even_if_it_fails() {
    let too_long = vec![0; 70_000];
    let later: [(Vec<u8>, u32); 5] = [
        (meta("disk", &[]), rep::ACK),
        (meta("disk", &[b"base:"]), rep::ACK),
        (meta("absent", &[b"base:allocation"]), rep::ERR_UNKNOWN),
        (b"nonsense".to_vec(), rep::ERR_INVALID),
        (too_long, rep::ERR_TOO_BIG),
    ];
    for (data, kind) in later {
        let mut client = structured();
        client.ask(option::SET_META_CONTEXT, &meta("disk", &[b"base:allocation"]));
        assert_eq!(client.ask(option::SET_META_CONTEXT, &data)[0].0, kind);
        assert!(!enters_with_context(client, "disk"));
    }
}

#[test]
fn malformed_queries_are_invalid() {
    let mut beyond = meta("disk", &[b"base:allocation"]);
    beyond[12 + 3] = 200;
    let mut many = meta("disk", &[]);
    many[8..12].copy_from_slice(&u32::MAX.to_be_bytes());
    for option in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        for data in [
            beyond.clone(),
            many.clone(),
            [meta("disk", &[b"base:allocation"]), vec![0]].concat(),
            meta("disk", &[b"base"]),
            meta("disk", &[b":allocation"]),
            meta("disk", &[b""]),
            meta("disk", &[b"base:\xff"]),
            meta("disk", &[b"base:\0"]),
            meta("disk", &[&[b'a'; 4097]]),
            counted(b"disk"),
            vec![],
        ] {
            let mut client = structured();
            assert_eq!(client.refused(option, &data), rep::ERR_INVALID, "{data:?}");
            client.still_works();
        }
    }
}

#[test]
fn an_export_without_block_status_has_no_context() {
    let mut client = structured();
    client.server.shelf.0[1].abilities.block_status = false;
    assert_eq!(client.ask(option::LIST_META_CONTEXT, &meta("disk", &[])), ack());
    assert_eq!(client.ask(option::SET_META_CONTEXT, &meta("disk", &[b"base:allocation"])), ack());
    assert!(!enters_with_context(client, "disk"));
}

// TLS.

#[test]
fn a_server_without_tls_refuses_starttls_and_never_asks_for_tls() {
    let mut client = Client::new(Tls::Off);
    assert_eq!(client.refused(option::STARTTLS, &[]), rep::ERR_POLICY);
    for (option, data) in all_options() {
        let replies = Client::new(Tls::Off).ask(option, &data);
        assert!(replies.iter().all(|(kind, _)| *kind != rep::ERR_TLS_REQD), "{option}");
    }
    // Exports for encrypted connections only do not exist here.
    assert_eq!(client.refused(option::GO, &go("secret", &[])), rep::ERR_UNKNOWN);
    assert_eq!(client.ask(option::LIST, &[]).len(), 2 + 1);
}

#[test]
fn a_server_that_requires_tls_refuses_all_other_options_before_it() {
    for (option, data) in all_options() {
        let mut client = Client::new(Tls::Required);
        assert_eq!(client.refused(option, &data), rep::ERR_TLS_REQD, "{option}");
        assert_eq!(client.refused(option, &[0; 70_000]), rep::ERR_TLS_REQD, "{option}");
        assert_eq!(client.ask(option::STARTTLS, &[]), ack());
    }
    let mut client = Client::new(Tls::Required);
    assert_eq!(client.ask(option::ABORT, &[]), ack());
    for flags in [0, FIXED] {
        let mut client = Client::with(Tls::Required, flags, Limits::default());
        assert!(client.ask(option::EXPORT_NAME, b"disk").is_empty());
        assert!(matches!(client.violation(), Violation::Unavailable { .. }));
    }
}

#[test]
fn tls_is_not_required_twice_and_a_second_starttls_is_invalid() {
    for tls in [Tls::Offered, Tls::Required] {
        let mut client = Client::encrypted(tls);
        assert_eq!(client.refused(option::STARTTLS, &[]), rep::ERR_INVALID);
        for (option, data) in all_options() {
            let replies = Client::encrypted(tls).ask(option, &data);
            assert!(replies.iter().all(|(kind, _)| *kind != rep::ERR_TLS_REQD), "{option}");
        }
        for name in ["disk", "secret"] {
            assert_eq!(Client::encrypted(tls).ask(option::GO, &go(name, &[])).last(), ack().last());
        }
    }
}

#[test]
fn optional_tls_is_required_for_tls_only_exports_alone() {
    for option in [option::INFO, option::GO] {
        let mut client = Client::new(Tls::Offered);
        assert_eq!(client.refused(option, &go("secret", &[])), rep::ERR_TLS_REQD);
        assert_eq!(client.refused(option, &go("absent", &[])), rep::ERR_UNKNOWN);
        assert_eq!(client.ask(option, &go("disk", &[])).last(), ack().last());
    }
    let mut client = Client::new(Tls::Offered);
    assert!(client.ask(option::EXPORT_NAME, b"secret").is_empty());
    assert!(matches!(client.violation(), Violation::Unavailable { .. }));
    // No other option may require TLS; a tls_only export is not listed and has no contexts.
    let mut client = Client::new(Tls::Offered);
    assert_eq!(client.ask(option::LIST, &[]).len(), 2 + 1);
    assert_eq!(client.ask(option::STRUCTURED_REPLY, &[]), ack());
    for option in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        assert_eq!(client.refused(option, &meta("secret", &[b"base:allocation"])), rep::ERR_UNKNOWN);
    }
}

#[test]
fn starttls_resets_the_negotiation() {
    for agreed in [option::STRUCTURED_REPLY, option::EXTENDED_HEADERS] {
        let mut client = Client::new(Tls::Offered);
        assert_eq!(client.ask(agreed, &[]), ack());
        client.ask(option::SET_META_CONTEXT, &meta("disk", &[b"base:allocation"]));
        assert_eq!(client.ask(option::STARTTLS, &[]), ack());
        assert_eq!(client.refused(option::LIST_META_CONTEXT, &meta("disk", &[])), rep::ERR_INVALID);
        client.ask(option::GO, &go("disk", &[]));
        let session = client.server.session.unwrap();
        assert_eq!((session.replies, session.base_allocation), (Replies::Simple, false));
    }
}

#[test]
fn plain_bytes_after_starttls_are_an_attack() {
    for tls in [Tls::Offered, Tls::Required] {
        let mut client = Client::new(tls);
        let mut bytes = Vec::new();
        send_option(option::STARTTLS, &[], &mut bytes);
        send_option(option::GO, &go("secret", &[]), &mut bytes);
        let out = client.raw(&bytes);
        assert_eq!(read_replies(&out, option::STARTTLS), ack());
        assert_eq!(*client.violation(), Violation::Injected);
        assert!(client.server.session.is_none());
    }
}

// Shutdown and limits.

#[test]
fn a_server_in_shutdown_refuses_all_options_but_abort() {
    for (option, data) in all_options() {
        let mut client = Client::new(Tls::Off);
        client.server.shut_down();
        assert_eq!(client.refused(option, &data), rep::ERR_SHUTDOWN);
        assert_eq!(client.ask(option::ABORT, &[]), ack());
    }
    let mut client = Client::new(Tls::Off);
    client.server.shut_down();
    assert!(client.ask(option::EXPORT_NAME, b"disk").is_empty());
    assert!(matches!(client.violation(), Violation::Unavailable { .. }));
}

#[test]
fn a_client_with_too_many_options_is_disconnected() {
    let mut client = Client::new(Tls::Off);
    for _ in 0..128 {
        client.ask(option::LIST, &[]);
        assert_eq!(client.server.standing, Standing::Open);
    }
    assert!(client.ask(option::LIST, &[]).is_empty());
    assert_eq!(*client.violation(), Violation::Options { options_max: 128 });
}

#[test]
fn overlong_options_are_skipped_up_to_a_limit() {
    let mut client = Client::new(Tls::Off);
    // 10 * 100,000 bytes are within 1 MiB; another 100,000 are not.
    for _ in 0..10 {
        assert_eq!(client.refused(option::GO, &[0; 100_000]), rep::ERR_TOO_BIG);
        assert_eq!(client.refused(99, b"x"), rep::ERR_UNSUP);
    }
    client.still_works();
    assert!(client.ask(option::GO, &[0; 100_000]).is_empty());
    assert!(matches!(client.violation(), Violation::Skipped { bytes: 100_000, bytes_max: 1_048_576 }));
}

#[test]
fn an_overlong_unknown_option_is_reported_as_unknown() {
    let mut client = Client::new(Tls::Off);
    assert_eq!(client.refused(99, &[0; 100_000]), rep::ERR_UNSUP);
    client.still_works();
}

#[test]
fn an_option_of_4_gib_closes_the_connection_at_its_header() {
    for option in [option::GO, option::LIST, option::EXPORT_NAME, option::ABORT, 99] {
        let mut client = Client::new(Tls::Off);
        let header = [&b"IHAVEOPT"[..], &option.to_be_bytes(), &u32::MAX.to_be_bytes()].concat();
        assert!(client.raw(&header).is_empty());
        assert!(matches!(client.violation(), Violation::Skipped { .. } | Violation::Unavailable { .. }));
    }
}

#[test]
fn replies_beyond_the_limit_are_too_big() {
    let limits = Limits { reply_bytes_max: 500, ..Limits::default() };
    let mut client = Client::with(Tls::Off, FIXED_NO_ZEROES, limits);
    // Each entry: 20 + 4 + 1 + 31 = 56 bytes and more; a hundred of them are beyond 500.
    client.server.shelf = Shelf((0..100).map(|n| export(&format!("{n:031}"))).collect());
    assert_eq!(client.refused(option::LIST, &[]), rep::ERR_TOO_BIG);
    let name = format!("{:031}", 7);
    // 20 + 12 bytes each: fifteen of them are within the limit.
    for _ in 0..15 {
        assert_eq!(client.ask(option::INFO, &go(&name, &[])).last(), ack().last());
    }
    assert_eq!(client.refused(option::INFO, &go(&name, &[])), rep::ERR_TOO_BIG);
    // Later options are still answered.
    assert_eq!(client.ask(option::GO, &go(&name, &[])).last(), ack().last());
}

#[test]
fn an_export_is_checked_before_it_is_sent() {
    assert_eq!(export("disk").check(), Ok(()));
    let wrong = |change: fn(&mut Export)| {
        let mut export = export("disk");
        change(&mut export);
        export.check().expect_err("something is wrong with it")
    };
    assert!(matches!(wrong(|e| e.name = "x".repeat(4097)), ExportError::Text { what: "name", bytes: 4097, .. }));
    assert!(matches!(wrong(|e| e.description = "a\0b".to_owned()), ExportError::Text { what: "description", .. }));
    assert!(matches!(wrong(|e| e.size = 1 << 63), ExportError::Size { .. }));
    for change in [
        (|e: &mut Export| e.block_min = 0) as fn(&mut Export),
        |e| e.block_min = 3,
        |e| e.block_min = 1 << 17,
        |e| e.block_preferred = 256,
        |e| (e.block_min, e.block_preferred) = (4096, 512),
        |e| e.block_preferred = 5000,
        |e| e.payload_max = 65535,
        |e| (e.block_preferred, e.payload_max) = (1 << 20, 1 << 19),
    ] {
        assert!(matches!(wrong(change), ExportError::Blocks { .. }));
    }
}
