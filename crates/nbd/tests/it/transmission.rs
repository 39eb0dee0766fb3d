//! The requirements of the protocol on a server in transmission, in all three forms of replies.

use crate::machine::{ALL, Answer, Pair, Standing, export};
use hoistway_nbd::client::{ReplyContent, RequestError, RequestSpec, Status};
use hoistway_nbd::server::{Extent, Parsed, Replies, Request, Session, Violation};
use hoistway_nbd::wire::{Command, CommandFlags, Errno, RequestHeader, command_flags as flag};
use hoistway_nbd::{Abilities, Export, Limits};

const ALL_REPLIES: [Replies; 3] = [Replies::Simple, Replies::Structured, Replies::Extended];
const IN_CHUNKS: [Replies; 2] = [Replies::Structured, Replies::Extended];
const NO_FLAGS: CommandFlags =
    CommandFlags { fua: false, no_hole: false, dont_fragment: false, one_extent: false, fast_zero: false };

fn changed(change: impl FnOnce(&mut Export)) -> Export {
    let mut export = export("disk");
    change(&mut export);
    export
}

/// Returns the flags of a WRITE: extended headers need the flag of a payload.
fn write_flags(replies: Replies) -> u16 {
    if replies == Replies::Extended { flag::PAYLOAD_LEN } else { 0 }
}

/// Sends a request without checks, with the payload that its header announces.
fn ask(pair: &mut Pair, command: Command, flags: u16, offset: u64, length: u64) -> Answer {
    let own = if command == Command::Write { write_flags(pair.client.session.replies) } else { 0 };
    let payload = if command == Command::Write { length as usize } else { 0 };
    pair.unchecked(command, flags | own, offset, length, payload)
}

fn errno(answer: Answer) -> Errno {
    match answer {
        Err((errno, _)) => errno,
        Ok(outcome) => panic!("{outcome:?}"),
    }
}

const ALL_COMMANDS: [Command; 7] = [
    Command::Read,
    Command::Write,
    Command::Flush,
    Command::Trim,
    Command::Cache,
    Command::WriteZeroes,
    Command::BlockStatus,
];

/// Returns a valid range for a command.
fn good_range(command: Command) -> (u64, u64) {
    if command == Command::Flush { (0, 0) } else { (4096, 512) }
}

#[test]
fn every_command_is_answered_in_every_reply_format() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, export("disk"));
        let written = ask(&mut pair, Command::Write, flag::FUA, 4096, 512);
        assert_eq!(written, Ok(ReplyContent::Nothing));
        assert_eq!(ask(&mut pair, Command::Read, 0, 4095, 3), Ok(ReplyContent::Data(vec![0, 0xa5, 0xa5])));
        assert_eq!(ask(&mut pair, Command::Flush, 0, 0, 0), Ok(ReplyContent::Nothing));
        assert_eq!(ask(&mut pair, Command::Cache, 0, 0, 1 << 20), Ok(ReplyContent::Nothing));
        assert_eq!(ask(&mut pair, Command::WriteZeroes, flag::NO_HOLE, 4097, 1), Ok(ReplyContent::Nothing));
        assert_eq!(ask(&mut pair, Command::Read, 0, 4096, 3), Ok(ReplyContent::Data(vec![0xa5, 0, 0xa5])));
        assert_eq!(ask(&mut pair, Command::Trim, 0, 4096, 512), Ok(ReplyContent::Nothing));
        let status = ask(&mut pair, Command::BlockStatus, 0, 0, 4096);
        if replies == Replies::Simple {
            assert_eq!(errno(status), Errno::Inval);
        } else {
            let hole = Status { length: 1 << 20, flags: 3 };
            assert_eq!(status, Ok(ReplyContent::Extents(vec![("base:allocation".to_owned(), vec![hole])])));
        }
    }
}

