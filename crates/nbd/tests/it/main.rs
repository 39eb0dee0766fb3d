//! Integration tests of `hoistway-nbd`: one binary, so that they are linked once.

mod client;
mod conformance;
mod handshake;
mod live;
mod machine;
mod streams;
mod transmission;
mod uri;
mod vectors;
