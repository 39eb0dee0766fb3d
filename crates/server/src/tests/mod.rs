//! The server in a simulated outside, told what to do by hand: what becomes of each client is
//! looked at from its own side.

mod deadlines;
mod drain;
mod memory;
mod reload;
mod texts;
mod world;