#[test]
fn replies_carry_the_cookie_and_many_requests_can_be_in_flight() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, export("disk"));
        let mut bytes = Vec::new();
        let cookies = (0..50u64)
            .map(|n| {
                let data = [n as u8; 64];
                pair.client
                    .request(
                        &RequestSpec { command: Command::Write, flags: NO_FLAGS, offset: n * 64, length: 0 },
                        &data,
                        &mut bytes,
                    )
                    .unwrap();
                pair.client
                    .request(
                        &RequestSpec { command: Command::Read, flags: NO_FLAGS, offset: n * 64, length: 64 },
                        &[],
                        &mut bytes,
                    )
                    .unwrap()
            })
            .collect::<Vec<_>>();
        let answers = pair.exchange(&bytes);
        assert_eq!(answers.len(), 100);
        for (n, cookie) in cookies.iter().enumerate() {
            let answer = answers.iter().find(|answer| answer.cookie == *cookie).expect("an answer");
            assert_eq!(answer.result, Ok(ReplyContent::Data(vec![n as u8; 64])));
        }
    }
}

// Refusals and their errors.

#[test]
fn writes_to_a_read_only_export_are_eperm_and_their_data_are_skipped() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, changed(|export| export.abilities.read_only = true));
        for command in [Command::Write, Command::Trim, Command::WriteZeroes] {
            assert_eq!(errno(ask(&mut pair, command, 0, 0, 512)), Errno::Perm, "{command:?}");
        }
        assert_eq!(ask(&mut pair, Command::Read, 0, 0, 2), Ok(ReplyContent::Data(vec![0, 0])));
    }
}

#[test]
fn writes_beyond_the_end_are_enospc_and_other_commands_einval() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, export("disk"));
        for command in ALL_COMMANDS.into_iter().filter(|command| *command != Command::Flush) {
            if command == Command::BlockStatus && replies == Replies::Simple {
                continue;
            }
            let wanted = match command {
                Command::Write | Command::WriteZeroes => Errno::NoSpc,
                _ => Errno::Inval,
            };
            for offset in [(1 << 20) - 1, 1 << 20, 1 << 40, u64::MAX - 1, u64::MAX] {
                assert_eq!(errno(ask(&mut pair, command, 0, offset, 2)), wanted, "{command:?} at {offset}");
            }
            let last = ask(&mut pair, command, 0, (1 << 20) - 2, 2);
            assert!(last.is_ok(), "{command:?}: {last:?}");
        }
    }
}

#[test]
fn with_extended_headers_every_length_can_be_refused() {
    let mut pair = Pair::new(Replies::Extended, export("disk"));
    for length in [1 << 32, u64::MAX, u64::MAX - 4096] {
        for command in [Command::Read, Command::Trim, Command::Cache, Command::BlockStatus] {
            assert_eq!(errno(ask(&mut pair, command, 0, 4096, length)), Errno::Inval, "{command:?}");
        }
        assert_eq!(errno(ask(&mut pair, Command::WriteZeroes, 0, 4096, length)), Errno::NoSpc);
    }
}

#[test]
fn requests_not_aligned_to_the_minimum_block_size_are_einval() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, changed(|export| export.block_min = 512));
        for command in ALL_COMMANDS.into_iter().filter(|command| *command != Command::Flush) {
            for (offset, length) in [(1, 512), (512, 511), (256, 256)] {
                assert_eq!(errno(ask(&mut pair, command, 0, offset, length)), Errno::Inval, "{command:?}");
            }
        }
        assert_eq!(ask(&mut pair, Command::Write, 0, 512, 512), Ok(ReplyContent::Nothing));
    }
}

#[test]
fn a_length_of_0_is_einval_and_the_connection_goes_on() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, export("disk"));
        for command in ALL_COMMANDS.into_iter().filter(|command| *command != Command::Flush) {
            assert_eq!(errno(ask(&mut pair, command, 0, 0, 0)), Errno::Inval, "{command:?}");
        }
        assert_eq!(pair.server.standing, Standing::Open);
    }
}

#[test]
fn a_flush_has_neither_offset_nor_length() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, export("disk"));
        for (offset, length) in [(0, 1), (1, 0), (512, 512)] {
            assert_eq!(errno(ask(&mut pair, Command::Flush, 0, offset, length)), Errno::Inval);
        }
    }
}

#[test]
fn unknown_commands_are_einval() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, export("disk"));
        for number in [8, 9, 0x00ff, 0xffff] {
            assert_eq!(errno(ask(&mut pair, Command::Other(number), 0, 0, 512)), Errno::Inval);
        }
    }
}

