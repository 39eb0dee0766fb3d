//! Measures the cost of the protocol on the server for each request: parsing its header and writing
//! the header of its reply, in ns.
//!
//! `cargo run --release -p hoistway-nbd --example request_cost`

use std::hint::black_box;
use std::time::Instant;

use hoistway_nbd::server::{Parsed, Replies, Session};
use hoistway_nbd::wire::RequestHeader;
use hoistway_nbd::{Abilities, Export, Limits};

const REQUESTS: u64 = 1024;
const ROUNDS: u32 = 2000;

fn main() {
    for replies in [Replies::Simple, Replies::Structured, Replies::Extended] {
        let session = Session { export: export(), replies, base_allocation: true, limits: Limits::default() };
        let mut stream = Vec::new();
        for cookie in 0..REQUESTS {
            let header = RequestHeader { flags: 0, command: 0, cookie, offset: cookie * 4096, length: 4096 };
            match replies {
                Replies::Extended => header.write_extended(&mut stream),
                _ => header.write_compact(&mut stream),
            }
        }
        let mut out = Vec::with_capacity(1 << 20);
        let mut best_ns = u128::MAX;
        for _ in 0..ROUNDS {
            out.clear();
            let start = Instant::now();
            serve(black_box(&session), black_box(&stream), &mut out);
            best_ns = best_ns.min(start.elapsed().as_nanos());
            black_box(&out);
        }
        let each_ns = best_ns as f64 / REQUESTS as f64;
        println!("{replies:?}: {each_ns:.1} ns per request (best of {ROUNDS} rounds of {REQUESTS} READs)");
    }
}

fn serve(session: &Session, mut stream: &[u8], out: &mut Vec<u8>) {
    while let Parsed::Request(request, used) = session.parse(stream) {
        match request.refused {
            Some((errno, text)) => session.error(&request, errno, text, out),
            None => session.data(&request, out),
        }
        stream = &stream[used..];
    }
}

fn export() -> Export {
    Export {
        name: "disk".to_owned(),
        description: String::new(),
        size: 1 << 30,
        abilities: Abilities { flush: true, fua: true, trim: true, write_zeroes: true, ..Abilities::default() },
        block_min: 512,
        block_preferred: 4096,
        payload_max: 32 << 20,
        tls_only: false,
    }
}
