//! Integration tests of `hoistway-fio`: one binary, so that they are linked once.

mod common;
mod errors;
mod files;
mod logs;
mod never_panics;
mod options;
mod real_fio;
mod results;
mod units;