#[test]
fn unknown_flags_and_flags_of_other_commands_are_einval() {
    let own = |command, replies| {
        flag::FUA
            | match command {
                Command::Read if replies != Replies::Simple => flag::DF,
                Command::Write if replies == Replies::Extended => flag::PAYLOAD_LEN,
                Command::WriteZeroes => flag::NO_HOLE | flag::FAST_ZERO,
                Command::BlockStatus => flag::REQ_ONE,
                _ => 0,
            }
    };
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, export("disk"));
        for command in ALL_COMMANDS {
            for bit in (0..16).map(|bit| 1u16 << bit).filter(|bit| own(command, replies) & bit == 0) {
                if replies == Replies::Extended && bit == flag::PAYLOAD_LEN {
                    continue;
                }
                let (offset, length) = good_range(command);
                assert_eq!(errno(ask(&mut pair, command, bit, offset, length)), Errno::Inval, "{command:?} {bit:#x}");
            }
        }
    }
}

#[test]
fn fua_is_accepted_on_all_commands_if_it_is_advertised_and_on_none_else() {
    for replies in IN_CHUNKS {
        let mut with = Pair::new(replies, export("disk"));
        let mut without = Pair::new(replies, changed(|export| export.abilities.fua = false));
        for command in ALL_COMMANDS {
            let (offset, length) = good_range(command);
            assert!(ask(&mut with, command, flag::FUA, offset, length).is_ok(), "{command:?}");
            assert_eq!(errno(ask(&mut without, command, flag::FUA, offset, length)), Errno::Inval, "{command:?}");
        }
    }
}

#[test]
fn commands_that_were_not_advertised_are_einval() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, changed(|export| export.abilities = Abilities::default()));
        for command in ALL_COMMANDS {
            let (offset, length) = good_range(command);
            let answer = ask(&mut pair, command, 0, offset, length);
            match command {
                Command::Read | Command::Write => assert!(answer.is_ok(), "{command:?}: {answer:?}"),
                _ => assert_eq!(errno(answer), Errno::Inval, "{command:?}"),
            }
        }
    }
}

#[test]
fn fast_zero_is_einval_unless_advertised_and_enotsup_is_for_it_alone() {
    for replies in ALL_REPLIES {
        let mut with = Pair::new(replies, export("disk"));
        assert_eq!(errno(ask(&mut with, Command::WriteZeroes, flag::FAST_ZERO, 0, 512)), Errno::NotSup);
        assert_eq!(ask(&mut with, Command::WriteZeroes, 0, 0, 512), Ok(ReplyContent::Nothing));
        let mut without = Pair::new(replies, changed(|export| export.abilities.fast_zero = false));
        assert_eq!(errno(ask(&mut without, Command::WriteZeroes, flag::FAST_ZERO, 0, 512)), Errno::Inval);
    }
}

#[test]
fn df_without_structured_replies_is_einval() {
    let mut pair = Pair::new(Replies::Simple, export("disk"));
    assert_eq!(errno(ask(&mut pair, Command::Read, flag::DF, 0, 512)), Errno::Inval);
}

// Payloads.

fn small_payloads() -> Export {
    changed(|export| (export.size, export.payload_max) = (1 << 23, 1 << 16))
}

#[test]
fn reads_beyond_the_largest_payload_are_eoverflow_in_chunks_and_einval_else() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, small_payloads());
        let wanted = if replies == Replies::Simple { Errno::Inval } else { Errno::Overflow };
        assert_eq!(errno(ask(&mut pair, Command::Read, 0, 0, (1 << 16) + 1)), wanted);
        assert_eq!(ask(&mut pair, Command::Read, 0, 0, 1 << 16), Ok(ReplyContent::Data(vec![0; 1 << 16])));
    }
}

