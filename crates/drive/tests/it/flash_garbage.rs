//! Garbage collection on small drives: write amplification against the published closed form, its
//! onset, and how it is avoided.

use crate::small_flash::{SmallFlash, counters, random_writes};
use hoistway_drive::{Access, Command, FlashCounters, Op, greedy_write_amplification};

const LIVE_WRITES: u64 = 150_000;

/// Writes single units at uniform random addresses and returns the counters.
fn write_at_random(flash: &mut SmallFlash, seed: u64, count: u64) -> FlashCounters {
    let before = counters(&flash.drive);
    let units = flash.simulated_units();
    flash.run(64, random_writes(seed, units, count));
    counters(&flash.drive).since(&before)
}

fn assert_closed_form(what: &str, done: &FlashCounters, spare_factor: f64) {
    let found = done.write_amplification().expect("written");
    let published = greedy_write_amplification(spare_factor);
    assert!((found / published - 1.0).abs() < 0.1, "{what}, spare {spare_factor}: {found}, published {published}");
}

#[test]
fn random_writes_amplify_like_the_closed_form_from_the_preconditioned_start() {
    for spare in ["0.07", "0.15", "0.28"] {
        let mut flash = SmallFlash::new(&[("spare_factor = 0.07", &format!("spare_factor = {spare}"))]);
        // From the first write on, to check the computed initial state.
        let done = write_at_random(&mut flash, 1, 40_000);
        assert_closed_form("preconditioned", &done, spare.parse().expect("a number"));
    }
}

#[test]
fn random_writes_to_a_sequentially_filled_drive_converge_to_the_closed_form() {
    for spare in ["0.07", "0.15", "0.28"] {
        let mut flash = SmallFlash::new(&[
            ("spare_factor = 0.07", &format!("spare_factor = {spare}")),
            ("precondition = \"steady\"", "precondition = \"sequential\""),
        ]);
        write_at_random(&mut flash, 2, LIVE_WRITES);
        let done = write_at_random(&mut flash, 3, 80_000);
        assert_closed_form("converged", &done, spare.parse().expect("a number"));
    }
}

#[test]
fn fresh_drive_collects_no_garbage_before_its_spare_blocks_are_used_up() {
    let mut flash = SmallFlash::new(&[("precondition = \"steady\"", "precondition = \"fresh\"")]);
    // 4 dies of 64 blocks with data and 4 of reserve: collection begins when 4 blocks of space are
    // left.
    let before_collection = 4 * 64 * 512;
    let done = write_at_random(&mut flash, 4, before_collection - 512);
    assert_eq!((done.moved_units, done.erases), (0, 0));
    // No program is padded. The units overwritten in the buffer, 256 of 122,000, are not
    // programmed.
    let overwritten = done.host_units - done.host_programmed_units;
    assert!((1..done.host_units / 400).contains(&overwritten), "{done:?}");
    let done = write_at_random(&mut flash, 5, 20_000);
    assert!(done.moved_units > 10_000 && done.erases > 20, "{done:?}");
}

#[test]
fn sequential_writes_move_no_units() {
    let mut flash = SmallFlash::new(&[("precondition = \"steady\"", "precondition = \"sequential\"")]);
    let units = flash.simulated_units();
    let writes = (0..3 * units / 32)
        .map(|number| Access { op: Op::Write, sector: number * 32 % (units / 32 * 32) * 8, sectors: 256 }.into());
    flash.run(8, writes.collect::<Vec<Command>>());
    let found = counters(&flash.drive).write_amplification().expect("written");
    assert!(found < 1.02, "{found}");
}

#[test]
fn discarded_drive_writes_like_a_fresh_one() {
    let mut flash = SmallFlash::new(&[]);
    let sectors = u32::try_from(flash.drive.capacity_sectors()).expect("small");
    flash.run(1, [Command::Discard { sector: 0, sectors }]);
    let done = write_at_random(&mut flash, 6, 30_000);
    // Stale blocks are erased when blocks are needed; no valid unit has to be moved.
    assert_eq!(done.moved_units, 0, "{done:?}");
    assert!(done.erases > 0, "{done:?}");
}

#[test]
fn write_amplification_of_a_drive_that_was_not_written_is_unknown() {
    let flash = SmallFlash::new(&[]);
    assert_eq!(flash.drive.write_amplification(), None);
}
