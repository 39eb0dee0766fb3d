//! Messages byte for byte, derived by hand from the text of the protocol.

use crate::machine::{Server, Shelf, export};
use hoistway_nbd::client::RequestSpec;
use hoistway_nbd::server::{Extent, Parsed, Replies, Request, Session, Tls};
use hoistway_nbd::wire::{Command, CommandFlags, Errno};
use hoistway_nbd::{Limits, client};

/// Parses hexadecimal digits; the rest of a line after `#` is a comment.
fn hex(text: &str) -> Vec<u8> {
    let digits = text
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or_default().chars())
        .filter(|digit| !digit.is_whitespace())
        .map(|digit| digit.to_digit(16).unwrap_or_else(|| panic!("{digit:?} is no digit")) as u8)
        .collect::<Vec<_>>();
    assert_eq!(digits.len() % 2, 0);
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Returns the replies of a server with the exports "" and "disk" (1 MiB), without its greeting.
fn answer(bytes: &[u8]) -> Vec<u8> {
    let mut greeting = Vec::new();
    let mut server = Server::new(Shelf(vec![export(""), export("disk")]), Tls::Off, Limits::default(), &mut greeting);
    server.disk[..4].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
    let greeting_wanted = hex("4e42444d41474943 # NBDMAGIC
         49484156454f5054 # IHAVEOPT
         0003             # fixed newstyle, no zeroes");
    assert_eq!(greeting, greeting_wanted);
    let mut out = Vec::new();
    server.receive(bytes, &mut out);
    out
}

#[test]
fn the_shortest_session() {
    let asked = hex("00000003                  # client: fixed newstyle, no zeroes
         49484156454f5054          # IHAVEOPT
         00000001 00000004         # EXPORT_NAME, 4 bytes
         6469736b                  # disk
         25609513 0000 0000        # request: no flags, READ
         0102030405060708          # cookie
         0000000000000000 00000004 # offset 0, 4 bytes
         25609513 0001 0001        # FUA, WRITE
         0102030405060709
         0000000000000002 00000002 cafe
         25609513 0000 0000
         010203040506070a
         0000000000000000 00000004
         25609513 0000 0000
         010203040506070b
         00000000000fffff 00000002 # two bytes, of which the second is beyond the end
         25609513 0000 0002        # DISC
         0000000000000000
         0000000000000000 00000000");
    let wanted = hex("0000000000100000 # 1 MiB
         0d7d             # has flags, FLUSH, FUA, rotational, TRIM, WRITE_ZEROES, multi-conn, CACHE, fast zero
         67446698 00000000 0102030405060708 deadbeef
         67446698 00000000 0102030405060709
         67446698 00000000 010203040506070a deadcafe
         67446698 00000016 010203040506070b # EINVAL is 22");
    assert_eq!(answer(&asked), wanted);
}

#[test]
fn a_session_with_structured_replies_and_a_metadata_context() {
    let asked = hex("00000003
         49484156454f5054 00000008 00000000          # STRUCTURED_REPLY
         49484156454f5054 0000000a 0000001f          # SET_META_CONTEXT, 4 + 4 + 4 + 4 + 15 bytes
         00000004 6469736b                           # disk
         00000001 0000000f                           # one query of 15 bytes
         626173653a616c6c6f636174696f6e              # base:allocation
         49484156454f5054 00000007 0000000c          # GO, 4 + 4 + 2 + 2 bytes
         00000004 6469736b
         0001 0003                                   # one request for information: the sizes of blocks
         25609513 0000 0000 0000000000000001 0000000000000001 00000002 # READ
         25609513 0008 0007 0000000000000002 0000000000000000 00001000 # BLOCK_STATUS, one extent
         25609513 0000 0003 0000000000000003 0000000000000000 00000000 # FLUSH
         25609513 0002 0000 0000000000000004 0000000000000000 00000200 # READ with NO_HOLE, which is not for it");
    let text = "a flag is unknown, does not belong to the command or was not advertised";
    assert_eq!(text.len(), 0x47);
    let mut wanted = hex("0003e889045565a9 00000008 00000001 00000000 # ACK
         0003e889045565a9 0000000a 00000004 00000013 # META_CONTEXT, 4 + 15 bytes
         00000001 626173653a616c6c6f636174696f6e     # number 1
         0003e889045565a9 0000000a 00000001 00000000
         0003e889045565a9 00000007 00000003 0000000c # INFO: 12 bytes
         0000 0000000000100000 0dfd                  # size and flags, DF among them
         0003e889045565a9 00000007 00000003 0000000e # INFO: 14 bytes
         0003 00000001 00001000 02000000             # 1, 4096, 32 MiB
         0003e889045565a9 00000007 00000001 00000000
         668e33ef 0001 0001 0000000000000001 0000000a # the last chunk: data, 8 + 2 bytes
         0000000000000001 adbe
         668e33ef 0001 0005 0000000000000002 0000000c # the last chunk: extents, 4 + 8 bytes
         00000001 00001000 00000000                   # number 1: 4096 bytes, allocated
         668e33ef 0001 0000 0000000000000003 00000000 # the last chunk: nothing more to say
         668e33ef 0001 8001 0000000000000004 0000004d # the last chunk: an error, 6 + 71 bytes
         00000016 0047");
    wanted.extend(text.as_bytes());
    assert_eq!(answer(&asked), wanted);
}

#[test]
fn a_session_with_extended_headers() {
    let asked = hex("00000003
         49484156454f5054 0000000b 00000000          # EXTENDED_HEADERS
         49484156454f5054 0000000a 0000001b          # SET_META_CONTEXT for the default export
         00000000 00000001 0000000f 626173653a616c6c6f636174696f6e
         49484156454f5054 00000007 00000006          # GO
         00000000 0000
         21e41c71 0020 0001 00000000000000aa 0000000000001000 0000000000000002 0102 # WRITE with its payload
         21e41c71 0000 0000 00000000000000ab 0000000000000fff 0000000000000003
         21e41c71 0000 0007 00000000000000ac 0000000000000000 0000000000100000
         21e41c71 0001 0006 00000000000000ad 0000000000001000 0000000000000001 # WRITE_ZEROES with FUA
         21e41c71 0000 0000 00000000000000ae 0000000000001000 0000000000000002");
    let wanted = hex("0003e889045565a9 0000000b 00000001 00000000
         0003e889045565a9 0000000a 00000004 00000013
         00000001 626173653a616c6c6f636174696f6e
         0003e889045565a9 0000000a 00000001 00000000
         0003e889045565a9 00000007 00000003 0000000c
         0000 0000000000100000 0dfd
         0003e889045565a9 00000007 00000001 00000000
         6e8a278c 0001 0000 00000000000000aa 0000000000001000 0000000000000000
         6e8a278c 0001 0001 00000000000000ab 0000000000000fff 000000000000000b # 8 + 3 bytes
         0000000000000fff 000102
         6e8a278c 0001 0006 00000000000000ac 0000000000000000 0000000000000028 # 8 + 2 * 16 bytes
         00000001 00000002                                                     # number 1: two extents
         0000000000002000 0000000000000000                                     # 8192 bytes, allocated
         00000000000fe000 0000000000000003                                     # the rest: a hole that reads as zeroes
         6e8a278c 0001 0000 00000000000000ad 0000000000001000 0000000000000000
         6e8a278c 0001 0001 00000000000000ae 0000000000001000 000000000000000a
         0000000000001000 0002");
    assert_eq!(answer(&asked), wanted);
}

#[test]
fn the_bytes_of_a_client_from_greeting_to_disconnect() {
    let mut handshake = client::Handshake::new(crate::machine::wants(Replies::Structured));
    let mut out = Vec::new();
    let mut say = |handshake: &mut client::Handshake, bytes: &str| {
        out.clear();
        let (_, progress) = handshake.receive(&hex(bytes), &mut out).unwrap();
        (out.clone(), progress)
    };
    let (said, _) = say(&mut handshake, "4e42444d41474943 49484156454f5054 0003");
    assert_eq!(said, hex("00000003 49484156454f5054 00000008 00000000"));
    let (said, _) = say(&mut handshake, "0003e889045565a9 00000008 00000001 00000000");
    let set = "49484156454f5054 0000000a 0000001f
               00000004 6469736b 00000001 0000000f 626173653a616c6c6f636174696f6e";
    assert_eq!(said, hex(set));
    let reported = "0003e889045565a9 0000000a 00000004 00000013 00000009 626173653a616c6c6f636174696f6e
                0003e889045565a9 0000000a 00000001 00000000";
    let (said, _) = say(&mut handshake, reported);
    assert_eq!(said, hex("49484156454f5054 00000007 00000010 00000004 6469736b 0003 0001 0002 0003"));
    let reported = "0003e889045565a9 00000007 00000003 0000000c 0000 0000000000100000 0dfd
                0003e889045565a9 00000007 00000001 00000000";
    let (said, progress) = say(&mut handshake, reported);
    assert!(said.is_empty());
    let client::Progress::Ready(mut session) = progress else { panic!("{progress:?}") };
    assert_eq!(session.contexts, [client::Context { id: 9, name: "base:allocation".to_owned() }]);
    let mut out = Vec::new();
    let fua = CommandFlags { fua: true, ..CommandFlags::default() };
    session
        .request(&RequestSpec { command: Command::Trim, flags: fua, offset: 0x1000, length: 0x2000 }, &mut out)
        .unwrap();
    session.disconnect(&mut out);
    let wanted = "25609513 0001 0004 0000000000000001 0000000000001000 00002000
                  25609513 0000 0002 0000000000000002 0000000000000000 00000000";
    assert_eq!(out, hex(wanted));
}

#[test]
fn chunks_of_a_read_in_pieces() {
    let session =
        |replies| Session { export: export("disk"), replies, base_allocation: true, limits: Limits::default() };
    let flags = CommandFlags::default();
    let (command, cookie, offset, length) = (Command::Read, 0x1122_3344_5566_7788, 0x10_0000_0000, 0x600);
    let request = Request { command, flags, cookie, offset, length, payload_bytes: 0, refused: None };
    let write = |session: &Session| {
        let mut out = Vec::new();
        session.data_chunk(&request, offset, 2, false, &mut out);
        out.extend([1, 2]);
        session.hole_chunk(&request, offset + 0x200, 0x200, false, &mut out);
        session.error_at(&request, Errno::Io, offset + 0x400, "bad", true, &mut out);
        out
    };
    let structured = "668e33ef 0000 0001 1122334455667788 0000000a 0000001000000000 0102
                      668e33ef 0000 0002 1122334455667788 0000000c 0000001000000200 00000200
                      668e33ef 0001 8002 1122334455667788 00000011 00000005 0003 626164 0000001000000400";
    assert_eq!(write(&session(Replies::Structured)), hex(structured));
    // An extended header has the request's offset in every chunk.
    let extended = "6e8a278c 0000 0001 1122334455667788 0000001000000000 000000000000000a 0000001000000000 0102
                    6e8a278c 0000 0002 1122334455667788 0000001000000000 000000000000000c 0000001000000200 00000200
                    6e8a278c 0001 8002 1122334455667788 0000001000000000 0000000000000011
                    00000005 0003 626164 0000001000000400";
    assert_eq!(write(&session(Replies::Extended)), hex(extended));
}

#[test]
fn requests_are_read_as_they_are_written() {
    let session = Session {
        export: export("disk"),
        replies: Replies::Extended,
        base_allocation: false,
        limits: Limits::default(),
    };
    let bytes = hex("21e41c71 0013 0006 8877665544332211 0000000000012345 0000000000000fed");
    let flags = CommandFlags { fua: true, no_hole: true, fast_zero: true, ..CommandFlags::default() };
    let wanted = Request {
        command: Command::WriteZeroes,
        flags,
        cookie: 0x8877_6655_4433_2211,
        offset: 0x12345,
        length: 0xfed,
        payload_bytes: 0,
        refused: None,
    };
    assert_eq!(session.parse(&bytes), Parsed::Request(wanted, 32));
    let extents = [Extent { length: 4096, hole: true, zero: false }];
    let mut out = Vec::new();
    session.block_status(&wanted, &extents, &mut out);
    let wanted = "6e8a278c 0001 0006 8877665544332211 0000000000012345 0000000000000018
                  00000001 00000001 0000000000001000 0000000000000001";
    assert_eq!(out, hex(wanted));
}