#[test]
fn an_unfragmented_read_of_64_kib_is_always_possible_and_a_longer_one_can_be_eoverflow() {
    for replies in IN_CHUNKS {
        let mut pair = Pair::new(replies, small_payloads());
        pair.server.piece_bytes = 512;
        assert_eq!(ask(&mut pair, Command::Read, flag::DF, 0, 65_536), Ok(ReplyContent::Data(vec![0; 65_536])));
        assert_eq!(errno(ask(&mut pair, Command::Read, flag::DF, 0, 65_537)), Errno::Overflow);
    }
}

#[test]
fn a_write_beyond_the_largest_payload_is_einval_after_its_data_were_read() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, small_payloads());
        assert_eq!(errno(ask(&mut pair, Command::Write, 0, 0, (1 << 16) + 1)), Errno::Inval);
        assert_eq!(errno(ask(&mut pair, Command::Write, 0, 0, 1 << 22)), Errno::Inval);
        assert_eq!(ask(&mut pair, Command::Write, 0, 0, 1 << 16), Ok(ReplyContent::Nothing));
        assert_eq!(pair.server.standing, Standing::Open);
    }
}

#[test]
fn commands_without_payload_may_be_longer_than_the_largest_payload() {
    for replies in IN_CHUNKS {
        let mut pair = Pair::new(replies, small_payloads());
        for command in [Command::Trim, Command::Cache, Command::WriteZeroes, Command::BlockStatus] {
            assert!(ask(&mut pair, command, 0, 0, 1 << 23).is_ok(), "{command:?}");
        }
    }
}

#[test]
fn a_payload_that_is_too_long_even_to_be_skipped_closes_the_connection() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, small_payloads());
        let bytes = (64 << 20) + 1;
        let mut request = Vec::new();
        pair.client.request_unchecked(Command::Write, write_flags(replies), 0, bytes, &mut request);
        assert!(pair.exchange(&request).is_empty());
        assert_eq!(pair.server.standing, Standing::Violated(Violation::Payload { bytes, bytes_max: 64 << 20 }));
    }
    // A payload at the limit is received.
    let mut pair = Pair::new(Replies::Simple, small_payloads());
    let mut request = Vec::new();
    pair.client.request_unchecked(Command::Write, 0, 0, 64 << 20, &mut request);
    assert!(pair.exchange(&request).is_empty());
    assert_eq!(pair.server.standing, Standing::Open);
    let mut pair = Pair::new(Replies::Extended, export("disk"));
    let mut request = Vec::new();
    pair.client.request_unchecked(Command::Read, flag::PAYLOAD_LEN, 0, u64::MAX, &mut request);
    pair.exchange(&request);
    assert!(matches!(pair.server.standing, Standing::Violated(Violation::Payload { bytes: u64::MAX, .. })));
}

#[test]
fn with_extended_headers_the_flag_alone_says_whether_a_payload_follows() {
    let mut pair = Pair::new(Replies::Extended, export("disk"));
    // A WRITE without the flag has no payload and is refused; other commands with the flag have one
    // and are refused.
    assert_eq!(errno(pair.unchecked(Command::Write, 0, 0, 512, 0)), Errno::Inval);
    for command in ALL_COMMANDS.into_iter().filter(|command| *command != Command::Write) {
        assert_eq!(errno(pair.unchecked(command, flag::PAYLOAD_LEN, 0, 512, 512)), Errno::Inval, "{command:?}");
    }
    assert_eq!(errno(pair.unchecked(Command::Other(99), flag::PAYLOAD_LEN, 0, 512, 512)), Errno::Inval);
    assert_eq!(pair.unchecked(Command::Write, flag::PAYLOAD_LEN, 0, 512, 512), Ok(ReplyContent::Nothing));
}

// The stream.

#[test]
fn a_wrong_magic_number_closes_the_connection_at_its_fourth_byte() {
    let mut compact = Vec::new();
    let mut extended = Vec::new();
    let header = RequestHeader { flags: 0, command: 0, cookie: 1, offset: 0, length: 512 };
    header.write_compact(&mut compact);
    header.write_extended(&mut extended);
    for (replies, wrong) in [
        (Replies::Simple, &b"GET / HTTP/1.1\r\n"[..]),
        (Replies::Structured, b"\x25\x60\x95\x14"),
        (Replies::Simple, &extended[..4]),
        (Replies::Extended, &compact[..4]),
    ] {
        let mut pair = Pair::new(replies, export("disk"));
        assert!(pair.exchange(&wrong[..3]).is_empty());
        assert_eq!(pair.server.standing, Standing::Open);
        assert!(pair.exchange(&wrong[3..]).is_empty());
        assert!(matches!(pair.server.standing, Standing::Violated(Violation::Magic { .. })), "{replies:?}");
    }
}

