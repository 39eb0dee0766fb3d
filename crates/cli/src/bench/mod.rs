//! What `hoistway bench` measures.

pub mod elevators;
pub mod mount;
pub mod sim;
pub mod trace;
