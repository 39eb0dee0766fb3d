//! As much of HTTP as a scrape needs, without a socket: bytes in, bytes out.
//!
//! `GET /metrics` (or `HEAD`) answers the metrics; anything else an error. Requests have no bodies:
//! one that announces one is answered, and the connection ends. A connection is kept for the next
//! scrape, as HTTP/1.1 has it.

use super::Metrics;
use crate::share::Watch;
use crate::target::AdminTarget;

/// The longest request, in bytes with its headers.
pub const REQUEST_BYTES_MAX: usize = 8192;
/// What OpenMetrics calls itself.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// An HTTP connection.
#[derive(Debug, Default)]
pub struct Session {
    input: Vec<u8>,
    closing: bool,
}

impl Session {
    /// A fresh one.
    pub fn new() -> Session {
        Session::default()
    }

    /// Takes bytes that came, and adds at most one answer to `out`: the next comes with
    /// [`resume`](Self::resume), once that was sent.
    pub fn receive(
        &mut self,
        input: &[u8],
        metrics: &mut Metrics,
        watch: &Watch,
        steer: &dyn AdminTarget,
        out: &mut Vec<u8>,
    ) {
        if !self.closing {
            self.input.extend_from_slice(input);
            self.resume(metrics, watch, steer, out);
        }
    }

    /// Answers the next request, if it is there.
    pub fn resume(&mut self, metrics: &mut Metrics, watch: &Watch, steer: &dyn AdminTarget, out: &mut Vec<u8>) {
        if self.closing {
            return;
        }
        match head_end(&self.input) {
            Some(end) if end <= REQUEST_BYTES_MAX => {
                let head: Vec<u8> = self.input.drain(..end).collect();
                self.answer(&head, metrics, watch, steer, out);
            }
            None if self.input.len() <= REQUEST_BYTES_MAX => {}
            _ => self.refuse(out, "431 Request Header Fields Too Large", "The request is longer than 8192 bytes."),
        }
    }

    /// Whether [`resume`](Self::resume) would add something.
    pub fn has_more(&self) -> bool {
        !self.closing && head_end(&self.input).is_some()
    }

    /// Whether bytes are wanted.
    pub fn wants_input(&self) -> bool {
        !self.closing && !self.has_more()
    }

    /// Whether the connection ends when what there is was sent.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    fn answer(
        &mut self,
        head: &[u8],
        metrics: &mut Metrics,
        watch: &Watch,
        steer: &dyn AdminTarget,
        out: &mut Vec<u8>,
    ) {
        let Some(request) = Request::parse(head) else {
            return self.refuse(out, "400 Bad Request", "That is no HTTP request.");
        };
        self.closing = !request.keeps_alive || request.has_body;
        let path = request.target.split(['?', '#']).next().unwrap_or_default();
        let (status, kind, body) = match (request.method, path) {
            ("GET" | "HEAD", "/metrics") => ("200 OK", OPEN_METRICS, metrics.text(watch, steer)),
            ("GET" | "HEAD", "/") => {
                ("200 OK", "text/plain; charset=utf-8", "hoistway: the metrics are at /metrics\n".to_owned())
            }
            ("GET" | "HEAD", _) => {
                ("404 Not Found", "text/plain; charset=utf-8", "There is only /metrics.\n".to_owned())
            }
            _ => (
                "405 Method Not Allowed\r\nAllow: GET, HEAD",
                "text/plain; charset=utf-8",
                "Metrics are only read.\n".to_owned(),
            ),
        };
        respond(out, status, kind, &body, self.closing, request.method == "HEAD");
    }

    fn refuse(&mut self, out: &mut Vec<u8>, status: &str, sentence: &str) {
        self.closing = true;
        self.input = Vec::new();
        respond(out, status, "text/plain; charset=utf-8", &format!("{sentence}\n"), true, false);
    }
}

/// The head of a request, read.
struct Request<'a> {
    method: &'a str,
    target: &'a str,
    keeps_alive: bool,
    has_body: bool,
}

impl Request<'_> {
    fn parse(head: &[u8]) -> Option<Request<'_>> {
        let head = std::str::from_utf8(head).ok()?;
        let mut lines = head.lines();
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        if words.next().is_some() || !is_method || !target.starts_with('/') {
            return None;
        }
        let mut request = Request { method, target, keeps_alive: version == "HTTP/1.1", has_body: false };
        if !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
            return None;
        }
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':')?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("connection") {
                let asks = |what: &str| value.split(',').any(|token| token.trim().eq_ignore_ascii_case(what));
                request.keeps_alive = !asks("close") && (request.keeps_alive || asks("keep-alive"));
            }
            let announces = name.eq_ignore_ascii_case("content-length") && value != "0";
            request.has_body |= announces || name.eq_ignore_ascii_case("transfer-encoding");
        }
        Some(request)
    }
}

/// Where the head of the first request ends: behind an empty line.
fn head_end(input: &[u8]) -> Option<usize> {
    let searched = &input[..input.len().min(REQUEST_BYTES_MAX + 4)];
    let crlf = searched.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
    let lf = searched.windows(2).position(|window| window == b"\n\n").map(|at| at + 2);
    crlf.into_iter().chain(lf).min()
}

fn respond(out: &mut Vec<u8>, status: &str, kind: &str, body: &str, closes: bool, head_only: bool) {
    let connection = if closes { "close" } else { "keep-alive" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
        body.len()
    );
    out.extend_from_slice(head.as_bytes());
    if !head_only {
        out.extend_from_slice(body.as_bytes());
    }
}
