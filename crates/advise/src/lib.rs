//! Advice on the I/O scheduler of a device for a workload, from simulations.
//!
//! [`Case::new`] collects the inputs of advice: a workload (jobs, a typical use, or a recorded
//! trace), a drive model, a host, an objective and the current settings. [`Answer::of`] simulates
//! every scheduler that can be set with several seeds and advises one of them, or no change: a
//! difference that could be chance does not count. [`tune()`] searches tunables in the same
//! way. [`ChangePlan`] is the advice as assignments, commands and udev rules. [`Overview`]
//! describes devices without a workload, and [`whatif`] predicts a recorded workload under other
//! elevators.
//!
//! [`AdviceReport`], [`TuneReport`], [`Overview`] and [`whatif::WhatifReport`] are the serialisable
//! answers of `hoistway advise` and `hoistway trace whatif`.
//!
//! # Where to change
//!
//! - the simulations of a choice: `bench.rs`
//! - which choice is picked, and the reason given: `advice.rs`; the jobs that gain and lose,
//!   `job_changes.rs`
//! - a typical use: `use_case.rs` and its job file in `uses/`
//! - a metric of objectives: `Metric` in `objective.rs`; its syntax, `objective/parse.rs`
//! - which tunables are tried: `usual_variants` in `choice.rs`
//! - which tunables are searched, and how: `tune/space.rs`, `tune/pattern_search.rs`; names of
//!   `--tunables`, `tune/selection.rs`
//! - which drive model stands for a device: `device_facts/drive_model.rs`
//! - warnings about a device: `device_facts/warnings.rs`; those about an answer, `answer.rs`
//! - what a case consists of, and what is refused: `case.rs`; traces, `trace_case.rs`
//! - how far advice can be trusted: `confidence.rs`
//! - commands, udev rules and the way back: `change_plan.rs`
//! - the JSON of `hoistway advise`: `report.rs` and `overview.rs`, with docs/advise.md; its pages:
//!   `page.rs`; sentences that text and page share: `wording.rs`, `tune/wording.rs`
//! - `hoistway compare`: the crate `hoistway-compare`; the drive and the elevators of a device,
//!   `device_facts/nearest_drive.rs`
//! - the time of a flush in a drive that is fitted to a trace: `flush_fit.rs`
//! - the time of a reordered trace on a drive: `reorder_time.rs`
//! - predictions from a trace: `whatif/model.rs`; their error, `whatif/fidelity.rs`; their JSON,
//!   `whatif/report.rs`; from submissions alone, `whatif/submissions.rs`; damaged requests,
//!   `whatif/damage.rs`; their page, `whatif/page.rs`
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod advice;
mod answer;
mod bench;
mod case;
mod change_plan;
mod choice;
mod confidence;
pub mod device_facts;
mod flush_fit;
mod job_changes;
mod objective;
mod overview;
mod page;
mod reorder_time;
mod report;
mod subject;
mod text;
mod trace_case;
pub mod tune;
mod use_case;
pub mod whatif;
pub mod wording;

pub use advice::{Advice, AdviceRequest, EvaluatedChoice, Validation, Verdict, advise};
pub use answer::{Answer, AnswerOptions, DepthComparison};
pub use bench::{AdviseError, Bench, JobFigures, RunFigures, RunProgress, Workload};
pub use case::{Case, CaseError, CaseRequest, DriveChoice, DriveOrigin, Recorded, WorkloadKind, WorkloadSource};
pub use change_plan::{ChangeError, ChangePlan, PlannedRule};
pub use choice::{Choice, kernel_value, usual_variants};
pub use job_changes::JobChange;
pub use objective::{Bound, Constraint, Figure, Goal, Metric, Objective, ObjectiveError, Unit, WORST};
pub use overview::{DeviceOverview, Overview};
pub use page::{advice_page, tune_page};
pub use reorder_time::ReorderTime;
pub use report::{
    AdviceReport, CaseReport, ChoiceReport, CommandsReport, ComparedFigure, DepthReport, DriveReport, EvaluatedReport,
    FigureReport, HostReport, ObjectiveReport, RecordedReport, SubjectReport, TrialReport, TuneReport,
    ValidationReport, WorkloadReport,
};
pub use subject::{NoSchedulerError, Subject, device_line};
pub use text::value_text;
pub use trace_case::{DriveSource, ModelBasis, TraceCase, TraceCaseError, TraceCaseRequest, TraceDrive};
pub use tune::{TuneRequest, TuneResult, tune};
pub use use_case::{Use, UseInfo};
pub use whatif::{Confidence, Level};
