//! Block traces in blktrace's format.

#![forbid(unsafe_code)]

pub mod blktrace;
