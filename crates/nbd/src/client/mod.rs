//! The client side: [`Handshake`], then [`Session`]; [`Collector`] assembles complete replies.
//!
//! The client is as strict as the protocol allows: a violation by the server ends the connection
//! with a specific error.

mod collect;
mod decoder;
mod export_info;
mod handshake;
mod replies;
mod session;

pub use collect::{Collector, Completion, ReplyContent};
pub use decoder::ProtocolError;
pub use export_info::ExportInfo;
pub use handshake::{Findings, Goal, Handshake, HandshakeError, HandshakeOptions, Progress, TlsMode, send_option};
pub use replies::{Event, IncomingData, Status};
pub use session::{Context, RequestError, RequestSpec, Session};
