//! Long requests are done in pieces, short ones next to each other as one.

use hoistway_qos::DiskQueueConfig;
use std::collections::BTreeMap;

use hoistway_blockdev::{Answer, Work};
use hoistway_config::{BackendConfig, DeviceConfig};
use hoistway_core::Kind;
use hoistway_qos::IoError;
use hoistway_qos::RequestOp;
use hoistway_qos::queue::TRIM_BYTES_MAX;
use hoistway_reactor::IoOp;

use crate::world::*;

fn pattern(length: usize, seed: u64) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(seed | 1) >> 8) as u8 ^ at as u8).collect()
}

#[test]
fn a_long_write_and_a_long_read_are_split_and_keep_every_byte() {
    let memory = DeviceConfig { backend: BackendConfig::Memory { bytes: 64 << 20 }, ..config("m") };
    for mut world in [World::new(&memory), World::on_file(&config("f"), 64 << 20, MS)] {
        let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
        let bytes = pattern(5 * MIB as usize + 777, 0x9e37);
        assert!(ask(&mut world, member, write(1, 1234, &bytes), SECOND).expect("an answer").result.is_ok());
        let done = ask(&mut world, member, read(2, 1234, bytes.len() as u64), SECOND).expect("an answer");
        let answer = done.result.expect("data");
        assert!(matches!(&answer, Answer::Pieces(parts) if parts.len() >= 6), "{answer:?}");
        assert_eq!(bytes_of(&answer, bytes.len()), bytes);
        assert!(world.device.is_idle());
    }
}

#[test]
fn pieces_are_no_longer_than_the_device_takes_and_lie_on_pages() {
    let mut world = World::on_file(&config("f"), 64 << 20, MS);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    assert!(ask(&mut world, member, write(1, 4096 * 3, &vec![1; 20 << 20]), SECOND).is_some());
    let writes: Vec<_> = world.engine.log.iter().filter(|(_, op, ..)| matches!(op, IoOp::Write { .. })).collect();
    assert!(writes.len() >= 20 && writes.iter().all(|(.., offset, length)| *length <= MIB && offset % 4096 == 0));
    assert_eq!(writes.iter().map(|(.., length)| length).sum::<u64>(), 20 << 20);
}

#[test]
fn a_write_of_which_one_piece_fails_has_failed_and_is_answered_once() {
    let mut world = World::on_file(&config("f"), 64 << 20, MS);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    world.engine.write_error = Some(28);
    let done = ask(&mut world, member, write(1, 0, &vec![1; 20 << 20]), SECOND).expect("an answer");
    assert_eq!(done.result.err(), Some(IoError::NoSpace));
    assert!(world.device.is_idle(), "what was not begun is not done any more");
    assert!(world.engine.log.len() < 20, "{}", world.engine.log.len());
}

#[test]
fn a_trim_of_the_whole_device_comes_in_large_pieces() {
    let big = DeviceConfig { backend: BackendConfig::Null { bytes: 1 << 40 }, ..config("n") };
    let mut world = World::new(&big);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    let trim = Work { length: 1 << 40, ..simple(1, RequestOp::Trim) };
    assert!(ask(&mut world, member, trim, SECOND).expect("an answer").result.is_ok());
    assert_eq!((1u64 << 40) / TRIM_BYTES_MAX, 16_384);
    let zero = Work { length: 1 << 32, ..simple(2, RequestOp::Zero { punch: true }) };
    assert!(ask(&mut world, member, zero, SECOND).expect("an answer").result.is_ok());
    let counted: BTreeMap<_, _> =
        world.device.scheduler().accounts().map(|(name, account)| (name, account.ops[2].bytes)).collect();
    assert_eq!(counted["default"], (1 << 40) + (1 << 32));
}

#[test]
fn neighbouring_writes_become_one_command_and_keep_their_own_data() {
    let slow = DeviceConfig {
        queue: DiskQueueConfig { elevator: Some(Kind::Deadline), ..millisecond(Kind::Deadline, 1).queue },
        backend: BackendConfig::Memory { bytes: 64 << 20 },
        ..millisecond(Kind::Deadline, 1)
    };
    let mut world = World::new(&slow);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    world.device.submit(member, write(100, 32 * MIB, &[9; 512]), 0);
    let mut done = Vec::new();
    world.device.run(&mut world.engine, 0, &mut done);
    for ticket in 0..16u64 {
        world.device.submit(member, write(ticket, ticket * 4096, &[ticket as u8; 4096]), 0);
    }
    assert!(wait_for(&mut world, 15, 2 * MS).is_some(), "two commands of 1 ms: one for all sixteen");
    assert_eq!(world.device.scheduler().merged()[1], 15);
    let done = ask(&mut world, member, read(200, 0, 65_536), 10 * MS).expect("an answer");
    let bytes = bytes_of(&done.result.expect("data"), 65_536);
    assert!(bytes.chunks(4096).enumerate().all(|(at, page)| page.iter().all(|byte| usize::from(*byte) == at)));
}

#[test]
fn what_reaches_beyond_the_device_is_an_error_and_moves_nothing() {
    let mut world = World::on_file(&config("f"), 1 << 20, MS);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    let answer = |world: &mut World, work| ask(world, member, work, SECOND).expect("an answer").result.err();
    assert_eq!(answer(&mut world, read(1, 1 << 20, 1)), Some(IoError::InvalidArgument));
    assert_eq!(answer(&mut world, write(2, (1 << 20) - 1, &[1, 2])), Some(IoError::NoSpace));
    let trim = Work { length: 2, offset: (1 << 20) - 1, ..simple(3, RequestOp::Trim) };
    assert_eq!(answer(&mut world, trim), Some(IoError::InvalidArgument), "a trim needs no room");
    assert_eq!(answer(&mut world, read(3, u64::MAX, 2)), Some(IoError::InvalidArgument));
    assert_eq!(answer(&mut world, read(4, 0, 0)), Some(IoError::InvalidArgument));
    assert_eq!(answer(&mut world, Work { length: 8192, ..write(5, 0, &[0; 4096]) }), Some(IoError::InvalidArgument));
    assert!(world.engine.log.is_empty());
}

#[test]
fn a_question_passes_by_the_queue() {
    let memory = DeviceConfig { backend: BackendConfig::Memory { bytes: 64 << 20 }, ..millisecond(Kind::Noop, 1) };
    let mut world = World::new(&memory);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    world.device.submit(member, read(1, 0, 4096), 0);
    let status = Work { length: MIB, ..simple(2, RequestOp::Status) };
    let done = ask(&mut world, member, status, 0).expect("at once");
    assert!(matches!(done.result, Ok(Answer::Extents(extents)) if extents.iter().all(|extent| extent.hole)));
}

#[test]
fn cache_reads_and_tells_nobody() {
    let mut world = World::on_file(&config("f"), 1 << 20, MS);
    let member = world.device.scheduler_mut().join(None, None, 0).expect("room for a client");
    let cache = Work { length: 65_536, ..simple(1, RequestOp::Cache) };
    let done = ask(&mut world, member, cache, SECOND).expect("an answer");
    assert!(matches!(done.result, Ok(Answer::Nothing)), "{done:?}");
}
