//! Tests of the server on the simulated engine. Each client checks what it receives.

mod admin_connections;
mod deadlines;
mod drain;
mod memory;
mod reload;
mod world;
