//! Workloads: the processes and files of the jobs of a job file. hoistway-workload generates their
//! requests.

pub(crate) mod groups;
pub(crate) mod plan;
pub(crate) mod recorded;
pub(crate) mod requests;
pub(crate) mod turnaround;
pub(crate) mod walk;

pub(crate) use hoistway_workload::{distribution, mix, stream};
