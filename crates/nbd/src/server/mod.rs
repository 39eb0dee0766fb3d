//! The server's side: [`Handshake`], then [`Session`].

mod handshake;
mod session;

pub use handshake::{Catalogue, Handshake, Progress, Tls, Violation};
pub use session::{Extent, Parsed, Replies, Request, Session};
