//! Configuration of the server and of the mount: read from TOML and from the command line, and
//! checked.
//!
//! A [`Draft`] holds the values as written, each with its location in a file or on the command
//! line. [`Draft::check`] turns it into a [`Config`], or reports all problems together.
//! [`Config::changes`] compares two configurations for a reload.
//!
//! ```text
//! TOML file ─ source ───┐
//!                       ├─▶ Draft ── build ─▶ ConfigBuilder ── check ─▶ Config, or all Problems
//! arguments ─ argument ─┘
//! ```
//!
//! Where to change what:
//! - a key: its row in `keys.rs` (or `keys/mount.rs`), from which names, suggestions and the
//!   reference in the documentation follow; the line that reads it in `build/`; checks that involve
//!   other keys in `check.rs`; for a mount, `mount/build.rs` and `mount/check.rs`
//! - terms that tenants of a server and of a mount share: `build/terms.rs`
//! - what a reload can change: `reload.rs`
//! - how a client is assigned to a tenant: `rules.rs`
//! - the addresses that need TLS: `listen_policy.rs`
//!
#![doc = include_str!("../README.md")]

mod argument;
mod build;
mod builder;
mod check;
mod draft;
mod environment;
mod error;
mod keys;
pub mod listen_policy;
mod model;
pub mod mount;
mod names;
mod reload;
pub mod rules;
mod source;
#[cfg(test)]
mod tests;
mod value;

pub use draft::{Draft, Location, Problem};
pub use environment::{Environment, FILE_BYTES_MAX, HostEnvironment, read_text};
pub use error::ConfigError;
pub use keys::{KEYS, Key, Section, default_elevators, markdown};
pub use listen_policy::ListenPolicy;
pub use model::{
    BackendConfig, CONTROL_NAME, CheckedConfig, Config, DeviceConfig, ExportConfig, GroupConfig, Listen, RemoteConfig,
    RemoteTlsConfig, Rule, SOCKET_NAME, TenantConfig, TlsConfig,
};
pub use reload::{Change, LiveChange};
pub use rules::{Client, ClientProcess};
pub use value::NBD_PORT;
