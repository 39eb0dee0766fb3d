//! Integration tests of `hoistway-trace`: one binary, so that they are linked once.

mod any_events;
mod blkparse;
mod blkparse_lines;
mod blktrace_files;
mod captures;
mod common;
mod describe;
mod formats;
mod kernel_events;
mod other_recorders;
mod parquet;
mod properties;
mod trace_cmd;
