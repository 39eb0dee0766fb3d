//! Integration tests of `hoistway-cli`: one binary, so that they are linked once.

mod advise;
mod bad_input;
mod common;
mod compare;
mod conform;
mod console;
mod ctl;
mod devices;
mod drives_fit;
mod elevator_pages;
#[path = "../../../machine/tests/it/fake/mod.rs"]
mod fake;
mod ionice;
mod lists;
mod mount;
mod order;
mod reproduce;
mod serve;
mod serve_input;
mod tar;
mod trace_describe;
mod trace_formats;
mod trace_record;
mod trace_view;
