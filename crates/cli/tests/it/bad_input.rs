//! Invalid input: no panic, an exit code other than 0, and a message with file, line, value and
//! remedy.

use crate::common::{Folder, TINY_JOB, run};

/// Compares an invalid job.
#[track_caller]
fn job_is_refused(job: &str, parts: &[&str]) {
    let folder = Folder::new();
    let file = folder.file("job.fio", job);
    let page = folder.name("page.html");
    let ran = run(&["compare", &file, "--report", &page]);
    ran.refused(1, parts);
    assert_eq!(folder.files(), ["job.fio"], "nothing is left behind");
}

#[test]
fn a_missing_job_file_is_named() {
    run(&["compare", "not-there.fio"]).refused(1, &["not-there.fio", "No such file"]);
}

#[test]
fn an_unknown_option_is_reported_with_its_line_and_the_nearest() {
    job_is_refused("[a]\nsize=1m\nnumjob=8\n", &["job.fio:3:", "unknown option `numjob`", "did you mean `numjobs`?"]);
}

#[test]
fn an_invalid_unit_is_reported_with_its_value_and_the_units() {
    job_is_refused("[a]\nsize=4q\n", &["job.fio:2:", "`4q`", "the units are k, m, g"]);
}

#[test]
fn a_size_larger_than_the_drive_is_reported_with_both_sizes() {
    job_is_refused("[a]\nsize=1000g\n", &["1073741824000 bytes", "the drive has 1000204886016"]);
}

#[test]
fn zero_processes_are_out_of_range() {
    job_is_refused("[a]\nsize=1m\nnumjobs=0\n", &["job.fio:3:", "0 is out of range", "at least 1"]);
}

#[test]
fn an_empty_job_file_has_no_job() {
    job_is_refused("", &["job.fio", "no job"]);
}

#[test]
fn an_error_in_a_host_file_has_its_place_and_a_remedy() {
    let folder = Folder::new();
    let job = folder.file("job.fio", TINY_JOB);
    let refused = |text: &str, parts: &[&str]| {
        let host = folder.file("host.toml", text);
        run(&["compare", &job, "--host", &host]).refused(1, parts);
    };
    refused("kernel = \"3.2\"\ndirty_percent = 0\n", &["host.toml:2:17: `dirty_percent` is 0", "1 to 100 %"]);
    refused("read_ahaed_kib = 1\n", &["host.toml:1:1: there is no host setting `read_ahaed_kib`", "read_ahead_kib"]);
    refused("kernel = \"2.5\"\n", &["host.toml:1:10: `kernel` is \"2.5\"", "\"2.6.18\""]);
    run(&["compare", &job, "--host", "not-there.toml"]).refused(1, &["not-there.toml", "No such file"]);
}

#[test]
fn an_unknown_kernel_is_refused_with_the_known_kernels() {
    run(&["compare", "--kernel", "2.6.19"])
        .refused(2, &["no host of kernel `2.6.19`", "2.4, 2.6.18, 2.6.24, 3.2, 4.19, 6.1, 6.3, 6.12"]);
    run(&["compare", "--kernel", "3.2", "--host", "mine.toml"]).refused(2, &["cannot be used with"]);
}

#[test]
fn overlapping_zones_of_a_drive_file_are_reported_with_their_line() {
    let folder = Folder::new();
    let profile = include_str!("../../../drive/profiles/sata-7200-2006.toml");
    let overlapping = profile.replacen("last_cylinder = 6874\n", "last_cylinder = 7000\n", 1);
    assert_ne!(profile, overlapping);
    let line = overlapping.lines().position(|line| line == "first_cylinder = 6875").expect("the second zone") + 1;
    let drive = folder.file("mine.toml", overlapping);
    let place = format!("mine.toml:{line}:");
    let parts = [place.as_str(), "`zone.first_cylinder` is 6875", "overlaps", "7001 or more"];
    run(&["drives", &drive]).refused(1, &parts);
    let job = folder.file("job.fio", TINY_JOB);
    run(&["compare", &job, "--drive", &drive]).refused(1, &parts);
}

