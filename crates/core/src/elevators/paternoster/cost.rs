//! What requests cost the device, learned from completions.
//!
//! The time between two completions belongs to the request that completes at its end (less the time
//! in which the device was empty): with one request at a time that is its service time, with many
//! it is the time by which it delays the others. With requests in the device all the time these
//! times add up to the time, so a cost is a part of what the device can do, on one arm and on
//! flash.
//!
//! The cost of a request is a line in its size, `base + size * slope`, fitted by least squares to
//! the times of its class. Classes are read or write, and how far it is from the one before:
//! whether it continues, is near, or at one of four distances. A request is charged by its line and
//! not by its own time, so that no party pays for a pause of the device.
//!
//! A drive with a write cache takes writes at once and works on them later, in the time of other
//! requests. The cost of reads is therefore learned while the device has no writes. Beside writes,
//! and for a moment after them, a read counts as at most what it takes without them; the rest of
//! its time is charged to the writes, by a factor on their lines.

use crate::bio::Op;
use crate::collections::{Count, NIL, Slot, mean_with};
use crate::request::Request;

/// The unit of sizes: 8 sectors, 4 KiB.
const SECTORS_A_UNIT: u32 = 8;
/// The maximum of a size, in units: 16 MiB.
const UNITS_MAX: u64 = 4096;
/// The maximum of a time, in ns (17 s), so that sums of products fit 64 bits.
const TIME_MAX_NS: u64 = 1 << 34;
/// The number of samples at which all sums are halved.
const SAMPLES_MAX: u64 = 64;
/// The number of samples from which a line is valid.
const SAMPLES_MIN: u64 = 4;
/// Lines are fitted again after this many samples.
const SAMPLES_A_FIT: u64 = 8;
/// A time counts as at most this multiple of the expected one; that of a request that continues as
/// at most the second, so that its line is that of the undisturbed stream.
const OUTLIER: u64 = 4;
const OUTLIER_CONTINUING: u64 = 2;
/// The cost of a request while nothing is known: that of a disk.
const UNKNOWN: Line = Line { base_ns: 1_000_000, unit_ns: 20_000 };
/// For this long after a write, the times of reads may be due to the write, in ns.
const AFTER_WRITE_NS: u64 = 50_000_000;
/// The number of writes after which their factor is computed again.
const WRITES_A_FACTOR: u64 = 64;
/// The factor 1 on the lines of writes.
const FACTOR_ONE: u64 = 256;
/// The bounds of the factor: 1/4 and 256.
const FACTOR_LEAST: u64 = 64;
const FACTOR_MOST: u64 = 65536;
/// A request continues if it begins at most this many sectors after the place before.
const GAP_SECTORS: u64 = 128;
/// The distances up to which the other steps reach, in sectors: 4 MiB, 256 MiB, 4 GiB, 64 GiB.
const REACHES: [(Step, u64); 4] =
    [(Step::Near, 1 << 13), (Step::Far1, 1 << 19), (Step::Far2, 1 << 23), (Step::Far3, 1 << 27)];

/// How far a request is from a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Step {
    #[default]
    Continues,
    Near,
    Far1,
    Far2,
    Far3,
    Far4,
}

/// The number of steps.
const STEPS: usize = 6;

impl Step {
    const ALL: [Step; STEPS] = [Step::Continues, Step::Near, Step::Far1, Step::Far2, Step::Far3, Step::Far4];

    /// The step from a place to a sector.
    pub fn between(place: u64, sector: u64) -> Step {
        if (place..=place.saturating_add(GAP_SECTORS)).contains(&sector) {
            return Step::Continues;
        }
        let distance = place.abs_diff(sector);
        REACHES.iter().find(|(_, reach)| distance <= *reach).map_or(Step::Far4, |(step, _)| *step)
    }

    /// Returns true if a request at this step is in another place.
    pub fn is_far(self) -> bool {
        !matches!(self, Step::Continues | Step::Near)
    }
}

/// The number of classes.
const CLASSES: usize = 2 * STEPS;

/// The class of a request for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CostClass {
    pub writes: bool,
    pub step: Step,
}

impl CostClass {
    /// The class of an operation. Discards and flushes count as writes.
    pub fn of(op: Op, step: Step) -> CostClass {
        CostClass { writes: op != Op::Read, step }
    }

    fn index(self) -> usize {
        usize::from(self.writes).saturating_mul(STEPS).saturating_add(self.step as usize)
    }
}

/// A cost as a function of the size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Line {
    base_ns: u64,
    unit_ns: u64,
}

