//! Integration tests of `hoistway-drive` in one binary, which is linked once.

mod array;
mod cloud;
mod disk;
mod drive_pages;
mod errors;
mod faults;
mod fit_profile;
mod flash;
mod flash_garbage;
mod flash_real;
mod flash_timing;
mod hand_sums;
mod imported;
mod probe;
mod profiles;
mod queueing;
mod real_latency;
mod recorded;
mod recording;
mod reference;
mod small_flash;
mod speed;
mod validation;
mod write_cache;
