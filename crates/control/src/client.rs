//! The other side of the control protocol: replies, read.

use std::io::{self, BufRead, Read};

/// The longest line of a reply that is put up with, in bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What was told.
    pub lines: Vec<String>,
    /// A warning, of something that was done.
    pub warning: Option<String>,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
pub enum ReplyError {
    /// The server answered with an error.
    #[error("{text}")]
    Server {
        /// Which: `request`, `path`, `access`, `value`, `busy`, `refused`.
        kind: String,
        /// The sentence.
        text: String,
    },
    /// What came is no reply: it is not a control socket, perhaps.
    #[error("{0:?} is no answer of a control socket")]
    NoReply(String),
    /// The connection broke.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads one reply.
///
/// # Errors
/// An error of the server's, something that is no reply, or a connection that ended too early.
pub fn read_reply(input: &mut impl BufRead) -> Result<Reply, ReplyError> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        input.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)?;
        let Some(line) = line.strip_suffix('\n') else {
            return Err(if line.is_empty() {
                io::Error::from(io::ErrorKind::UnexpectedEof).into()
            } else {
                ReplyError::NoReply(line)
            });
        };
        if let Some(told) = line.strip_prefix("= ") {
            lines.push(told.to_owned());
        } else if line == "ok" {
            return Ok(Reply { lines, warning: None });
        } else if let Some(warning) = line.strip_prefix("ok: ") {
            return Ok(Reply { lines, warning: Some(warning.to_owned()) });
        } else {
            let error = line.strip_prefix("error ").and_then(|rest| rest.split_once(": "));
            return Err(match error {
                Some((kind, text)) => ReplyError::Server { kind: kind.to_owned(), text: text.to_owned() },
                None => ReplyError::NoReply(line.chars().take(80).collect()),
            });
        }
    }
}
