//! Bad sectors, slow sectors and hangs.

use hoistway_drive::{
    Access, AccessError, Command, Completion, Drive, Faults, FaultsError, Hang, Op, Profile, Status, closed_loop,
};

const MS: u64 = 1_000_000;
/// 7200 rpm.
const REVOLUTION_NS: u64 = 8_333_333;

fn faulty(name: &str, faults: Faults) -> Drive {
    let profile = Profile::builtin(name).expect("built in");
    Drive::new(&profile.with_faults(faults).expect("faults that can be"))
}

fn serve(drive: &mut Drive, now_ns: u64, op: Op, sector: u64, sectors: u32) -> Completion {
    let done = drive.serve(now_ns, Access { op, sector, sectors }).expect("it answers");
    assert_eq!(done.service.phases.total_ns(), done.service.finish_ns - now_ns);
    done
}

fn bad(sector: u64, retries: u32) -> Faults {
    Faults { bad_sectors: vec![(sector, 1)], retries, ..Faults::default() }
}

#[test]
fn bad_sector_costs_its_retries_and_fails() {
    // The five sectors up to the bad one pass as on a good disk; ten revolutions follow.
    let (mut sound, mut drive) =
        (Drive::new(&Profile::builtin("cmr-8tb").expect("built in")), faulty("cmr-8tb", bad(5004, 10)));
    let usual_ns = serve(&mut sound, 0, Op::Read, 5000, 5).service.finish_ns;
    let done = serve(&mut drive, 0, Op::Read, 5000, 8);
    assert_eq!(done.status, Status::MediaError { sector: 5004 });
    assert_eq!(done.service.finish_ns, usual_ns + 10 * REVOLUTION_NS);
}

#[test]
fn bad_sector_is_not_read_from_the_buffer_either() {
    // Read-ahead has passed it.
    let mut drive = faulty("cmr-8tb", bad(5004, 10));
    serve(&mut drive, 0, Op::Read, 4992, 8);
    let done = serve(&mut drive, 500 * MS, Op::Read, 5000, 8);
    assert_eq!(done.status, Status::MediaError { sector: 5004 });
    assert!(done.service.phases.rotation_ns >= 10 * REVOLUTION_NS);
    // The adjacent sectors are good.
    assert_eq!(serve(&mut drive, 1000 * MS, Op::Read, 5005, 8).status, Status::Done);
}

#[test]
fn slow_sector_is_read_after_its_retries_each_time() {
    let faults = Faults { slow_sectors: vec![(5000, 2)], retries: 3, ..Faults::default() };
    let mut drive = faulty("cmr-8tb", faults);
    for number in 0..3 {
        let done = serve(&mut drive, number * 1000 * MS, Op::Read, 4996, 8);
        assert_eq!(done.status, Status::Done);
        assert!(done.service.phases.rotation_ns >= 3 * REVOLUTION_NS, "{number}");
    }
}

#[test]
fn written_bad_sector_is_remapped() {
    let mut drive = faulty("sata-7200-2006", bad(5004, 10));
    assert_eq!(serve(&mut drive, 0, Op::Write, 5000, 8).status, Status::Done);
    let done = serve(&mut drive, 1000 * MS, Op::Read, 5000, 8);
    assert_eq!(done.status, Status::Done);
    // To the spare sectors at the end of the disk and back for the last three sectors: nearly 17 ms
    // each way.
    assert!(done.service.phases.seek_ns >= 33 * MS, "{:?}", done.service.phases);
    assert!(serve(&mut drive, 2000 * MS, Op::Read, 5008, 8).service.phases.seek_ns < MS);
}

#[test]
fn write_to_a_bad_sector_fails_when_no_spare_is_left() {
    let faults = Faults { bad_sectors: vec![(5000, 8), (9000, 8)], spare_sectors: 8, ..Faults::default() };
    let mut drive = faulty("cmr-8tb", faults);
    assert_eq!(serve(&mut drive, 0, Op::Write, 5000, 8).status, Status::Done);
    assert_eq!(serve(&mut drive, 10_000 * MS, Op::Write, 9000, 8).status, Status::MediaError { sector: 9000 });
}

