//! Long requests are split into pieces; short adjacent requests are merged.

use hoistway_qos::DiskQueueConfig;
use std::collections::BTreeMap;

use hoistway_blockdev::{BlockRequest, IoOutput};
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_core::Kind;
use hoistway_qos::IoError;
use hoistway_qos::RequestOp;
use hoistway_qos::queue::TRIM_BYTES_MAX;
use hoistway_reactor::IoOp;

use crate::testbed::*;

fn pattern(length: usize, seed: u64) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(seed | 1) >> 8) as u8 ^ at as u8).collect()
}

#[test]
fn a_long_write_and_a_long_read_are_split_and_keep_every_byte() {
    let memory = DeviceConfig { backend: BackendConfig::Memory { bytes: 64 << 20 }, ..config("m") };
    for mut testbed in [Testbed::new(&memory), Testbed::on_file(&config("f"), 64 << 20, MS)] {
        let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
        let bytes = pattern(5 * MIB as usize + 777, 0x9e37);
        assert!(execute(&mut testbed, member, write(1, 1234, &bytes), SECOND).expect("a completion").result.is_ok());
        let done = execute(&mut testbed, member, read(2, 1234, bytes.len() as u64), SECOND).expect("a completion");
        let output = done.result.expect("data");
        assert!(matches!(&output, IoOutput::Pieces(parts) if parts.len() >= 6), "{output:?}");
        assert_eq!(bytes_of(&output, bytes.len()), bytes);
        assert!(testbed.device.is_idle());
    }
}

#[test]
fn pieces_fit_the_device_and_begin_at_pages() {
    let mut testbed = Testbed::on_file(&config("f"), 64 << 20, MS);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    assert!(execute(&mut testbed, member, write(1, 4096 * 3, &vec![1; 20 << 20]), SECOND).is_some());
    let writes: Vec<_> = testbed.engine.log.iter().filter(|(_, op, ..)| matches!(op, IoOp::Write { .. })).collect();
    assert!(writes.len() >= 20 && writes.iter().all(|(.., offset, length)| *length <= MIB && offset % 4096 == 0));
    assert_eq!(writes.iter().map(|(.., length)| length).sum::<u64>(), 20 << 20);
}

#[test]
fn a_write_with_a_failed_piece_fails_once() {
    let mut testbed = Testbed::on_file(&config("f"), 64 << 20, MS);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    testbed.engine.write_error = Some(28);
    let done = execute(&mut testbed, member, write(1, 0, &vec![1; 20 << 20]), SECOND).expect("a completion");
    assert_eq!(done.result.err(), Some(IoError::NoSpace));
    assert!(testbed.device.is_idle(), "what was not begun is not done any more");
    assert!(testbed.engine.log.len() < 20, "{}", testbed.engine.log.len());
}

#[test]
fn a_trim_of_the_whole_device_comes_in_large_pieces() {
    let big = DeviceConfig { backend: BackendConfig::Null { bytes: 1 << 40 }, ..config("n") };
    let mut testbed = Testbed::new(&big);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    let trim = BlockRequest { length: 1 << 40, ..without_data(1, RequestOp::Trim) };
    assert!(execute(&mut testbed, member, trim, SECOND).expect("a completion").result.is_ok());
    assert_eq!((1u64 << 40) / TRIM_BYTES_MAX, 16_384);
    let zero = BlockRequest { length: 1 << 32, ..without_data(2, RequestOp::Zero { punch: true }) };
    assert!(execute(&mut testbed, member, zero, SECOND).expect("a completion").result.is_ok());
    let counted: BTreeMap<_, _> =
        testbed.device.scheduler().accounts().map(|(name, account)| (name, account.ops[2].bytes)).collect();
    assert_eq!(counted["default"], (1 << 40) + (1 << 32));
}

#[test]
fn adjacent_writes_merge_and_keep_their_data() {
    let slow = DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(Kind::Deadline), ..millisecond(Kind::Deadline, 1).queue },
        backend: BackendConfig::Memory { bytes: 64 << 20 },
        ..millisecond(Kind::Deadline, 1)
    };
    let mut testbed = Testbed::new(&slow);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    testbed.device.submit(member, write(100, 32 * MIB, &[9; 512]), 0);
    let mut done = Vec::new();
    testbed.device.run(&mut testbed.engine, 0, &mut done);
    for ticket in 0..16u64 {
        testbed.device.submit(member, write(ticket, ticket * 4096, &[ticket as u8; 4096]), 0);
    }
    assert!(wait_for(&mut testbed, 15, 2 * MS).is_some(), "two commands of 1 ms: one for all sixteen");
    assert_eq!(testbed.device.scheduler().merged()[1], 15);
    let done = execute(&mut testbed, member, read(200, 0, 65_536), 10 * MS).expect("a completion");
    let bytes = bytes_of(&done.result.expect("data"), 65_536);
    assert!(bytes.chunks(4096).enumerate().all(|(at, page)| page.iter().all(|byte| usize::from(*byte) == at)));
}

#[test]
fn a_request_beyond_the_end_fails_without_io() {
    let mut testbed = Testbed::on_file(&config("f"), 1 << 20, MS);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    let output =
        |testbed: &mut Testbed, work| execute(testbed, member, work, SECOND).expect("a completion").result.err();
    assert_eq!(output(&mut testbed, read(1, 1 << 20, 1)), Some(IoError::InvalidArgument));
    assert_eq!(output(&mut testbed, write(2, (1 << 20) - 1, &[1, 2])), Some(IoError::NoSpace));
    let trim = BlockRequest { length: 2, offset: (1 << 20) - 1, ..without_data(3, RequestOp::Trim) };
    assert_eq!(output(&mut testbed, trim), Some(IoError::InvalidArgument), "a trim needs no room");
    assert_eq!(output(&mut testbed, read(3, u64::MAX, 2)), Some(IoError::InvalidArgument));
    assert_eq!(output(&mut testbed, read(4, 0, 0)), Some(IoError::InvalidArgument));
    assert_eq!(
        output(&mut testbed, BlockRequest { length: 8192, ..write(5, 0, &[0; 4096]) }),
        Some(IoError::InvalidArgument)
    );
    assert!(testbed.engine.log.is_empty());
}

#[test]
fn a_status_query_bypasses_the_queue() {
    let memory = DeviceConfig { backend: BackendConfig::Memory { bytes: 64 << 20 }, ..millisecond(Kind::Noop, 1) };
    let mut testbed = Testbed::new(&memory);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    testbed.device.submit(member, read(1, 0, 4096), 0);
    let status = BlockRequest { length: MIB, ..without_data(2, RequestOp::Status) };
    let done = execute(&mut testbed, member, status, 0).expect("at once");
    assert!(matches!(done.result, Ok(IoOutput::Extents(extents)) if extents.iter().all(|extent| extent.hole)));
}

#[test]
fn a_cache_request_reads_without_output() {
    let mut testbed = Testbed::on_file(&config("f"), 1 << 20, MS);
    let member = testbed.device.scheduler_mut().join(None, None, 0).expect("the client can join");
    let cache = BlockRequest { length: 65_536, ..without_data(1, RequestOp::Cache) };
    let done = execute(&mut testbed, member, cache, SECOND).expect("a completion");
    assert!(matches!(done.result, Ok(IoOutput::Nothing)), "{done:?}");
}
