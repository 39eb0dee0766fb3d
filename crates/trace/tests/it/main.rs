//! Integration tests of `hoistway-trace`: one binary, so that they are linked once.

mod any_events;
mod blkparse;
mod captures;
mod common;
mod describe;
mod formats;
mod properties;
