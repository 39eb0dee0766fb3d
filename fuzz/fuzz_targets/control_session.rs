//! Arbitrary bytes on a control connection or a metrics connection of a real server: every reply is
//! complete, and the memory per connection is bounded.
#![no_main]

use std::cell::RefCell;
use std::rc::Rc;

use hoistway_config::{Draft, HostEnvironment};
use hoistway_control::LINE_BYTES_MAX;
use hoistway_control::metrics::{Metrics, http};
use hoistway_control::{Session, Watch};
use hoistway_reactor::simulated::{Prng, Sim, SimEngine};
use hoistway_server::{Server, Settings};

const CONFIG: &str = r#"
[[device]]
name = "sda"
backend = "null:1G"
bandwidth = "100M"
position = "0us"

[[export]]
name = "a/b"
device = "sda"

[[group]]
name = "vms"

[[tenant]]
name = "db"
uid = 7
parent = "vms"
"#;

/// The number of inputs that one server handles, so that its creation costs little.
const INPUTS_A_SERVER: u32 = 256;

thread_local! {
    static SERVER: RefCell<(u32, Server<SimEngine>)> = RefCell::new((0, server()));
}

libfuzzer_sys::fuzz_target!(|input: (bool, u8, &[u8])| {
    let (is_control, piece, bytes) = input;
    SERVER.with_borrow_mut(|(inputs, served)| {
        *inputs += 1;
        if *inputs % INPUTS_A_SERVER == 0 {
            *served = server();
        }
        let piece = usize::from(piece) + 1;
        if is_control { control(served, bytes, piece) } else { metrics(served, bytes, piece) }
    });
});

fn control(server: &mut Server<SimEngine>, bytes: &[u8], piece: usize) {
    let (mut session, mut watch, mut out) = (Session::new(), Watch::new(), Vec::new());
    watch.tick(1, server);
    let mut replies = 0;
    for bytes in bytes.chunks(piece) {
        session.receive(bytes, &watch, server, &mut out);
        while session.has_more() {
            assert!(!session.wants_input());
            session.resume(&watch, server, &mut out);
        }
        replies += ends(&out);
        out.clear();
    }
    session.end(&watch, server, &mut out);
    while session.has_more() {
        session.resume(&watch, server, &mut out);
    }
    replies += ends(&out);
    let requests = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    assert!(replies <= requests, "{replies} replies to {requests} lines of {LINE_BYTES_MAX} bytes");
}

/// Returns the number of complete replies in this output, which must consist of whole lines.
fn ends(out: &[u8]) -> usize {
    let text = std::str::from_utf8(out).expect("replies are UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    let ends = text.lines().filter(|line| !line.starts_with("= "));
    ends.inspect(|end| assert!(*end == "ok" || end.starts_with("ok: ") || end.starts_with("error "), "{end}")).count()
}

fn metrics(server: &mut Server<SimEngine>, bytes: &[u8], piece: usize) {
    let (mut session, mut metrics, watch, mut out) = (http::Session::new(), Metrics::new(), Watch::new(), Vec::new());
    for bytes in bytes.chunks(piece) {
        session.receive(bytes, &mut metrics, &watch, server, &mut out);
        while session.has_more() {
            out.clear();
            session.resume(&mut metrics, &watch, server, &mut out);
        }
        assert!(out.is_empty() || out.starts_with(b"HTTP/1.1 "), "{}", String::from_utf8_lossy(&out));
        out.clear();
    }
}

fn server() -> Server<SimEngine> {
    let checked = Draft::from_toml(CONFIG, "fuzz.toml").check(&HostEnvironment).expect("a good configuration");
    let engine = SimEngine::new(Rc::new(RefCell::new(Sim::new(Prng::new(1), false))));
    Server::new(engine, &checked.config, Settings::default()).expect("a server")
}
