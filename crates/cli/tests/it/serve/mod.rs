//! `hoistway serve` from outside: the built program, real sockets, clients of other programs and a
//! test client.

mod backend_errors;
mod check;
pub mod client;
mod custom_elevators;
mod exports;
mod in_use;
mod life;
mod many;
mod remote;
mod replay;
pub mod server;
mod tls;
mod tools;
mod watch;
