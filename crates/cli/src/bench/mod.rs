//! What `hoistway bench` measures.

pub mod elevators;
pub mod sim;
pub mod trace;