impl Line {
    fn at(self, units: u64) -> u64 {
        self.base_ns.saturating_add(self.unit_ns.saturating_mul(units))
    }
}

/// The decayed sums of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    count: u64,
    /// Samples since the last fit.
    fresh: u64,
    units: u64,
    ns: u64,
    units_squared: u64,
    units_ns: u64,
}

impl Samples {
    fn add(&mut self, units: u64, ns: u64) {
        if self.count >= SAMPLES_MAX {
            for sum in [&mut self.count, &mut self.units, &mut self.ns, &mut self.units_squared, &mut self.units_ns] {
                *sum /= 2;
            }
        }
        self.count.increment();
        self.fresh.increment();
        self.units = self.units.saturating_add(units);
        self.ns = self.ns.saturating_add(ns);
        self.units_squared = self.units_squared.saturating_add(units.saturating_mul(units));
        self.units_ns = self.units_ns.saturating_add(units.saturating_mul(ns));
    }

    fn mean_units(&self) -> u64 {
        self.units / self.count.max(1)
    }

    fn mean_ns(&self) -> u64 {
        self.ns / self.count.max(1)
    }

    /// The slope of the least-squares line, if sizes vary enough to have one: their standard
    /// deviation is at least a quarter of their root mean square.
    fn slope(&self) -> Option<u64> {
        let squares = self.count.saturating_mul(self.units_squared);
        let spread = squares.saturating_sub(self.units.saturating_mul(self.units));
        if spread.saturating_mul(16) < squares || spread == 0 {
            return None;
        }
        let products = self.count.saturating_mul(self.units_ns);
        products.saturating_sub(self.units.saturating_mul(self.ns)).checked_div(spread)
    }

    /// The line of the class; `slope` is used if its sizes do not vary.
    fn fit(&self, slope: u64) -> Line {
        let (units, ns) = (self.mean_units(), self.mean_ns());
        let slope = self.slope().unwrap_or(slope);
        let unit_ns = slope.min(ns.checked_div(units).unwrap_or(slope));
        let transfer_ns = unit_ns.saturating_mul(self.units);
        Line { base_ns: self.ns.saturating_sub(transfer_ns) / self.count.max(1), unit_ns }
    }
}

/// The learned model.
#[derive(Debug)]
pub(super) struct CostModel {
    samples: [Samples; CLASSES],
    lines: [Line; CLASSES],
    /// The time of the last completion, and the end and the owner of its request.
    completed_ns: u64,
    completed_end: u64,
    completed_owner: Slot,
    /// The time of the last completion of a write.
    written_ns: u64,
    writes_in_flight: u32,
    in_flight: u32,
    /// Since the factor was computed: busy time, the cost of reads, and the cost of writes by their
    /// lines.
    busy_ns: u64,
    reads_ns: u64,
    writes_ns: u64,
    writes: u64,
    /// The factor on the lines of writes, times [`FACTOR_ONE`].
    factor: u64,
    /// Whether the factor is computed; otherwise it is 1.
    is_weighing: bool,
    /// The mean time of a read in an otherwise empty device, in ns; 0 if unknown.
    alone_ns: u64,
    /// The mean cost of small requests elsewhere, and the cost of moving away, as of the last fit.
    far_ns: u64,
    move_ns: Option<u64>,
    /// Whether lines were fitted since the last [`CostModel::take_changed`].
    is_changed: bool,
}

impl Default for CostModel {
    fn default() -> Self {
        CostModel {
            samples: [Samples::default(); CLASSES],
            lines: [Line::default(); CLASSES],
            completed_ns: 0,
            completed_end: 0,
            completed_owner: NIL,
            written_ns: 0,
            writes_in_flight: 0,
            in_flight: 0,
            busy_ns: 0,
            reads_ns: 0,
            writes_ns: 0,
            writes: 0,
            factor: FACTOR_ONE,
            is_weighing: true,
            alone_ns: 0,
            far_ns: 0,
            move_ns: None,
            is_changed: false,
        }
    }
}

/// What is recorded of a request in the device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entered {
    at_ns: u64,
    was_empty: bool,
}

impl CostModel {
    /// A request enters the device.
    pub fn enter(&mut self, op: Op, now_ns: u64) -> Entered {
        let was_empty = self.in_flight == 0;
        self.in_flight.increment();
        if op != Op::Read {
            self.writes_in_flight.increment();
        }
        Entered { at_ns: now_ns, was_empty }
    }

    /// A request leaves the device.
    fn leave(&mut self, op: Op) {
        self.in_flight.decrement();
        if op != Op::Read {
            self.writes_in_flight.decrement();
        }
    }

