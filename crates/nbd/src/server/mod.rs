//! The server side: [`Handshake`], then [`Session`].

mod handshake;
mod option;
mod replies;
mod session;

pub use handshake::{Catalogue, Handshake, Progress, Tls, Violation};
pub use replies::Extent;
pub use session::{Parsed, Replies, Request, Session};