#[test]
fn an_incomplete_header_reports_the_needed_bytes() {
    for (replies, bytes) in [(Replies::Simple, 28), (Replies::Structured, 28), (Replies::Extended, 32)] {
        let session = session(replies, export("disk"));
        let mut header = Vec::new();
        let request = RequestHeader { flags: 0, command: 0, cookie: 7, offset: 0, length: 512 };
        match replies {
            Replies::Extended => request.write_extended(&mut header),
            _ => request.write_compact(&mut header),
        }
        assert_eq!(header.len(), bytes);
        for have in 0..bytes {
            assert_eq!(session.parse(&header[..have]), Parsed::Need(bytes));
        }
        header.push(0xff);
        let Parsed::Request(request, used) = session.parse(&header) else { panic!() };
        assert_eq!((request.cookie, request.length, request.payload_bytes, used), (7, 512, 0, bytes));
    }
}

#[test]
fn disconnecting_has_no_reply_and_is_never_refused() {
    for replies in ALL_REPLIES {
        for (flags, offset, length) in [(0, 0, 0), (0xffdf, 5, 0), (0, 1 << 30, 512)] {
            let mut pair = Pair::new(replies, export("disk"));
            let mut bytes = Vec::new();
            pair.client.request_unchecked(Command::Disconnect, flags, offset, length, &mut bytes);
            assert!(pair.exchange(&bytes).is_empty());
            assert_eq!(pair.server.standing, Standing::Left);
        }
    }
}

// READ in pieces, and its errors.

#[test]
fn a_read_in_chunks_covers_the_range_and_sends_zeroes_as_holes() {
    for replies in IN_CHUNKS {
        let mut pair = Pair::new(replies, export("disk"));
        pair.server.disk[5000..6000].fill(7);
        pair.server.piece_bytes = 512;
        let wanted = pair.server.disk[4000..8000].to_vec();
        assert_eq!(ask(&mut pair, Command::Read, 0, 4000, 4000), Ok(ReplyContent::Data(wanted)));
    }
}

#[test]
fn a_read_error_has_an_offset_if_the_reply_format_supports_it() {
    for replies in ALL_REPLIES {
        let mut pair = Pair::new(replies, export("disk"));
        pair.server.bad_byte = Some(600);
        for piece_bytes in [usize::MAX, 512] {
            pair.server.piece_bytes = piece_bytes;
            let text = if replies == Replies::Simple { "" } else { "a bad sector" };
            assert_eq!(ask(&mut pair, Command::Read, 0, 0, 2000), Err((Errno::Io, text.to_owned())));
        }
        assert!(ask(&mut pair, Command::Read, 0, 601, 100).is_ok());
    }
}

#[test]
fn a_read_error_is_a_chunk_with_structured_replies() {
    // The client refuses a simple reply to READ here, so that any reply is the proof.
    for replies in IN_CHUNKS {
        let mut pair = Pair::new(replies, export("disk"));
        let Err((errno, text)) = ask(&mut pair, Command::Read, 0x8000, 0, 512) else { panic!() };
        assert_eq!(errno, Errno::Inval);
        assert!(text.contains("flag"), "{text}");
    }
}

// Replies as they are encoded.

fn session(replies: Replies, export: Export) -> Session {
    Session { export, replies, base_allocation: replies != Replies::Simple, limits: Limits::default() }
}

fn request(command: Command, offset: u64, length: u64) -> Request {
    Request { command, flags: NO_FLAGS, cookie: 9, offset, length, payload_bytes: 0, refused: None }
}

