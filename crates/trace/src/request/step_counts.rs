//! Counts requests by the steps that a trace shows of them.

use serde::Serialize;

use super::RequestRecord;

/// Number of requests by the steps that a trace shows of them. Commands use it to say what is
/// missing for a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StepCounts {
    /// All requests.
    pub requests: u64,
    /// Requests with a submission (Q).
    pub submitted: u64,
    /// Requests with an issue to the driver (D).
    pub issued: u64,
    /// Requests with a completion (C).
    pub completed: u64,
    /// Requests with a completion and an earlier step, which have a latency.
    pub with_latency: u64,
    /// Requests with an issue and a completion, which have a service time.
    pub with_service_time: u64,
}

impl StepCounts {
    /// Counts requests.
    pub fn of<'a>(requests: impl IntoIterator<Item = &'a RequestRecord>) -> StepCounts {
        let mut counts = StepCounts::default();
        requests.into_iter().for_each(|request| counts.add(request));
        counts
    }

    /// Counts a request.
    pub fn add(&mut self, request: &RequestRecord) {
        let is_issued = request.issued_ns.is_some();
        let is_completed = request.completed_ns.is_some();
        self.requests += 1;
        self.submitted += u64::from(request.queued_ns.is_some());
        self.issued += u64::from(is_issued);
        self.completed += u64::from(is_completed);
        self.with_latency += u64::from(is_completed && request.first_seen_ns().is_some());
        self.with_service_time += u64::from(is_completed && is_issued);
    }

    /// Returns what the trace lacks for service times; None if some requests have one.
    pub fn missing(&self) -> Option<&'static str> {
        match (self.requests, self.issued, self.completed, self.with_service_time) {
            (0, ..) => Some("events of requests are missing"),
            (_, 0, 0, _) => Some("issues (D) and completions (C) are missing"),
            (_, _, 0, _) => Some("completions (C) are missing"),
            (_, 0, ..) => Some("issues (D) are missing"),
            (.., 0) => Some("no completion belongs to an issue, as if the file of another CPU were missing"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(queued: bool, issued: bool, completed: bool) -> RequestRecord {
        RequestRecord {
            queued_ns: queued.then_some(1),
            issued_ns: issued.then_some(2),
            completed_ns: completed.then_some(3),
            ..RequestRecord::default()
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let only_submissions = StepCounts::of(&[request(true, false, false), request(true, false, false)]);
        assert_eq!((only_submissions.requests, only_submissions.submitted), (2, 2));
        assert_eq!(only_submissions.missing(), Some("issues (D) and completions (C) are missing"));
        // The recording of one of two CPUs: issues on one, completions on the other.
        let unpaired = StepCounts::of(&[request(true, true, false), request(false, false, true)]);
        assert!(unpaired.missing().unwrap().contains("the file of another CPU"));
        assert_eq!(StepCounts::of(&[request(true, true, true)]).missing(), None);
        assert_eq!(StepCounts::default().missing(), Some("events of requests are missing"));
        let with_responses = StepCounts::of(&[request(true, false, true)]);
        assert_eq!((with_responses.with_latency, with_responses.missing()), (1, Some("issues (D) are missing")));
    }
}
