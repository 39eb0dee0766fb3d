//! Compares a job file under two elevators and prints the verdict, or with `--json` the whole
//! answer.
//!
//! `cargo run -p hoistway-advise --example verdict -- JOBFILE ELEVATOR ELEVATOR [--json]`

use std::sync::atomic::AtomicBool;

use hoistway_advise::compare::{ComparisonDocument, DocumentContext, Judgement};
use hoistway_drive::Profile;
use hoistway_sim::{CompareRequest, HostConfig, compare, elevator_of_name};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, one, other, options @ ..] = arguments.as_slice() else {
        return Err("usage: verdict JOBFILE ELEVATOR ELEVATOR [--json]".into());
    };
    let jobs = hoistway_fio::load(file)?;
    let global_options = jobs.global_options.clone();
    let request = CompareRequest {
        jobs,
        profile: Profile::builtin("sata-7200-2006").ok_or("the built-in drive is missing")?,
        host: HostConfig::default(),
        elevators: vec![elevator_of_name(one)?, elevator_of_name(other)?],
        settings: Vec::new(),
        seed: 1,
        record: false,
    };
    let comparison = compare(&request, &|_progress| {}, &AtomicBool::new(false))?;
    let judgement = Judgement::of(&comparison);
    if options.iter().any(|option| option == "--json") {
        let context = DocumentContext {
            job: file,
            global_options: &global_options,
            host: "each elevator in its own kernel",
            defaults: None,
            seeds: None,
            is_partial: false,
        };
        let document = ComparisonDocument::new(&comparison, &judgement, &context);
        println!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(());
    }
    for run in &comparison.runs {
        println!("{}: {:.1} MB/s", run.elevator, run.bytes_per_s / 1e6);
    }
    println!("{}", judgement.verdict.text());
    Ok(())
}
