//! The option `--control`: the control socket of a running server.

use std::path::PathBuf;

use anyhow::Error;
use hoistway_config::CONTROL_NAME;
use hoistway_control::client::{ClientError, ControlClient, default_paths};

/// The sockets to try: that of `--control`, otherwise the default paths.
pub fn paths(option: Option<&PathBuf>) -> Vec<PathBuf> {
    option.map_or_else(|| default_paths(CONTROL_NAME), |path| vec![path.clone()])
}

/// Connects to the server of `--control`, or to that at the default paths.
///
/// # Errors
/// The errors of [`ControlClient::connect_first`], with the options that help.
pub fn connect(option: Option<&PathBuf>) -> Result<ControlClient, Error> {
    ControlClient::connect_first(&paths(option)).map_err(|error| with_help(error, option))
}

/// Adds the command and the option that help if there is no socket.
pub fn with_help(error: ClientError, option: Option<&PathBuf>) -> Error {
    match error {
        ClientError::Absent(_) => {
            let searched = if option.is_none() { ". These are all default paths" } else { "" };
            let help = "`hoistway serve` starts one; --control names another socket";
            Error::msg(format!("{error}. {help}{searched}"))
        }
        error => error.into(),
    }
}
