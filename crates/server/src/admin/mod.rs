//! The control tree and the metrics of the server.
//!
//! `state` and `connection` are data; `target` is what the control tree reads and changes;
//! `service` serves the control and metrics connections.

pub(crate) mod connection;
mod service;
pub(crate) mod state;
mod target;
#[cfg(test)]
mod tests;
