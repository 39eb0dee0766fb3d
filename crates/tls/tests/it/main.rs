//! Channels against connections of the TLS library, in memory, and certificates from files.

mod authority;
mod channel;
mod files;
mod peer;
mod verification;
