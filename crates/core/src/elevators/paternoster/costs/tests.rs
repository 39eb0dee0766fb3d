//! Tests of the cost model against drives whose costs are known.

use super::{CostClass, CostModel, Distance};
use crate::bio::Op;
use crate::request::Request;

const US: u64 = 1000;
const MS: u64 = 1000 * US;

/// A drive with one request at a time, and the model that watches it.
struct Watched {
    model: CostModel,
    now_ns: u64,
    /// The context and the sector of the next request, which change with each jump.
    owner: u32,
    sector: u64,
}

impl Watched {
    fn new() -> Watched {
        Watched { model: CostModel::default(), now_ns: MS, owner: 0, sector: 0 }
    }

    /// Serves a request in this time; one that jumps is of another context and 1 TiB away.
    fn serve(&mut self, op: Op, jumps: bool, sectors: u32, time_ns: u64) {
        if jumps {
            self.owner ^= 1;
            self.sector ^= 1 << 31;
        }
        let distance = if jumps { Distance::Far4 } else { Distance::Continues };
        let request = Request { op, sector: self.sector, sectors, owner: self.owner, ..Request::default() };
        let issue = self.model.issue(op, self.now_ns);
        self.now_ns += time_ns;
        self.model.complete(&request, distance, issue, self.now_ns);
        self.sector = request.end();
    }

    fn cost(&self, op: Op, distance: Distance, sectors: u32) -> u64 {
        self.model.cost(CostClass::of(op, distance), sectors)
    }
}

/// Asserts that a value is within `percent` of another.
#[track_caller]
fn assert_near(value: u64, expected: u64, percent: u64) {
    assert!(value.abs_diff(expected) * 100 <= expected * percent, "{value} instead of {expected}");
}

/// The time of a request on a disk: 8 ms for a jump, and 20 us for 4 KiB.
fn disk(jumps: bool, sectors: u32) -> u64 {
    u64::from(jumps) * 8 * MS + u64::from(sectors / 8) * 20 * US
}

#[test]
fn costs_are_lines_in_the_size_for_each_distance() {
    let mut watched = Watched::new();
    for round in 0..200 {
        let (jumps, sectors) = (round % 5 == 0, 8 << (round % 7));
        watched.serve(Op::Read, jumps, sectors, disk(jumps, sectors));
    }
    for sectors in [8, 64, 512, 2048] {
        assert_near(watched.cost(Op::Read, Distance::Far4, sectors), disk(true, sectors), 5);
        assert_near(watched.cost(Op::Read, Distance::Continues, sectors), disk(false, sectors), 5);
    }
    assert_near(watched.model.seek_ns.expect("both are known"), 8 * MS, 5);
}

#[test]
fn a_drive_that_is_swapped_under_load_is_learned_within_800_requests() {
    let mut watched = Watched::new();
    for (slower, requests) in [(1, 300), (10, 500), (1, 800)] {
        for round in 0..requests {
            let jumps = round % 3 == 0;
            watched.serve(Op::Read, jumps, 64, slower * disk(jumps, 64));
        }
        assert_near(watched.cost(Op::Read, Distance::Far4, 64), slower * disk(true, 64), 15);
        assert_near(watched.cost(Op::Read, Distance::Continues, 64), slower * disk(false, 64), 25);
    }
}

#[test]
fn no_context_is_charged_for_a_pause_of_the_drive() {
    let mut watched = Watched::new();
    (0..300).for_each(|_| watched.serve(Op::Read, true, 8, 100 * US));
    let before = watched.cost(Op::Read, Distance::Far4, 8);
    watched.serve(Op::Read, true, 8, 1000 * MS);
    (0..8).for_each(|_| watched.serve(Op::Read, true, 8, 100 * US));
    assert_near(watched.cost(Op::Read, Distance::Far4, 8), before, 10);
}

#[test]
fn hits_of_a_cache_lower_the_mean_by_their_part() {
    let mut watched = Watched::new();
    for round in 0..1000 {
        watched.serve(Op::Read, true, 8, if round % 4 == 0 { 100 * US } else { 8 * MS });
    }
    // A quarter hits: 0.75 * 8 ms.
    assert_near(watched.cost(Op::Read, Distance::Far4, 8), 6 * MS + 25 * US, 10);
}

#[test]
fn writes_that_a_cache_takes_at_once_pay_for_the_time_of_the_reads_behind_them() {
    let mut watched = Watched::new();
    (0..200).for_each(|_| watched.serve(Op::Read, true, 8, 8 * MS));
    // Each write is taken in 0.1 ms; the drive works on it for 10 ms in the time of the next read.
    for _ in 0..600 {
        watched.serve(Op::Write, true, 8, 100 * US);
        watched.serve(Op::Read, true, 8, 18 * MS);
    }
    assert_near(watched.cost(Op::Read, Distance::Far4, 8), 8 * MS, 10);
    assert_near(watched.cost(Op::Write, Distance::Far4, 8), 10 * MS, 15);
}