    /// Requests in the device.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns true if the device may be busy with writes.
    pub fn has_writes(&self, now_ns: u64) -> bool {
        self.writes_in_flight > 0 || now_ns.saturating_sub(self.written_ns) < AFTER_WRITE_NS
    }

    /// Switches the factor on the costs of writes on or off.
    pub fn set_weighing(&mut self, is_weighing: bool) {
        self.is_weighing = is_weighing;
    }

    /// Forgets what requests cost.
    pub fn forget(&mut self) {
        (self.samples, self.lines) = ([Samples::default(); CLASSES], [Line::default(); CLASSES]);
        (self.far_ns, self.move_ns) = (0, None);
    }

    /// Learns from a completed request, which was at `own_step` from the one of the same party that
    /// was dispatched before it. Returns the time that it took of the device, in ns.
    pub fn complete(&mut self, request: &Request, own_step: Step, entered: Entered, now_ns: u64) -> u64 {
        let Request { op, sectors, owner, .. } = *request;
        let time_ns = now_ns.saturating_sub(self.completed_ns.max(entered.at_ns)).min(TIME_MAX_NS);
        // Requests of one party may complete in another order. The device moved if the party is
        // another one.
        let is_same = owner != NIL && owner == self.completed_owner;
        let step = if is_same { own_step } else { Step::between(self.completed_end, request.sector) };
        (self.completed_owner, self.completed_end) = (owner, request.end());
        let class = CostClass::of(op, step);
        let among_writes = self.has_writes(now_ns);
        self.leave(op);
        self.completed_ns = now_ns;
        if class.writes {
            self.written_ns = now_ns;
        }
        if among_writes && self.is_weighing {
            self.weigh_writes(class, sectors, time_ns);
        }
        if !class.writes && !among_writes && entered.was_empty && step != Step::Continues {
            let latency = now_ns.saturating_sub(entered.at_ns).min(TIME_MAX_NS);
            self.alone_ns = mean_with(self.alone_ns, latency, 16);
        }
        self.learn(class, sectors, time_ns, among_writes && !class.writes);
        time_ns
    }

    /// The cost of a request as a part of an undisturbed stream, in ns.
    pub fn continuing(&self, request: &Request) -> u64 {
        self.line_for(CostClass::of(request.op, Step::Continues)).at(units_of(request.sectors))
    }

    /// Adds a time to the samples of a class. A read among writes counts as at most the time that
    /// one takes alone.
    fn learn(&mut self, class: CostClass, sectors: u32, time_ns: u64, is_disturbed: bool) {
        let (units, is_continuing) = (units_of(sectors), class.step == Step::Continues);
        let limit = |expected: u64| match is_disturbed {
            false if is_continuing => expected.saturating_mul(OUTLIER_CONTINUING).max(1000),
            false => expected.saturating_mul(OUTLIER).max(1000),
            true if is_continuing => expected,
            true => expected.max(self.alone_ns),
        };
        let mut counted_ns = time_ns;
        let expected = self.line_of(class).at(units);
        if self.is_known(class) && time_ns > limit(expected) {
            // The line and the mean of the class, whichever expects more of this size.
            let samples = self.samples_of(class);
            let by_mean = samples.mean_ns().saturating_mul(units) / samples.mean_units().max(1);
            counted_ns = time_ns.min(limit(expected.max(by_mean)));
        }
        let Some(samples) = self.samples.get_mut(class.index()) else { return };
        samples.add(units, counted_ns);
        if samples.fresh >= SAMPLES_A_FIT || samples.count <= SAMPLES_A_FIT {
            samples.fresh = 0;
            self.fit(class);
        }
    }

    /// Computes the factor of writes from the time in which the device may have worked on them.
    fn weigh_writes(&mut self, class: CostClass, sectors: u32, time_ns: u64) {
        self.busy_ns = self.busy_ns.saturating_add(time_ns);
        let cost = self.line_for(class).at(units_of(sectors));
        if !class.writes {
            self.reads_ns = self.reads_ns.saturating_add(cost);
            return;
        }
        self.writes_ns = self.writes_ns.saturating_add(cost);
        self.writes.increment();
        if self.writes < WRITES_A_FACTOR {
            return;
        }
        let rest = self.busy_ns.saturating_sub(self.reads_ns);
        let factor = rest.saturating_mul(FACTOR_ONE) / self.writes_ns.max(1);
        self.factor = self.factor.saturating_mul(3).saturating_add(factor) / 4;
        self.factor = self.factor.clamp(FACTOR_LEAST, FACTOR_MOST);
        (self.busy_ns, self.reads_ns, self.writes_ns, self.writes) = (0, 0, 0, 0);
    }

