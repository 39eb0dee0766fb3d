//! `hoistway serve` from outside: the built program, real sockets, other programs' clients and one
//! of our own.

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
