//! The measurements of `hoistway bench`.

pub mod elevators;
pub mod mount;
pub mod sim;
pub mod trace;
