//! The elevators, one file or folder each; `shared` has the rules that several of them use.

pub mod anticipatory;
pub mod bandwidth;
pub mod bfq;
pub mod bfq_v0;
pub mod cfq;
pub mod cfq_bw;
pub mod cfq_tree;
pub mod cfq_v1;
pub mod cfq_v2;
pub mod cfq_v3;
pub mod cfq_wf2q;
pub mod custom;
pub mod deadline;
pub mod fiops;
pub mod kyber;
pub mod linus;
pub mod mq_deadline;
pub mod noop;
pub mod paternoster;
pub mod sfq;
pub mod shared;
