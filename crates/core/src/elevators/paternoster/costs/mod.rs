//! What requests cost the device, learned from completions.
//!
//! The time between two completions belongs to the request that completes at its end (less the time
//! in which the device was empty): with one request at a time that is its service time, with many
//! it is the time by which it delays the others. With requests in the device all the time these
//! times add up to the time, so a cost is a part of what the device can do, on one arm and on
//! flash.
//!
//! The cost of a request is a [`line`] in its size, fitted to the times of its class. Classes are
//! read or write, and the [`distance`] from the request before. A request is charged by its line
//! and not by its own time, so that no context pays for a pause of the device.
//!
//! The cost of reads is learned while the device has no [`writes`]. Beside writes, and for a moment
//! after them, a read counts as at most what it takes without them; the rest of its time is charged
//! to the writes.

mod distance;
mod line;
#[cfg(test)]
mod tests;
mod writes;

use crate::bio::Op;
use crate::collections::{Count, NIL, Slot, mean_with};
use crate::request::Request;

use distance::CLASSES;
pub use distance::{CostClass, Distance};
use line::{Line, Samples};
use writes::Writes;

/// The unit of sizes: 8 sectors, 4 KiB.
const SECTORS_A_UNIT: u32 = 8;
/// The maximum of a size, in units: 16 MiB.
const UNITS_MAX: u64 = 4096;
/// The maximum of a time, in ns (17 s), so that sums of products fit 64 bits.
const TIME_MAX_NS: u64 = 1 << 34;
/// A time counts as at most this multiple of the expected one; that of a request that continues as
/// at most the second, so that its line is that of the undisturbed stream.
const OUTLIER: u64 = 4;
const OUTLIER_CONTINUING: u64 = 2;
/// The cost of a request while nothing is known: that of a disk.
const UNKNOWN: Line = Line { base_ns: 1_000_000, unit_ns: 20_000 };

/// The learned model.
#[derive(Debug, Default)]
pub(super) struct CostModel {
    classes: [Samples; CLASSES],
    writes: Writes,
    /// Requests in the device.
    pub in_flight: u32,
    /// The time of the last completion, and the end and the owner of its request.
    completed_ns: u64,
    completed_end: u64,
    completed_owner: Option<Slot>,
    /// The mean time of a read in an otherwise empty device, in ns; 0 if unknown.
    pub unloaded_ns: u64,
    /// The mean cost of small far requests as of the last fit, in ns; 0 if unknown.
    pub far_ns: u64,
    /// The cost of a seek as of the last fit, in ns: by how much a far request costs more than one
    /// that continues, at the usual size of the latter. `None` until both are known.
    pub seek_ns: Option<u64>,
    /// Whether lines were fitted since the last [`CostModel::take_changed`].
    is_changed: bool,
}

/// What is recorded of a request when the device takes it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Issue {
    at_ns: u64,
    was_empty: bool,
}

impl CostModel {
    /// A request enters the device.
    pub fn issue(&mut self, op: Op, now_ns: u64) -> Issue {
        let was_empty = self.in_flight == 0;
        self.in_flight.increment();
        if op != Op::Read {
            self.writes.in_flight.increment();
        }
        Issue { at_ns: now_ns, was_empty }
    }

    /// Returns true if the device may be busy with writes.
    pub fn has_writes(&self, now_ns: u64) -> bool {
        self.writes.are_active(now_ns)
    }

    /// Forgets what requests cost.
    pub fn forget(&mut self) {
        (self.classes, self.far_ns, self.seek_ns) = (Default::default(), 0, None);
    }

    /// Learns from a completed request, whose context's previous dispatched request was at
    /// `own_distance`. Returns the time that it took of the device, in ns.
    pub fn complete(&mut self, request: &Request, own_distance: Distance, issue: Issue, now_ns: u64) -> u64 {
        let Request { op, sectors, owner, .. } = *request;
        let time_ns = now_ns.saturating_sub(self.completed_ns.max(issue.at_ns)).min(TIME_MAX_NS);
        // Requests of one context may complete in another order. The device changed between streams
        // if the context is another one.
        let is_same = owner != NIL && Some(owner) == self.completed_owner;
        let distance = if is_same { own_distance } else { Distance::between(self.completed_end, request.sector) };
        (self.completed_owner, self.completed_end, self.completed_ns) = (Some(owner), request.end(), now_ns);
        let class = CostClass::of(op, distance);
        let among_writes = self.writes.are_active(now_ns);
        self.in_flight.decrement();
        if class.is_write {
            self.writes.in_flight.decrement();
            self.writes.completed_ns = now_ns;
        }
        if among_writes {
            self.writes.add(class.is_write, self.line_for(class).at(units_of(sectors)), time_ns);
        }
        if !class.is_write && !among_writes && issue.was_empty && distance != Distance::Continues {
            let latency = now_ns.saturating_sub(issue.at_ns).min(TIME_MAX_NS);
            self.unloaded_ns = mean_with(self.unloaded_ns, latency, 16);
        }
        self.learn(class, sectors, time_ns, among_writes && !class.is_write);
        time_ns
    }

