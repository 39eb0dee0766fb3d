//! Tests of limits and reservations.

use hoistway_qos::{Limits, Rate, Reserve};

use super::*;

fn one_tenant(terms: Terms) -> Vec<MountTenant> {
    vec![tenant("all", Vec::new(), terms)]
}

#[test]
fn a_request_beyond_the_limit_waits() {
    let bytes = Some(Rate { per_second: MIB, burst: 256 * KIB });
    let limited = Terms { limits: Limits { bytes, operations: None }, ..Terms::default() };
    let fixture = fixture_with(MountConfig {
        mount: MountTerms { depth: Some(8), ..terms(Kind::Noop) },
        tenants: one_tenant(limited),
        ..MountConfig::default()
    });
    let log = Log::new();
    let start = Instant::now();
    let mut waited = 0;
    // 256 KiB at once, and 768 KiB more at 1 MiB/s take 750 ms.
    for at in 0..4 {
        match fixture.gate.admit(&fixture.request(myself(), Operation::Read, at * 2 * MIB, 256 * KIB)) {
            Admission::Now(_) => log.note(at),
            Admission::Later(ticket) => {
                waited += 1;
                fixture.gate.park(ticket, log.job(at));
            }
        }
    }
    assert_eq!(log.wait(4), [0, 1, 2, 3]);
    assert_eq!(waited, 3);
    assert!(start.elapsed() >= Duration::from_millis(700), "{:?}", start.elapsed());
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
