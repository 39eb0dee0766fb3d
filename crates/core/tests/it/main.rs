//! Integration tests of `hoistway-core`: one binary, so that they are linked once.

#![cfg(feature = "alloc")]

mod ageing;
mod bandwidth;
mod custom;
mod edges;
mod fair_shares;
mod fiops_bounds;
mod host_merge;
mod invariants;
mod kyber;
mod machine;
mod models;
mod paternoster;
mod patience;
mod reserved;
mod scenario;
mod scenarios;
mod waiting;
