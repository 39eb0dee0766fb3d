//! BFQ as posted in April 2008.

use crate::runner::Experiment;

/// The experiment with the elevator as posted: budgets of 4096 sectors at most, without a bound on
/// their time and without slow processes (`slow_fixed`). Later versions added both.
pub fn as_posted(experiment: Experiment) -> Experiment {
    experiment.with("max_budget=4096").with("timeout_sync=100000000").with("slow_fixed=1")
}
