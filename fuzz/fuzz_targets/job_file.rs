//! Arbitrary text as a fio job file: jobs, or errors with their positions in the text.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let environment = |name: &str| (name.len() % 2 == 1).then(|| "4k".to_owned());
    let include = |path: &str, _: &str| match path {
        "a" => Ok("iodepth=2\n".to_owned()),
        "b" => Ok("include b\nbs=0\n".to_owned()),
        _ => Err(std::io::Error::other("absent")),
    };
    match hoistway_fio::parse(text, "job.fio", &environment, &include) {
        Ok(file) => {
            assert!(!file.jobs.is_empty());
            for job in &file.jobs {
                assert!(job.start.numjobs > 0 && job.submission.iodepth > 0 && job.requests.rwmixread <= 100);
                assert!(job.blocks.bs.read.min() > 0 && job.blocks.bs.write.min() > 0);
            }
        }
        Err(faults) => {
            assert!(!faults.0.is_empty());
            assert!(!faults.to_string().is_empty());
        }
    }
});
