//! The client side: [`Handshake`], then [`Session`]; [`Collector`] assembles complete replies.
//!
//! The client is as strict as the protocol allows: a violation by the server ends the connection
//! with a specific error.

mod collect;
mod handshake;
mod replies;
mod session;

pub use collect::{Collector, Completion, ReplyContent};
pub use handshake::{
    ExportInfo, Findings, Goal, Handshake, HandshakeError, HandshakeOptions, Progress, TlsMode, send_option,
};
pub use replies::{Event, ProtocolError, Status};
pub use session::{Context, RequestError, RequestSpec, Session};
