//! The last requests of a file: the explanation of a loss.

use std::collections::VecDeque;
use std::time::Instant;

/// The number of requests that are kept for each file.
const REQUESTS_MAX: usize = 200;

/// A request that a file has received.
pub enum Request {
    Read { offset: usize, length: usize, data: Vec<u8> },
    Write { offset: usize, data: Vec<u8>, durable: bool },
    Size { before: usize, after: usize },
    Sync,
    Failed(&'static str),
}

/// The last requests of a file, oldest first.
#[derive(Default)]
pub struct History(VecDeque<(Instant, Request)>);

impl History {
    pub fn add(&mut self, request: Request) {
        if self.0.len() == REQUESTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back((Instant::now(), request));
    }

    /// Describes the requests that concern the byte at an offset, with their times before `now`.
    pub fn of_byte(&self, at: usize, now: Instant) -> Vec<String> {
        let with_age = |(time, request): &(Instant, Request)| {
            let age = now.saturating_duration_since(*time).as_secs_f64() * 1e3;
            Some(format!("-{age:.3} ms {}", describe(request, at)?))
        };
        self.0.iter().filter_map(with_age).collect()
    }
}

fn describe(request: &Request, at: usize) -> Option<String> {
    let transfer = |what: &str, offset: usize, data: &[u8]| {
        let byte = data.get(at.checked_sub(offset)?)?;
        Some(format!("{what} {offset}..{} with {byte:#x}", offset + data.len()))
    };
    match request {
        Request::Read { offset, length, data } if (*offset..offset + length).contains(&at) => {
            let found = data.get(at - offset).map_or("the end of the file".to_owned(), |byte| format!("{byte:#x}"));
            Some(format!("read {offset}..{} with {found}", offset + length))
        }
        Request::Read { .. } => None,
        Request::Write { offset, data, durable: false } => transfer("write", *offset, data),
        Request::Write { offset, data, durable: true } => transfer("durable write", *offset, data),
        Request::Size { before, after } => Some(format!("size {before} to {after}")),
        Request::Sync => Some("sync".to_owned()),
        Request::Failed(what) => Some(format!("failed {what}")),
    }
}
