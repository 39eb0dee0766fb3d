//! Reading the replies of the control protocol.

use std::io::{self, BufRead, Read};

/// Maximum length of a line of a reply, in bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// A reply to a request that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The lines of the answer, without the protocol's prefix.
    pub lines: Vec<String>,
    /// A warning about a change that was made.
    pub warning: Option<String>,
}

/// Reasons why a request has no reply.
#[derive(Debug, thiserror::Error)]
pub enum ReplyError {
    /// The server replied with an error.
    #[error("{text}")]
    Server {
        /// The kind of error: `request`, `path`, `access`, `value`, `busy` or `refused`.
        kind: String,
        /// The message.
        text: String,
    },
    /// The bytes are not a reply, perhaps because the socket is not a control socket.
    #[error("{0:?} is no answer of a control socket")]
    NoReply(String),
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads one reply.
///
/// # Errors
/// An error reply of the server, bytes that are not a reply, or a connection that ended too early.
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
        if let Some(answer) = line.strip_prefix("= ") {
            lines.push(answer.to_owned());
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