#[test]
fn share_of_bad_sectors_is_as_configured_and_deterministic() {
    let failures = |seed: u64| {
        let mut drive = faulty("cmr-8tb", Faults { bad_share: 0.05, seed, retries: 0, ..Faults::default() });
        let mut failed = Vec::new();
        let commands = (0..10_000u64).map(|number| Access { op: Op::Read, sector: number * 80_000, sectors: 8 }.into());
        let note = |_: u64, done: &Completion| {
            if done.status != Status::Done {
                failed.push(done.tag);
            }
        };
        closed_loop(&mut drive, 0, 32, commands, note).expect("it answers");
        failed
    };
    let failed = failures(7);
    // 500 of 10,000, with a standard deviation of 22.
    assert!((420..580).contains(&failed.len()), "{}", failed.len());
    assert_eq!(failed, failures(7));
    assert_ne!(failed, failures(8));
}

#[test]
fn hang_completes_and_loses_no_command() {
    let faults = Faults { hangs: vec![Hang { at_ms: 100.0, for_ms: 2000.0 }], ..Faults::default() };
    let mut drive = faulty("cmr-8tb", faults);
    let mut ends = Vec::new();
    let commands = (0..100u64).map(|number| Access { op: Op::Read, sector: number * 90_000_000, sectors: 8 }.into());
    let check = |submitted_ns: u64, done: &Completion| {
        assert_eq!(done.service.phases.total_ns(), done.service.finish_ns - submitted_ns);
        ends.push(done.service.finish_ns);
    };
    closed_loop(&mut drive, 0, 32, commands, check).expect("it answers");
    assert_eq!(ends.len(), 100);
    assert!(ends.iter().any(|end_ns| *end_ns < 100 * MS));
    assert!(!ends.iter().any(|end_ns| (100 * MS..2100 * MS).contains(end_ns)), "{ends:?}");
}

#[test]
fn command_in_a_hang_begins_when_it_is_over() {
    let faults = Faults { hangs: vec![Hang { at_ms: 0.0, for_ms: 50.0 }], ..Faults::default() };
    for op in [Op::Read, Op::Write] {
        let done = serve(&mut faulty("cmr-8tb", faults.clone()), 10 * MS, op, 1000, 8);
        assert!(done.service.finish_ns > 50 * MS && done.service.phases.wait_ns >= 40 * MS, "{done:?}");
    }
    let flush = faulty("cmr-8tb", faults).serve(10 * MS, Command::Flush).expect("it answers");
    assert!(flush.service.finish_ns >= 50 * MS);
}

#[test]
fn drive_that_hangs_for_ever_returns_an_error() {
    let faults = Faults { hangs: vec![Hang { at_ms: 10.0, for_ms: f64::INFINITY }], ..Faults::default() };
    let mut drive = faulty("cmr-8tb", faults);
    let commands = (0..100u64).map(|number| {
        let op = if number % 2 == 0 { Op::Read } else { Op::Write };
        Access { op, sector: number * 90_000_000, sectors: 8 }.into()
    });
    let error = closed_loop(&mut drive, 0, 32, commands.chain([Command::Flush]), |_, _| {}).expect_err("it hangs");
    assert!(matches!(error, AccessError::NoAnswer { .. }), "{error}");
    assert_eq!(drive.next_event_ns(), None);
    assert_eq!(drive.poll(u64::MAX - 1), None);
}

#[test]
fn impossible_faults_are_refused() {
    let refused = |faults: Faults| {
        Profile::builtin("cmr-8tb").expect("built in").with_faults(faults).expect_err("refused").to_string()
    };
    let beyond = Faults { bad_sectors: vec![(1, 1), (15_628_053_160, 9)], ..Faults::default() };
    assert_eq!(
        refused(beyond),
        "`faults.bad_sectors` is [15628053160, 9]: a first sector and how many, at least 1, within sectors 0 to 15628053167"
    );
    assert_eq!(refused(Faults { slow_share: -0.5, ..Faults::default() }), "`faults.slow_share` is -0.5: 0 to 1");
    assert_eq!(
        refused(Faults { retries: 1001, ..Faults::default() }),
        "`faults.retries` is 1001: 0 to 1000 revolutions"
    );
    let hangs = vec![Hang { at_ms: 0.0, for_ms: 100.0 }, Hang { at_ms: 50.0, for_ms: 1.0 }];
    assert_eq!(
        refused(Faults { hangs, ..Faults::default() }),
        "`faults.hangs` is 1 ms from 50 ms on: hangs do not overlap, and the previous one ends at 100 ms"
    );
    let null = Profile::builtin("null").expect("built in").with_faults(Faults::default());
    assert_eq!(null, Err(FaultsError::NotADisk { drive: "null".into() }));
}
