//! The same clients over NBD, to a server that runs.

use std::path::Path;

use super::workloads::Client;
use crate::{Got, Request};

/// Lets the clients work for so many seconds.
pub fn run(_clients: &[Client], _socket: &Path, _request: &Request) -> Result<Vec<Got>, String> {
    Err("not yet".into())
}
