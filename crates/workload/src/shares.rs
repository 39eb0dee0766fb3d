//! Shares of the jobs with one `flow_id`: each makes requests in proportion to its `flow`.

/// The jobs with one `flow_id` that run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shares {
    weights: u64,
    requests: u64,
}

/// A process among the jobs with its `flow_id`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    weight: u64,
    requests: u64,
}

impl Shares {
    /// Adds a process with this weight. It owes nothing for the time before it.
    pub fn join(&mut self, weight: u32) -> Share {
        let weight = u64::from(weight);
        let requests = self.requests.checked_div(self.weights).unwrap_or(0) * weight;
        self.weights += weight;
        self.requests += requests;
        Share { weight, requests }
    }

    /// Returns true if the process has made more than its share of the requests.
    pub fn is_ahead(&self, share: &Share) -> bool {
        u128::from(share.requests) * u128::from(self.weights) > u128::from(self.requests) * u128::from(share.weight)
    }

    /// Counts a request.
    pub fn made(&mut self, share: &mut Share) {
        self.requests += 1;
        share.requests += 1;
    }

    /// Takes out a process that ends.
    pub fn leave(&mut self, share: &Share) {
        self.weights -= share.weight.min(self.weights);
        self.requests -= share.requests.min(self.requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_in_proportion_to_weights() {
        let mut shares = Shares::default();
        let mut jobs = [shares.join(8), shares.join(1)];
        for turn in 0..9_000 {
            let job = &mut jobs[turn % 2];
            if !shares.is_ahead(job) {
                shares.made(job);
            }
        }
        assert!(jobs[0].requests.abs_diff(8 * jobs[1].requests) <= 16, "{jobs:?}");
    }

    #[test]
    fn a_job_that_joins_late_owes_nothing_and_one_that_is_alone_never_waits() {
        let mut shares = Shares::default();
        let mut first = shares.join(2);
        for _ in 0..100 {
            assert!(!shares.is_ahead(&first));
            shares.made(&mut first);
        }
        let second = shares.join(4);
        assert_eq!(second.requests, 200);
        shares.leave(&second);
        assert!(!shares.is_ahead(&first));
    }
}
