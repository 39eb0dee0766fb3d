//! `hoistway serve`: one disk, many clients.

pub mod args;
