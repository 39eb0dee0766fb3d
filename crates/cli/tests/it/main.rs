//! Integration tests of `hoistway`: one binary, so that they are linked once.

mod advise;
mod arena;
mod bad_input;
mod common;
mod compare;
mod completions;
mod conform;
mod console;
mod ctl;
mod custom_elevator;
mod devices;
mod drives_fit;
mod elevator_pages;
mod examples;
#[path = "../../../machine/tests/it/fake/mod.rs"]
mod fake;
mod ionice;
mod lists;
mod mount;
mod mount_databases;
mod order;
mod playground;
mod reproduce;
mod serve;
mod serve_input;
mod sweep;
mod tar;
mod tar_changes;
mod trace_describe;
mod trace_formats;
mod trace_info;
mod trace_record;
mod trace_view;
mod trace_whatif;
mod untrusted_names;
mod writes;
