//! `hoistway serve` from outside: the built program, real sockets, other programs' clients and one of our own.

#[path = "../common/mod.rs"]
mod common;

mod check;
mod client;
mod exports;
mod life;
mod many;
mod replay;
mod server;
mod tls;
mod tools;
mod watch;