#[test]
fn the_text_of_an_error_has_at_most_4096_bytes_and_no_nul() {
    for replies in IN_CHUNKS {
        let session = session(replies, export("disk"));
        let header = if replies == Replies::Extended { 32 } else { 20 };
        let mut out = Vec::new();
        // The 4096th byte is in the middle of a character: the whole character is omitted.
        session.error(&request(Command::Read, 0, 1), Errno::Io, &format!("x{}", "é".repeat(3000)), &mut out);
        assert_eq!(out.len(), header + 6 + 4095);
        assert_eq!(out[header + 4..header + 6], 4095u16.to_be_bytes());
        out.clear();
        session.error_at(&request(Command::Read, 0, 1), Errno::Io, 0, "up to here\0not this", true, &mut out);
        assert_eq!(out.len(), header + 4 + 2 + 10 + 8);
    }
}

fn reported_extents(replies: Replies, size: u64, request: &Request, extents: &[Extent]) -> Vec<(u64, u64)> {
    let session = session(replies, changed(|export| export.size = size));
    let mut out = Vec::new();
    session.block_status(request, extents, &mut out);
    let number = |bytes: &[u8]| bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (header, fixed, half) = if replies == Replies::Extended { (32, 8, 8) } else { (20, 4, 4) };
    let reported = out[header + fixed..].chunks(2 * half).map(|pair| (number(&pair[..half]), number(&pair[half..])));
    let reported = reported.collect::<Vec<_>>();
    let length = number(&out[header - half..header]);
    assert_eq!(length, (out.len() - header) as u64);
    assert_eq!(number(&out[header..header + 4]), 1);
    if replies == Replies::Extended {
        assert_eq!(number(&out[header + 4..header + 8]), reported.len() as u64);
    }
    reported
}

const DATA: Extent = Extent { length: 4096, hole: false, zero: false };
const HOLE: Extent = Extent { length: 4096, hole: true, zero: true };

#[test]
fn adjacent_extents_of_one_state_are_merged_and_end_with_the_range() {
    for replies in IN_CHUNKS {
        let extents = [DATA, DATA, HOLE, HOLE, DATA, HOLE];
        // All but the last must end before the range does: the hole ends at 16384, and the data
        // there would be beyond.
        let reported = reported_extents(replies, 1 << 20, &request(Command::BlockStatus, 0, 16384), &extents);
        assert_eq!(reported, [(8192, 0), (8192, 3)]);
        // The last extent may end beyond the request.
        let reported = reported_extents(replies, 1 << 20, &request(Command::BlockStatus, 0, 9000), &extents);
        assert_eq!(reported, [(8192, 0), (8192, 3)]);
        let states = [Extent { zero: true, ..DATA }, Extent { zero: false, ..HOLE }];
        let reported = reported_extents(replies, 1 << 20, &request(Command::BlockStatus, 0, 8192), &states);
        assert_eq!(reported, [(4096, 2), (4096, 1)]);
    }
}

#[test]
fn the_flag_req_one_yields_one_extent_within_the_range() {
    for replies in IN_CHUNKS {
        let one = CommandFlags { one_extent: true, ..NO_FLAGS };
        for (length, wanted) in [(4096, 4096), (100, 100), (1 << 19, 8192)] {
            let request = Request { flags: one, ..request(Command::BlockStatus, 0, length) };
            assert_eq!(reported_extents(replies, 1 << 20, &request, &[DATA, DATA, HOLE]), [(wanted, 0)]);
        }
    }
}

#[test]
fn extents_end_with_the_export() {
    for replies in IN_CHUNKS {
        let reported = reported_extents(replies, 10_000, &request(Command::BlockStatus, 8000, 1000), &[HOLE, DATA]);
        assert_eq!(reported, [(2000, 3)]);
    }
}

#[test]
fn at_least_one_extent_is_sent_and_none_is_empty() {
    for replies in IN_CHUNKS {
        let nothing = Extent { length: 0, ..HOLE };
        for extents in [&[][..], &[nothing, nothing]] {
            let reported = reported_extents(replies, 1 << 20, &request(Command::BlockStatus, 0, 5000), extents);
            assert_eq!(reported, [(5000, 0)]);
        }
        let reported = reported_extents(
            replies,
            1 << 20,
            &request(Command::BlockStatus, 0, 8192),
            &[nothing, DATA, nothing, HOLE],
        );
        assert_eq!(reported, [(4096, 0), (4096, 3)]);
    }
}

