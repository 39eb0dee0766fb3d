//! `hoistway serve` from outside: the built program, real sockets, clients of other programs and a
//! test client.

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
