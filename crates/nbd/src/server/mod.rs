//! The server side: [`Handshake`], then [`Session`].

mod handshake;
mod option;
mod replies;
mod session;
mod violation;

pub use handshake::{Catalogue, Handshake, Progress, Tls};
pub use replies::Extent;
pub use session::{Parsed, Replies, Request, Session};
pub use violation::Violation;
