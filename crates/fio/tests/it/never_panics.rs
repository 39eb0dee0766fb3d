//! Arbitrary text gives a job file, or diagnostics with a position in the text.

use hoistway_fio::{Diagnostics, JobFile, parse};
use proptest::prelude::*;

fn take(text: &str) -> Result<JobFile, Diagnostics> {
    let env = |name: &str| (name.len() % 2 == 1).then(|| "4k".to_owned());
    let loader = |path: &str, _: &str| match path {
        "a" => Ok("iodepth=2\n".to_owned()),
        "b" => Ok("include b\nbs=0\n".to_owned()),
        _ => Err(std::io::Error::other("absent")),
    };
    parse(text, "job.fio", &env, &loader)
}

/// Checks that there are jobs, or errors with valid positions.
fn check(text: &str) -> Result<(), TestCaseError> {
    match take(text) {
        Ok(file) => {
            prop_assert!(!file.jobs.is_empty());
            for job in file.jobs {
                prop_assert!(
                    job.start.numjobs > 0
                        && job.submission.iodepth > 0
                        && job.amount.loops > 0
                        && job.files.nrfiles > 0
                );
                prop_assert!(job.blocks.bs.read.min() > 0 && job.blocks.bs.write.min() > 0);
                prop_assert!(job.requests.rwmixread <= 100);
            }
        }
        Err(faults) => {
            prop_assert!(!faults.0.is_empty());
            let lines = text.lines().count();
            for fault in faults.0.iter().filter(|fault| fault.file == "job.fio" && fault.line > 0) {
                prop_assert!(fault.line as usize <= lines, "{fault}");
                prop_assert!(fault.column >= 1, "{fault}");
            }
        }
    }
    Ok(())
}

/// Lines that are nearly valid.
fn line() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        Just("rw"),
        Just("bs"),
        Just("bsrange"),
        Just("bssplit"),
        Just("size"),
        Just("filesize"),
        Just("io_size"),
        Just("offset"),
        Just("filename"),
        Just("numjobs"),
        Just("iodepth"),
        Just("ioengine"),
        Just("direct"),
        Just("runtime"),
        Just("time_based"),
        Just("startdelay"),
        Just("thinktime"),
        Just("thinktime_spin"),
        Just("rate"),
        Just("rate_iops"),
        Just("rwmixread"),
        Just("random_distribution"),
        Just("prio"),
        Just("prioclass"),
        Just("nice"),
        Just("wait_for"),
        Just("stonewall"),
        Just("kb_base"),
        Just("name"),
        Just("percentage_random"),
        Just("zonemode"),
        Just("include"),
        Just("thread"),
        Just("qqq"),
    ];
    let value = prop_oneof![
        "[0-9]{1,20}[kmgtpz]?i?b?",
        "[0-9kx%,:/. -]{0,12}",
        "(read|randrw|write)(:-?[0-9k]{0,4})?",
        "\\PC{0,8}",
        "\\$\\{[A-Z]{0,3}\\}?",
        "(zipf|pareto|normal|zoned):[0-9./:e-]{0,9}",
        Just("a".to_owned()),
        Just("b".to_owned()),
    ];
    prop_oneof![
        8 => (name, "=|= | ", value).prop_map(|(name, equals, value)| format!("{name}{equals}{value}")),
        2 => prop_oneof![Just("[global]"), Just("[a]"), Just("[b]"), Just("[b"), Just("[]"), Just("; x")]
            .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn arbitrary_text_is_accepted_or_rejected(text in "\\PC*") {
        check(&text)?;
    }

    #[test]
    fn arbitrary_lines_are_accepted_or_rejected(text in "([\\[\\];#=a-z0-9${} \\\\:,./%-]{0,20}[\n\r\t]){0,12}") {
        check(&text)?;
    }

    #[test]
    fn nearly_valid_lines_are_accepted_or_rejected(lines in proptest::collection::vec(line(), 0..12)) {
        check(&format!("[global]\nsize=1m\n{}\n[j]\n", lines.join("\n")))?;
    }

    #[test]
    fn one_more_line_is_accepted_or_rejected(line in line()) {
        check(&format!("[j]\nsize=1m\n{line}\n"))?;
    }
}
