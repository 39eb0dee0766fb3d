//! How much the advice is worth.

use hoistway_advise::Workload;
use hoistway_advise::facts::Standing;
use hoistway_core::Kind;
use hoistway_sim::whatif::Level;

use super::case::{Case, WorkloadKind};

/// bfq favours new readers for up to so long.
const RAISED_NS: u64 = 25_000_000_000;

/// How much, and why.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Confidence {
    pub level: Level,
    /// A sentence each.
    pub reasons: Vec<String>,
}

impl Case {
    /// The least of what the workload and the drive allow.
    pub fn confidence(&self) -> Confidence {
        let (of_workload, workload) = match (self.kind, &self.recorded) {
            (_, Some(recorded)) => (recorded.confidence.level, "the workload was recorded".into()),
            (WorkloadKind::Use, None) => {
                (Level::Low, "the workload is a typical one and not yours: a trace of your own says more".into())
            }
            _ => (Level::Fair, "the workload is a job file: what it asks for is simulated as it stands there".into()),
        };
        let (of_drive, drive) = match self.drive.standing {
            Standing::Fitted => {
                let half = self.drive.fitted.as_ref().map_or_else(String::new, |fitted| {
                    let [told, is] = [fitted.held_out.predicted_ms[0], fitted.held_out.recorded_ms[0]];
                    format!(
                        ": on the half of it that it was not fitted to, the median is {told:.2} ms and was {is:.2} ms"
                    )
                });
                (Level::High, format!("the drive was fitted to the trace{half}"))
            }
            Standing::Named => (Level::High, format!("the drive is {}, as named", self.bench.profile.name())),
            Standing::Generic => (
                Level::Fair,
                format!(
                    "the drive is {}, one of its kind and size: yours may be slower or faster, and the order of schedulers that lie well apart is the same",
                    self.bench.profile.name()
                ),
            ),
            Standing::Distant => {
                (Level::Low, format!("the drive is {}, which is of another kind", self.bench.profile.name()))
            }
            Standing::Unknown => (
                Level::Low,
                format!("nobody knows what lies below the device: {} stands for it", self.bench.profile.name()),
            ),
        };
        let mut reasons = vec![workload, drive];
        if let Some(recorded) = &self.recorded {
            reasons.extend(recorded.confidence.reasons.iter().cloned());
            let length_ns = self.recorded_ns();
            if self.candidates.contains(&Kind::Bfq) && (RAISED_NS..2 * RAISED_NS).contains(&length_ns) {
                reasons.push(format!(
                    "the recording is {:.0} s long, and bfq favours readers that are new for up to 25 s: what is told of it is of its first moments \
                     (low_latency=0 shows it without)",
                    length_ns as f64 / 1e9
                ));
            }
        }
        let mut level = of_workload.min(of_drive);
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

    /// How long the recording is, in ns; 0 without one.
    fn recorded_ns(&self) -> u64 {
        match &self.bench.workload {
            Workload::Recorded(model, _) => {
                let recording = model.recording();
                recording.until_ns.saturating_sub(recording.from_ns)
            }
            Workload::Jobs(_) => 0,
        }
    }
}

/// As text has it.
pub fn word(level: Level) -> &'static str {
    match level {
        Level::Low => "low",
        Level::Fair => "fair",
        Level::High => "high",
    }
}
