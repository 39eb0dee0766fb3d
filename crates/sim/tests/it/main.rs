//! Integration tests of `hoistway-sim`: one binary, so that they are linked once.

mod common;
mod competing_readers;
mod cpu_times;
mod failing;
mod files;
mod fio_cases;
mod groups;
mod host;
mod hosts_page;
mod job_files_page;
mod job_options;
mod journal;
mod kernels;
mod mapped;
mod options;
mod several_drives;
mod shares;
mod syncs;
mod worlds;