#[test]
fn an_extent_beyond_32_bits_is_cut_without_extended_headers() {
    let long = Extent { length: 5 << 32, ..HOLE };
    let asked = request(Command::BlockStatus, 0, u64::from(u32::MAX));
    let reported = reported_extents(Replies::Structured, 1 << 40, &asked, &[long, DATA]);
    // The greatest multiple of 65,536 below 4 GiB; what follows would not be consecutive.
    assert_eq!(reported, [(0xffff_0000, 3)]);
    let reported =
        reported_extents(Replies::Extended, 1 << 40, &request(Command::BlockStatus, 0, 6 << 32), &[long, DATA]);
    assert_eq!(reported, [(5 << 32, 3), (4096, 0)]);
}

#[test]
fn extents_are_no_more_than_a_payload_holds_and_no_more_than_a_million() {
    let many = (0..1_100_000).map(|n| if n % 2 == 0 { DATA } else { HOLE }).collect::<Vec<_>>();
    let size = 1_100_000 * 4096;
    for (replies, each) in [(Replies::Structured, 8), (Replies::Extended, 16)] {
        let asked = request(Command::BlockStatus, 0, u32::MAX.into());
        // 32 MiB of payload are room for 2^22 or 2^21 extents: the limit of 2^20 applies.
        assert_eq!(reported_extents(replies, size, &asked, &many).len(), 1 << 20);
        let session = session(replies, changed(|export| (export.size, export.payload_max) = (size, 1 << 16)));
        let mut out = Vec::new();
        session.block_status(&asked, &many, &mut out);
        assert_eq!(out.len(), if each == 8 { 20 + 4 } else { 32 + 8 } + (1 << 16));
    }
}

// The client respects the advertised properties.

#[test]
fn a_client_refuses_requests_that_were_not_advertised() {
    let export = changed(|export| (export.block_min, export.payload_max) = (512, 1 << 16));
    let mut pair = Pair::new(Replies::Structured, export);
    let mut out = Vec::new();
    let mut ask = |command, flags: CommandFlags, offset, length| {
        let session = &mut pair.client.session;
        session.request(&RequestSpec { command, flags, offset, length }, &mut out).map(|_| ())
    };
    assert_eq!(ask(Command::Read, NO_FLAGS, 0, 0), Err(RequestError::Range));
    assert_eq!(ask(Command::Read, NO_FLAGS, 1 << 20, 512), Err(RequestError::Range));
    assert_eq!(ask(Command::Read, NO_FLAGS, u64::MAX, 512), Err(RequestError::Range));
    assert_eq!(ask(Command::Read, NO_FLAGS, 0, (1 << 16) + 512), Err(RequestError::Range));
    assert_eq!(ask(Command::Trim, NO_FLAGS, 0, 1 << 17), Ok(()));
    assert_eq!(ask(Command::Read, NO_FLAGS, 100, 512), Err(RequestError::Alignment));
    assert_eq!(ask(Command::Read, CommandFlags { no_hole: true, ..NO_FLAGS }, 0, 512), Err(RequestError::Flag));
    assert_eq!(ask(Command::Other(8), NO_FLAGS, 0, 512), Err(RequestError::Command(Command::Other(8))));
    let read_only = changed(|export| export.abilities = Abilities { read_only: true, ..ALL });
    let mut pair = Pair::new(Replies::Structured, read_only);
    let session = &mut pair.client.session;
    assert_eq!(
        session.request(&RequestSpec { command: Command::Write, flags: NO_FLAGS, offset: 0, length: 512 }, &mut out),
        Err(RequestError::ReadOnly)
    );
    let bare = changed(|export| export.abilities = Abilities::default());
    let mut pair = Pair::new(Replies::Simple, bare);
    let session = &mut pair.client.session;
    for command in [Command::Flush, Command::Trim, Command::Cache, Command::WriteZeroes, Command::BlockStatus] {
        assert_eq!(
            session.request(&RequestSpec { command, flags: NO_FLAGS, offset: 0, length: 512 }, &mut out),
            Err(RequestError::Command(command))
        );
    }
}
