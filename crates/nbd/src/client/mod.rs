//! The client's side: [`Handshake`], then [`Session`]; [`Collector`] puts replies together.
//!
//! It is as strict as the protocol lets a client be: what a server must not send ends the connection with a name for it.

mod collect;
mod handshake;
mod replies;
mod session;

pub use collect::{Collector, Completion, Outcome};
pub use handshake::{Failure, Findings, Goal, Handshake, Progress, TlsWish, Told, Wants, send_option};
pub use replies::{Broken, Event, Status};
pub use session::{Context, Misuse, Session};
