//! The tunables of the first BFQ.

use crate::clock::Clock;
use crate::elevator::info::Info;
use crate::elevator::tunable::{Tunable, Unit};
use crate::elevators::shared::slice_tunables::{
    BACK_SEEK_MAX, BACK_SEEK_PENALTY, FIFO_EXPIRE_ASYNC, FIFO_EXPIRE_SYNC, QUANTUM, SLICE_IDLE, SliceTunables,
};
use crate::layer::BlockLayer;

const fn row(
    name: &'static str,
    unit: Unit,
    default: i64,
    range: [i64; 2],
    meaning: &'static str,
    trade_off: &'static str,
) -> Tunable {
    let [min, max] = range;
    Tunable { name, unit, default, min, max, meaning, trade_off }
}

const fn switch(name: &'static str, meaning: &'static str, trade_off: &'static str) -> Tunable {
    row(name, Unit::Switch, 0, [0, 1], meaning, trade_off)
}

/// The row of the registry.
pub(crate) const INFO: Info = Info {
    name: "bfq-v0",
    aliases: &[],
    kernel: "2.6.29 with the first public patch of BFQ (2008), without control groups",
    in_linux: "posted 2008",
    headline: "A budget of sectors per process, exact shares",
    idea: "Each process has the disk until it has used up a budget of sectors. B-WF2Q+ selects the \
           next process by the service received, so a share does not depend on the budget, which \
           grows while it is used up and shrinks while its process keeps the disk idle. A process \
           too slow for its budget is charged all of it.",
    suits: "One disk whose bandwidth processes share exactly by their priorities. Seeky processes \
            get the disk for a time instead. Costs throughput where idling is useless (arrays, \
            flash).",
    layer: BlockLayer::V2_6_29,
    groups: false,
    reservations: false,
    nr_requests: None,
    hashes_back_merges: false,
    tunables: &[
        QUANTUM,
        Tunable {
            meaning: "The age from which a queue's oldest sync request goes first. The elevator \
                      checks it when the queue's slot begins.",
            ..FIFO_EXPIRE_SYNC
        },
        FIFO_EXPIRE_ASYNC,
        BACK_SEEK_MAX,
        BACK_SEEK_PENALTY,
        SLICE_IDLE,
        row(
            "max_budget",
            Unit::Sectors,
            0,
            [0, i32::MAX as i64],
            "The maximum budget. 0: three quarters of the volume that the disk transfers in \
             `timeout_sync` at the highest rate seen; until 32 slots of more than 20 ms were \
             measured, 16384.",
            "With larger budgets the disk seeks less; other processes wait longer for their turn.",
        ),
        row(
            "max_budget_async_rq",
            Unit::Requests,
            4,
            [1, i32::MAX as i64],
            "The largest number of requests that an async queue dispatches in a slot while other \
             queues wait.",
            "Higher favours writes and lengthens the wait of reads.",
        ),
        row(
            "timeout_sync",
            Unit::Milliseconds,
            125,
            [1, i32::MAX as i64],
            "The time limit of a sync queue's slot, from the first completion in the slot. A queue \
             that reaches it loses the disk and is charged its whole budget.",
            "Shorter bounds the delay that slow processes cause; slow processes receive less.",
        ),
        row(
            "timeout_async",
            Unit::Milliseconds,
            40,
            [0, i32::MAX as i64],
            "The time limit of an async queue's slot, from the first completion in the slot.",
            "Shorter bounds the delay that writes cause; writes receive less.",
        ),
        row(
            "seek_penalty",
            Unit::Factor,
            0,
            [0, 1000],
            "The larger the mean seek distance of a process, the smaller its budget: budget / (1 + \
             seek_penalty * mean seek distance in sectors / 2^20). 0 is off. Proposed when BFQ was \
             first discussed; no kernel had it.",
            "The slots of seeky processes get shorter, so that other processes wait less. Their \
             shares stay the same, because they get more slots.",
        ),
        switch(
            "search_fixed",
            "With 1, the search always finds the eligible queue with the least finish. With 0, as \
             shipped, it can overlook this queue. Not a tunable of the kernel.",
            "The bounds on the deviation from shares hold exactly.",
        ),
        switch(
            "time_fixed",
            "With 1, the virtual time never goes back. With 0, as shipped, it can go back when no \
             queue has requests but the tree remembers queues without requests. Not a tunable of \
             the kernel.",
            "Queues that return do not get ahead of queues that had requests meanwhile.",
        ),
        switch(
            "async_fixed",
            "With 1, a process whose priority changes uses the async queue of the new priority. \
             With 0, as shipped, if the new priority has no async queue yet, the queue of the old \
             priority takes its place, for all processes. Not a tunable of the kernel.",
            "Changed priorities of writers take effect.",
        ),
        switch(
            "slow_fixed",
            "With 1, a queue counts as slow if it could not have used up its budget in time. With \
             0, as shipped, it counts as slow if it could have. Not a tunable of the kernel.",
            "With 1, slow processes that keep the disk idle are charged whole budgets; with 0, \
             fast ones are.",
        ),
        switch(
            "timeout_fixed",
            "With 1, the rate of a slot that timed out is measured before the whole budget is \
             charged. With 0, as shipped, the measured rate is too high if the timeout is detected \
             while a queue is selected. Not a tunable of the kernel.",
            "The automatic maximum budget follows the rate of the disk.",
        ),
    ],
};

/// The values as stored and as used.
#[derive(Debug)]
pub(super) struct Tunables {
    pub shared: SliceTunables,
    /// The maximum budget in sectors; 0 is automatic.
    pub max_budget: u64,
    pub max_budget_async_rq: u32,
    /// Async, sync, in ticks.
    pub timeout: [u64; 2],
    pub seek_penalty: u64,
    pub search_fixed: bool,
    pub time_fixed: bool,
    pub async_fixed: bool,
    pub slow_fixed: bool,
    pub timeout_fixed: bool,
}

impl Tunables {
    pub fn defaults(clock: &Clock) -> Tunables {
        let mut new = Tunables {
            shared: SliceTunables::defaults(INFO.tunables, clock),
            max_budget: 0,
            max_budget_async_rq: 0,
            timeout: [0; 2],
            seek_penalty: 0,
            search_fixed: false,
            time_fixed: false,
            async_fixed: false,
            slow_fixed: false,
            timeout_fixed: false,
        };
        for tunable in INFO.tunables {
            new.store(tunable, tunable.default, clock.ticks_of_ms(tunable.default.unsigned_abs()).max(1));
        }
        new
    }

    pub fn set(&mut self, clock: &Clock, index: usize, value: i64) {
        self.shared.set(INFO.tunables, clock, index, value);
        if let Some(tunable) = INFO.tunables.get(index) {
            self.store(tunable, value, clock.ticks_of_stored_ms(value.unsigned_abs()));
        }
    }

    fn store(&mut self, tunable: &Tunable, value: i64, ticks: u64) {
        let value = value.unsigned_abs();
        match tunable.name {
            "max_budget" => self.max_budget = value,
            "max_budget_async_rq" => self.max_budget_async_rq = value as u32,
            "timeout_sync" => self.timeout[1] = ticks,
            "timeout_async" => self.timeout[0] = ticks,
            "seek_penalty" => self.seek_penalty = value,
            "search_fixed" => self.search_fixed = value != 0,
            "time_fixed" => self.time_fixed = value != 0,
            "async_fixed" => self.async_fixed = value != 0,
            "slow_fixed" => self.slow_fixed = value != 0,
            "timeout_fixed" => self.timeout_fixed = value != 0,
            _ => {}
        }
    }
}
