//! What the tests share.
#![allow(dead_code)] // Each test file uses a part of it.

use hoistway_fio::{Diagnostic, Job, JobFile, parse};

/// Parses a text without environment and without files to include.
pub fn parse_text(text: &str) -> Result<JobFile, Vec<Diagnostic>> {
    let loader = |path: &str, _: &str| Err(std::io::Error::other(format!("no {path} here")));
    parse(text, "job.fio", &|_| None, &loader).map_err(|diagnostics| diagnostics.0)
}

/// The job that these options make, in a file of one job with a size.
pub fn job(options: &str) -> Job {
    let text = format!("[j]\nsize=1m\n{options}\n");
    match parse_text(&text) {
        Ok(file) => file.jobs.into_iter().next().expect("one section is one job"),
        Err(faults) => panic!("{options}: {faults:?}"),
    }
}

/// The faults of these options, in a file of one job with a size.
pub fn faults(options: &str) -> Vec<Diagnostic> {
    match parse_text(&format!("[j]\nsize=1m\n{options}\n")) {
        Ok(file) => panic!("{options}: taken as {:?}", file.jobs),
        Err(faults) => faults,
    }
}

/// The one fault of these options: its message, and its help or nothing.
pub fn fault(options: &str) -> (String, String) {
    let mut faults = faults(options);
    assert_eq!(faults.len(), 1, "{options}: {faults:?}");
    let fault = faults.remove(0);
    (fault.message, fault.help.unwrap_or_default())
}

/// A file of the crate's test data.
pub fn testdata(name: &str) -> String {
    let path = path_of(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The path of a file in the crate's test data.
pub fn path_of(name: &str) -> String {
    format!("{}/testdata/{name}", env!("CARGO_MANIFEST_DIR"))
}
