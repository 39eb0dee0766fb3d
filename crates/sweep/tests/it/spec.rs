//! Sweep files: what they hold, and how mistakes are reported.

use std::path::Path;

use hoistway_sweep::{Plan, SweepSpec};

use crate::{plan, text};

const DRIVES: &str = "drives = [\"sata-7200-2006\"]\n";

fn refused(rest: &str) -> String {
    SweepSpec::from_toml(&text(rest), "sweep.toml", Path::new("")).expect_err("an invalid sweep").to_string()
}

#[test]
fn the_self_contained_text_is_the_same_sweep() {
    let plan = plan(
        "drives = [\"ssd-sata-consumer\", { base = \"cmr-8tb\", \"queue.depth\" = [1, 8] }]\n\
         elevators = [\"cfq\", \"bfq\"]\nhosts = [\"6.1\", \"own\"]\nseeds = \"1-2\"\nscale = 0.5\n\
         [vary]\n\"cfq.slice_idle\" = [0, \"8ms\"]\n\"job.reader.numjobs\" = [1, 2]\n",
    );
    let again = SweepSpec::from_toml(&plan.spec().self_contained, "again.toml", Path::new("/nowhere")).unwrap();
    assert_eq!(again.self_contained, plan.spec().self_contained);
    let again = Plan::new(again).unwrap();
    assert_eq!(again.points(), plan.points());
    for number in 0..plan.points() {
        let id = |plan: &Plan| hoistway_sweep::Point::new(plan.spec(), &plan.choice(number).unwrap()).id;
        assert_eq!(id(&again), id(&plan), "point {number}");
    }
}

#[test]
fn mistakes_name_line_and_value_and_what_would_be_right() {
    let rest = |rest: &str| format!("{DRIVES}elevators = [\"bfq\"]\n{rest}");
    let cases = [
        (
            "drives = [\"cmr-8tv\"]\nelevators = [\"bfq\"]\n".to_owned(),
            "there is no drive `cmr-8tv` (did you mean `cmr-8tb`?)",
        ),
        (format!("{DRIVES}elevators = [\"bqf\"]\n"), "there is no elevator `bqf` (did you mean `bfq`?)"),
        (DRIVES.to_owned(), "`elevators` is missing"),
        (rest("seed = 3\n"), "a sweep has no key `seed` (did you mean `seeds`?)"),
        (rest("hosts = [\"7.0\"]\n"), "there is no host `7.0`: there are 2.4, 2.6.18"),
        (rest("scale = 2\n"), "`scale` is a number above 0 and at most 1"),
        (rest("[vary]\n\"cfq.slice_idle\" = [0]\n"), "`cfq.slice_idle`: `elevators` does not have cfq"),
        (rest("[vary]\n\"bfq.slice_idel\" = [0]\n"), "bfq has no tunable `slice_idel` (did you mean `slice_idle`?)"),
        (rest("[vary]\n\"job.raeder.bs\" = [4096]\n"), "no job file has a section [raeder] (did you mean `reader`?)"),
        (rest("[vary]\n\"job.reader.numjob\" = [1]\n"), "there is no option `numjob`: did you mean `numjobs`?"),
        (rest("[vary]\n\"job.reader.numjobs\" = [1, 2, 1]\n"), "has the value 1 twice"),
        (rest("[vary]\n\"bfq.slice_idle\" = { min = 0, max = 8 }\n"), "is a range, which needs `sample"),
        (rest("[vary]\nslice_idle = [0]\n"), "`slice_idle` is no key of a sweep"),
    ];
    for (text, expected) in cases {
        let error = refused(&text);
        assert!(error.starts_with("sweep.toml:") && error.contains(expected), "{text}: {error}");
    }
    let line = refused(&rest("[vary]\n\"bfq.slice_idel\" = [0]\n"));
    // The job takes ten lines.
    assert!(line.starts_with("sweep.toml:14:1: "), "{line}");
}

#[test]
fn a_job_file_that_is_not_there_is_named() {
    let text = format!("jobs = [\"nothing.fio\"]\n{DRIVES}elevators = [\"bfq\"]\n");
    let error = SweepSpec::from_toml(&text, "sweep.toml", Path::new("some")).unwrap_err().to_string();
    assert!(error.starts_with("sweep.toml:1:9: cannot read the job file some/nothing.fio"), "{error}");
}
