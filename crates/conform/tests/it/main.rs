//! Integration tests of `hoistway-conform`: one binary, so that they are linked once.

mod decision_groups;
mod decisions;
mod kernel_recording;