#[test]
fn an_unknown_drive_is_refused_with_the_near_drives() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/two-readers/disk");
    run(&["drives", "sata-7200-2007"]).refused(2, &["`sata-7200-2007` (did you mean `sata-7200-2006`?)"]);
    for args in
        [&["drives", "nvme"][..], &["compare", "--drive", "nvme"], &["trace", "whatif", trace, "--drive", "nvme"]]
    {
        let near = "(did you mean `ssd-nvme-tlc` or `ssd-nvme-tlc-mixed`?); `hoistway drives` lists all";
        let ran = run(args);
        ran.refused(2, &["there is no drive `nvme`", near]);
        assert!(!ran.err.contains("scsi-15k-73"), "the list of all drives: {}", ran.err);
    }
}

#[test]
fn an_unknown_probe_is_refused_with_the_known_probes() {
    run(&["drives", "--probe", "null", "--only", "seeks"])
        .refused(2, &["`seeks`", "did you mean `seek`?", "rotation, seek, zones, depth"]);
}

#[test]
fn a_drive_too_small_for_a_probe_is_refused_with_the_size() {
    let folder = Folder::new();
    let profile = include_str!("../../../drive/profiles/null.toml").replace("2147483648", "1000");
    let drive = folder.file("small.toml", profile);
    run(&["drives", "--probe", &drive, "--only", "zones"])
        .refused(1, &["zones: the drive has 1000 sectors: at least 32768 are needed"]);
}

#[test]
fn an_unknown_elevator_is_refused_with_the_near_elevators() {
    for args in [&["elevators", "cfq-v33"][..], &["compare", "--elevators", "noop,cfq-v33"]] {
        let ran = run(args);
        ran.refused(2, &["`cfq-v33` (did you mean `cfq-v3`?); `hoistway elevators` lists all"]);
        assert!(!ran.err.contains("noop, deadline"), "the list of all elevators: {}", ran.err);
    }
}

#[test]
fn an_elevator_that_is_named_twice_is_refused() {
    run(&["compare", "--elevators", "noop,deadline,noop"]).refused(2, &["`noop` twice"]);
    run(&["compare", "--elevators", "all,noop"]).refused(2, &["`all` beside others"]);
}

#[test]
fn a_misspelt_tunable_is_refused_with_the_nearest_and_all() {
    let ran = run(&["compare", "--set", "cfq-v3.slice_idel=8ms"]);
    ran.refused(2, &["did you mean `slice_idle`?", "slice_async_rq"]);
}

#[test]
fn a_tunable_out_of_range_is_refused_with_the_range() {
    run(&["compare", "--set", "cfq-v3.v3_preempt_fixed=2"]).refused(2, &["2 is out of range", "0 to 1"]);
}

#[test]
fn a_tunable_in_a_wrong_unit_is_refused_with_the_right_unit() {
    run(&["compare", "--set", "cfq-v3.slice_idle=8KiB"]).refused(2, &["kib", "slice_idle", "ms"]);
}

#[test]
fn a_setting_of_an_elevator_that_is_not_compared_is_refused() {
    let ran = run(&["compare", "--elevators", "noop", "--set", "deadline.fifo_batch=8"]);
    ran.refused(2, &["deadline.fifo_batch=8", "not among the compared: noop"]);
}

#[test]
fn a_seed_that_is_no_number_is_refused() {
    run(&["compare", "--seed", "many"]).refused(2, &["'many'", "--seed"]);
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_run() {
    let folder = Folder::new();
    // This job would take hours, so that the refusal precedes it.
    let job = folder.file("job.fio", "[a]\nrw=randread\nbs=512\nsize=100g\ndirect=1\ntime_based\nruntime=1000d\n");
    let place = folder.name("not/there/page.html");
    run(&["compare", &job, "--report", &place]).refused(1, &["page.html", "there is no folder"]);
    run(&["compare", &job, "--report", &folder.name("")]).refused(1, &["is a folder"]);
    run(&["compare", &job, "--report", "/dev/null"]).refused(1, &["/dev/null", "no ordinary file"]);
    assert_eq!(folder.files(), ["job.fio"]);
}

#[test]
fn zero_requests_or_processes_cannot_be_measured() {
    run(&["bench", "elevators", "--processes", "0"]).refused(2, &["0 is not in 1..=65536"]);
    run(&["bench", "sim", "--requests", "0"]).refused(2, &["0 is not in 1..="]);
}