    fn fit(&mut self, class: CostClass) {
        // Where sizes do not vary, the slope is that of another class of the direction; without
        // one, all of a continuing request is transfer, and nothing of another one.
        let samples = *self.samples_of(class);
        let others = Step::ALL.map(|step| CostClass { step, ..class });
        let of_others = others.into_iter().find_map(|other| self.samples_of(other).slope());
        let continuing = CostClass { step: Step::Continues, ..class };
        let slope = match of_others {
            Some(slope) => slope,
            None if class.step == Step::Continues => samples.mean_ns().checked_div(samples.mean_units()).unwrap_or(0),
            None if self.is_known(continuing) => self.line_of(continuing).unit_ns,
            None => 0,
        };
        if let Some(line) = self.lines.get_mut(class.index()) {
            *line = samples.fit(slope);
        }
        (self.far_ns, self.move_ns) = (self.compute_far(), self.compute_move());
        self.is_changed = true;
    }

    /// Returns true if the line of a class was fitted since the last call: the cost of a move may
    /// have changed.
    pub fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.is_changed)
    }

    fn samples_of(&self, class: CostClass) -> &Samples {
        let [first, ..] = &self.samples;
        self.samples.get(class.index()).unwrap_or(first)
    }

    fn line_of(&self, class: CostClass) -> Line {
        self.lines.get(class.index()).copied().unwrap_or(UNKNOWN)
    }

    /// The line of a class, or of the nearest class with samples: further ones of the direction
    /// first, then nearer ones, then those of the other direction.
    fn line_for(&self, class: CostClass) -> Line {
        if self.is_known(class) {
            return self.line_of(class);
        }
        let at = class.step as usize;
        for writes in [class.writes, !class.writes] {
            let further = Step::ALL.iter().skip(at);
            let nearer = Step::ALL.iter().take(at).rev();
            for step in further.chain(nearer) {
                let other = CostClass { writes, step: *step };
                if self.is_known(other) {
                    return self.line_of(other);
                }
            }
        }
        UNKNOWN
    }

    /// Returns true if enough requests of the class have completed.
    fn is_known(&self, class: CostClass) -> bool {
        self.samples_of(class).count >= SAMPLES_MIN
    }

    /// The cost of a request, in ns, at least 1.
    pub fn cost(&self, class: CostClass, sectors: u32) -> u64 {
        let cost = self.line_for(class).at(units_of(sectors));
        let cost = if class.writes { cost.saturating_mul(self.factor) / FACTOR_ONE } else { cost };
        cost.max(1)
    }

    /// The cost of moving away, in ns: by how much a request elsewhere costs more than one that
    /// continues, at the usual size of the latter. `None` until both are known.
    pub fn move_ns(&self) -> Option<u64> {
        self.move_ns
    }

    fn compute_move(&self) -> Option<u64> {
        let of = |writes: bool| {
            let stays = CostClass { writes, step: Step::Continues };
            let (count, far_ns) = self.far(writes, self.samples_of(stays).mean_units());
            if !self.is_known(stays) || count < SAMPLES_MIN {
                return None;
            }
            Some(far_ns.saturating_sub(self.line_of(stays).at(self.samples_of(stays).mean_units())))
        };
        of(false).or_else(|| of(true))
    }

    /// The number of samples of requests elsewhere, and their mean cost at a size, in ns.
    fn far(&self, writes: bool, units: u64) -> (u64, u64) {
        let (mut count, mut sum) = (0u64, 0u64);
        for step in Step::ALL.into_iter().filter(|step| step.is_far()) {
            let class = CostClass { writes, step };
            let samples = self.samples_of(class).count;
            if samples >= SAMPLES_MIN {
                count = count.saturating_add(samples);
                sum = sum.saturating_add(samples.saturating_mul(self.line_of(class).at(units)));
            }
        }
        (count, sum / count.max(1))
    }

    /// The mean cost of small requests elsewhere, in ns; 0 if unknown.
    pub fn far_ns(&self) -> u64 {
        self.far_ns
    }

    fn compute_far(&self) -> u64 {
        let (count, ns) = self.far(false, 1);
        if count > 0 { ns } else { self.far(true, 1).1 }
    }

    /// The mean time of a read that has the device for itself, in ns; 0 if unknown.
    pub fn alone_ns(&self) -> u64 {
        self.alone_ns
    }
}

/// The size of a request in units, at least 1.
fn units_of(sectors: u32) -> u64 {
    u64::from(sectors.div_ceil(SECTORS_A_UNIT)).clamp(1, UNITS_MAX)
}
