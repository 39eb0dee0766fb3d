//! The confidence in advice.

use crate::whatif::{Confidence, Level};
use hoistway_core::Kind;

use crate::case::{Case, WorkloadKind};
use crate::device_facts::ModelQuality;

/// bfq favours new readers for up to this time, in ns.
const BFQ_RAISING_NS: u64 = 25_000_000_000;

impl Case {
    /// The confidence that workload and drive allow, whichever is less, with reasons.
    pub fn confidence(&self) -> Confidence {
        let (workload_level, workload_reason) = self.workload_confidence();
        let (drive_level, drive_reason) = self.drive_confidence();
        let mut reasons = vec![workload_reason, drive_reason];
        if let Some(recorded) = &self.recorded {
            reasons.extend(recorded.confidence.reasons.iter().cloned());
            let duration_ns = recorded.duration_ns;
            let is_short = (BFQ_RAISING_NS..2 * BFQ_RAISING_NS).contains(&duration_ns);
            if self.candidates.contains(&Kind::Bfq) && is_short {
                reasons.push(format!(
                    "the recording is {:.0} s long, and bfq favours new readers for up to 25 s: its figures are those of its first moments \
                     (low_latency=0 shows it without)",
                    duration_ns as f64 / 1e9
                ));
            }
        }
        let mut level = workload_level.min(drive_level);
        if let Some(subject) = &self.subject {
            if subject.device.kind.is_stacked() && !hoistway_machine::schedules_for_paths(&subject.device) {
                let name = &subject.device.name;
                reasons.push(format!("requests to {name} pass a second queue below it, which is not simulated"));
                level = Level::Low;
            }
            if !subject.alike.is_empty() {
                let count = subject.alike.len() + 1;
                reasons.push(format!("all of the work is simulated on one of the {count} drives that share it"));
                level = level.min(Level::Fair);
            }
        }
        Confidence { level, reasons }
    }

    fn workload_confidence(&self) -> (Level, String) {
        match (self.kind, &self.recorded) {
            (_, Some(recorded)) => (recorded.confidence.level, "the workload was recorded".into()),
            (WorkloadKind::Use, None) => {
                (Level::Low, "the workload is a typical one and not yours: a trace of your own says more".into())
            }
            _ => (Level::Fair, "the workload is a job file: its requests are simulated as written".into()),
        }
    }

    fn drive_confidence(&self) -> (Level, String) {
        let profile = self.bench.profile.name();
        match self.drive.quality {
            ModelQuality::Fitted => {
                let held_out = self.drive.fitted.as_ref().map(|fitted| &fitted.held_out);
                let half = held_out.map_or_else(String::new, |held_out| {
                    let [predicted, recorded] = [held_out.predicted_ms[0], held_out.recorded_ms[0]];
                    format!(
                        ": on the half of it that it was not fitted to, the predicted median is {predicted:.2} ms and the recorded one {recorded:.2} ms"
                    )
                });
                (Level::High, format!("the drive was fitted to the trace{half}"))
            }
            ModelQuality::Named => (Level::High, format!("the drive is {profile}, as named")),
            ModelQuality::Generic => (
                Level::Fair,
                format!(
                    "the drive is {profile}, one of its kind and size: yours may be slower or faster, and the order of schedulers that differ clearly is the same"
                ),
            ),
            ModelQuality::Distant => (Level::Low, format!("the drive is {profile}, which is of another kind")),
            ModelQuality::Unknown => {
                (Level::Low, format!("the drive behind the device is not known: {profile} stands for it"))
            }
        }
    }
}
