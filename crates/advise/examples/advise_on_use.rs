//! Advises on a typical use of a drive and prints the answer as text and JSON.
//!
//! `cargo run -p hoistway-advise --example advise_on_use -- backup ssd-sata-consumer`

use std::sync::atomic::AtomicBool;

use hoistway_advise::{
    AdviceReport, Answer, AnswerOptions, Case, CaseRequest, ChangePlan, DriveChoice, Use, WorkloadSource,
};
use hoistway_drive::Profile;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let use_ = Use::from_name(&arguments.next().unwrap_or("backup".into())).ok_or("there is no such use")?;
    let drive = arguments.next().unwrap_or("ssd-sata-consumer".into());
    let profile = Profile::builtin(&drive).ok_or("there is no such drive")?;
    let request = CaseRequest {
        subject: None,
        workload: WorkloadSource::Use(use_),
        drive: DriveChoice::Given(Box::new(profile)),
        host: None,
        objective: None,
    };
    let cancel = AtomicBool::new(false);
    let case = Case::new(request, &cancel)?;
    let options = AnswerOptions { seeds: 3, seed: 1, all_schedulers: false };
    let answer = Answer::of(&case, options, &|_, _| {}, &cancel)?;
    println!("{}: {}", answer.chosen().name(), answer.advice.because);
    let plan = ChangePlan::new(&case, answer.chosen());
    println!("{}", serde_json::to_string_pretty(&AdviceReport::new(&case, &answer, &plan))?);
    Ok(())
}
