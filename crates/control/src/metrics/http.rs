//! HTTP for scrapes of the metrics, without a socket: bytes in, bytes out.
//!
//! `GET /metrics` (or `HEAD`) returns the metrics; other requests return an error. `httparse`
//! parses the heads of requests. Requests have no bodies: after the answer to a request that
//! announces one the connection ends. Otherwise a connection stays open for the next scrape, as in
//! HTTP/1.1.
//!
//! The session is ours because an HTTP server library owns its sockets and needs a runtime of its
//! own, while the sockets here belong to the engine of the server.

use super::Metrics;
use crate::share::Watch;
use crate::target::AdminTarget;

/// The longest head of a request, in bytes.
pub const REQUEST_BYTES_MAX: usize = 8192;
/// The maximum number of header lines of a request.
const HEADERS_MAX: usize = 64;
/// The media type of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The media type of all other answers.
const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// An HTTP connection.
#[derive(Debug, Default)]
pub struct Session {
    input: Vec<u8>,
    closing: bool,
}

impl Session {
    /// Creates the session of a new connection.
    pub fn new() -> Session {
        Session::default()
    }

    /// Handles received bytes and appends at most one answer to `out`. After that answer was sent,
    /// [`resume`](Self::resume) appends the next.
    pub fn receive(
        &mut self,
        input: &[u8],
        metrics: &mut Metrics,
        watch: &Watch,
        target: &dyn AdminTarget,
        out: &mut Vec<u8>,
    ) {
        if !self.closing {
            self.input.extend_from_slice(input);
            self.resume(metrics, watch, target, out);
        }
    }

    /// Answers the next request if its head is complete.
    pub fn resume(&mut self, metrics: &mut Metrics, watch: &Watch, target: &dyn AdminTarget, out: &mut Vec<u8>) {
        if self.closing {
            return;
        }
        match Input::parse(&self.input) {
            Input::Partial => {}
            Input::Request(request, head_bytes) => {
                self.input.drain(..head_bytes);
                self.answer(&request, metrics, watch, target, out);
            }
            Input::Invalid => self.refuse(out, "400 Bad Request", "The request is not valid HTTP/1."),
            Input::TooLong => {
                self.refuse(out, "431 Request Header Fields Too Large", "The request is longer than 8192 bytes.");
            }
        }
    }

    /// Returns true if [`resume`](Self::resume) has an answer.
    pub fn has_more(&self) -> bool {
        !self.closing && !matches!(Input::parse(&self.input), Input::Partial)
    }

    /// Returns true if bytes are to be received.
    pub fn wants_input(&self) -> bool {
        !self.closing && !self.has_more()
    }

    /// Returns true if the connection ends after the output was sent.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    fn answer(
        &mut self,
        request: &Request,
        metrics: &mut Metrics,
        watch: &Watch,
        target: &dyn AdminTarget,
        out: &mut Vec<u8>,
    ) {
        self.closing = !request.keeps_alive || request.has_body;
        let (status, kind, body) = match (request.method, request.path.as_str()) {
            (Method::Other, _) => {
                ("405 Method Not Allowed\r\nAllow: GET, HEAD", PLAIN_TEXT, "Metrics are read-only.\n".to_owned())
            }
            (_, "/metrics") => ("200 OK", OPEN_METRICS, metrics.text(watch, target)),
            (_, "/") => ("200 OK", PLAIN_TEXT, "hoistway: the metrics are at /metrics\n".to_owned()),
            _ => ("404 Not Found", PLAIN_TEXT, "The only path is /metrics.\n".to_owned()),
        };
        respond(out, status, kind, &body, self.closing, request.method == Method::Head);
    }

    fn refuse(&mut self, out: &mut Vec<u8>, status: &str, sentence: &str) {
        self.closing = true;
        self.input = Vec::new();
        respond(out, status, PLAIN_TEXT, &format!("{sentence}\n"), true, false);
    }
}

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Get,
    Head,
    Other,
}

/// The parts of a request's head that matter for its answer.
#[derive(Debug)]
struct Request {
    method: Method,
    /// The target without query and fragment.
    path: String,
    keeps_alive: bool,
    has_body: bool,
}

/// The state of the received bytes.
#[derive(Debug)]
enum Input {
    /// The head of a request is incomplete.
    Partial,
    /// A request and the length of its head in bytes.
    Request(Request, usize),
    /// The bytes are not an HTTP request.
    Invalid,
    /// The head of a request is too long.
    TooLong,
}

impl Input {
    fn parse(input: &[u8]) -> Input {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(input) {
            Ok(httparse::Status::Complete(bytes)) if bytes <= REQUEST_BYTES_MAX => {
                Request::of(&parsed).map_or(Input::Invalid, |request| Input::Request(request, bytes))
            }
            Ok(httparse::Status::Partial) if input.len() <= REQUEST_BYTES_MAX => Input::Partial,
            Ok(_) | Err(httparse::Error::TooManyHeaders) => Input::TooLong,
            Err(_) => Input::Invalid,
        }
    }
}

impl Request {
    /// Returns a parsed request; `None` if its target is not a path.
    fn of(parsed: &httparse::Request<'_, '_>) -> Option<Request> {
        let target = parsed.path.filter(|target| target.starts_with('/'))?;
        let method = match parsed.method {
            Some("GET") => Method::Get,
            Some("HEAD") => Method::Head,
            _ => Method::Other,
        };
        let path = target.split(['?', '#']).next().unwrap_or_default().to_owned();
        let mut request = Request { method, path, keeps_alive: parsed.version == Some(1), has_body: false };
        for header in &*parsed.headers {
            let value = String::from_utf8_lossy(header.value);
            if header.name.eq_ignore_ascii_case("connection") {
                let has = |option: &str| value.split(',').any(|token| token.trim().eq_ignore_ascii_case(option));
                request.keeps_alive = !has("close") && (request.keeps_alive || has("keep-alive"));
            }
            let announces = header.name.eq_ignore_ascii_case("content-length") && value.trim() != "0";
            request.has_body |= announces || header.name.eq_ignore_ascii_case("transfer-encoding");
        }
        Some(request)
    }
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