    /// The cost of a request as a part of an undisturbed stream, in ns.
    pub fn continuing(&self, request: &Request) -> u64 {
        self.line_for(CostClass::of(request.op, Distance::Continues)).at(units_of(request.sectors))
    }

    /// Adds a time to the samples of a class. A read among writes counts as at most the time that
    /// one takes in an empty device.
    fn learn(&mut self, class: CostClass, sectors: u32, time_ns: u64, is_disturbed: bool) {
        let (units, is_continuing) = (units_of(sectors), class.distance == Distance::Continues);
        let limit = |expected: u64| match is_disturbed {
            false if is_continuing => expected.saturating_mul(OUTLIER_CONTINUING).max(1000),
            false => expected.saturating_mul(OUTLIER).max(1000),
            true if is_continuing => expected,
            true => expected.max(self.unloaded_ns),
        };
        let samples = self.samples_of(class);
        let expected = samples.line.at(units);
        let mut counted_ns = time_ns;
        if samples.are_enough() && time_ns > limit(expected) {
            // The line and the mean of the class, whichever expects more of this size.
            let by_mean = samples.mean_ns().saturating_mul(units) / samples.mean_units().max(1);
            counted_ns = time_ns.min(limit(expected.max(by_mean)));
        }
        let samples = self.classes.get_mut(class.index());
        if samples.is_some_and(|samples| samples.add(units, counted_ns)) {
            self.fit(class);
        }
    }

    fn fit(&mut self, class: CostClass) {
        // Where sizes do not vary, the slope is that of another class of the direction; without
        // one, all of a continuing request is transfer, and nothing of another one.
        let with = |distance| self.samples_of(CostClass { distance, ..class });
        let (samples, continuing) = (self.samples_of(class), with(Distance::Continues));
        let slope = match Distance::ALL.into_iter().find_map(|distance| with(distance).slope()) {
            Some(slope) => slope,
            None if class.distance == Distance::Continues => {
                samples.mean_ns().checked_div(samples.mean_units()).unwrap_or(0)
            }
            None if continuing.are_enough() => continuing.line.unit_ns,
            None => 0,
        };
        if let Some(samples) = self.classes.get_mut(class.index()) {
            samples.fit(slope);
        }
        (self.far_ns, self.seek_ns) = (self.compute_far(), self.compute_seek());
        self.is_changed = true;
    }

    /// Returns true if the line of a class was fitted since the last call: the cost of a seek may
    /// have changed.
    pub fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.is_changed)
    }

    fn samples_of(&self, class: CostClass) -> &Samples {
        let [first, ..] = &self.classes;
        self.classes.get(class.index()).unwrap_or(first)
    }

    /// The line of a class, or of the nearest class with samples: further ones of the direction
    /// first, then nearer ones, then those of the other direction.
    fn line_for(&self, class: CostClass) -> Line {
        let samples = self.samples_of(class);
        if samples.are_enough() {
            return samples.line;
        }
        let at = class.distance as usize;
        for is_write in [class.is_write, !class.is_write] {
            let further = Distance::ALL.iter().skip(at);
            let nearer = Distance::ALL.iter().take(at).rev();
            for distance in further.chain(nearer) {
                let samples = self.samples_of(CostClass { is_write, distance: *distance });
                if samples.are_enough() {
                    return samples.line;
                }
            }
        }
        UNKNOWN
    }

    /// The cost of a request, in ns, at least 1.
    pub fn cost(&self, class: CostClass, sectors: u32) -> u64 {
        let cost = self.line_for(class).at(units_of(sectors));
        if class.is_write { self.writes.cost(cost).max(1) } else { cost.max(1) }
    }

    fn compute_seek(&self) -> Option<u64> {
        let of = |is_write| {
            let continuing = self.samples_of(CostClass { is_write, distance: Distance::Continues });
            let units = continuing.mean_units();
            let far_ns = self.far(is_write, units).filter(|_| continuing.are_enough())?;
            Some(far_ns.saturating_sub(continuing.line.at(units)))
        };
        of(false).or_else(|| of(true))
    }

    /// The mean cost of far requests of a size, in ns, if a class of them is known.
    fn far(&self, is_write: bool, units: u64) -> Option<u64> {
        let (mut count, mut sum) = (0u64, 0u64);
        for distance in Distance::ALL.into_iter().filter(|distance| distance.is_far()) {
            let samples = self.samples_of(CostClass { is_write, distance });
            if samples.are_enough() {
                count = count.saturating_add(samples.count);
                sum = sum.saturating_add(samples.count.saturating_mul(samples.line.at(units)));
            }
        }
        sum.checked_div(count)
    }

    fn compute_far(&self) -> u64 {
        self.far(false, 1).or_else(|| self.far(true, 1)).unwrap_or(0)
    }
}

/// The size of a request in units, at least 1.
fn units_of(sectors: u32) -> u64 {
    u64::from(sectors.div_ceil(SECTORS_A_UNIT)).clamp(1, UNITS_MAX)
}
