//! Integration tests of `hoistway-workload`.

mod real_fio;
