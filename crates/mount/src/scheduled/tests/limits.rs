//! Tests of limits and reservations.

use hoistway_qos::{Limits, Rate, Reserve};

use super::*;

fn one_tenant(terms: Terms) -> Vec<MountTenant> {
    vec![tenant("all", Vec::new(), terms)]
}

/// A limit of this many bytes per second, with 256 KiB at once.
fn limited_fixture(per_second: u64, depth: u32) -> GateFixture {
    let bytes = Some(Rate { per_second, burst: 256 * KIB });
    let limited = Terms { limits: Limits { bytes, operations: None }, ..Terms::default() };
    fixture_with(MountConfig {
        mount: MountTerms { depth: Some(depth), ..terms(Kind::Noop) },
        tenants: one_tenant(limited),
        ..MountConfig::default()
    })
}

#[test]
fn requests_beyond_the_limit_complete_in_order_at_its_rate() {
    // One request in flight at a time completes them in order of dispatch.
    let fixture = limited_fixture(MIB, 1);
    let log = Log::new();
    let start = Instant::now();
    // 256 KiB at once, and 768 KiB more at 1 MiB/s take 750 ms.
    for at in 0..4 {
        match fixture.gate.admit(&fixture.request(myself(), Operation::Read, at * 2 * MIB, 256 * KIB)) {
            Admission::Now(_slot) => log.note(at),
            Admission::Later(ticket) => fixture.gate.park(ticket, log.job(at)),
        }
    }
    assert_eq!(log.wait(4), [0, 1, 2, 3]);
    assert!(start.elapsed() >= Duration::from_millis(700), "{:?}", start.elapsed());
}

#[test]
fn a_request_beyond_the_limit_waits() {
    // The limit allows the second request after four minutes.
    let fixture = limited_fixture(KIB, 8);
    let log = Log::new();
    let mut waited = 0;
    for at in 0..4 {
        match fixture.gate.admit(&fixture.request(myself(), Operation::Read, at * 2 * MIB, 256 * KIB)) {
            Admission::Now(_slot) => log.note(at),
            Admission::Later(ticket) => {
                waited += 1;
                fixture.gate.park(ticket, log.job(at));
            }
        }
    }
    assert_eq!((waited, log.so_far()), (3, vec![0]));
    fixture.gate.close();
    assert_eq!(log.wait(4).len(), 4);
}

#[test]
fn an_infeasible_reservation_is_refused_at_the_start() {
    let reserve = Some(Reserve { bytes_per_second: 1 << 40, request_bytes: 128 * KIB });
    let config = MountConfig {
        mount: terms(Kind::Bfq),
        tenants: one_tenant(Terms { reserve, ..Terms::default() }),
        ..MountConfig::default()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let root = backing(File::open(folder.path()).expect("it is there"));
    let error = Scheduled::new(folder.path().to_owned(), &root, &config).err().expect("that is too much");
    assert!(error.to_string().contains("cannot be reserved"), "{error}");
}

#[test]
fn an_unknown_device_is_an_error() {
    let config = MountConfig {
        mount: MountTerms { device: Some("nosuchdisk".into()), ..terms(Kind::Noop) },
        ..MountConfig::default()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let root = backing(File::open(folder.path()).expect("it is there"));
    let error = Scheduled::new(folder.path().to_owned(), &root, &config).err().expect("there is none");
    assert!(error.to_string().contains("`nosuchdisk`"), "{error}");
}
