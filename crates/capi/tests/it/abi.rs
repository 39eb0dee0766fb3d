//! The structures, codes and functions of the library, compared with the description of the ABI in
//! `abi.txt`. The description is made from the header (`cargo xtask clib --write-abi`), so header
//! and library agree.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

use hoistway_capi::*;

/// The entries of `abi.txt` by name. Handles are numbers to the library.
fn described() -> BTreeMap<String, String> {
    let text = include_str!("../../abi.txt");
    let types: Vec<(&str, &str)> = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix("type ")?.split_once(" = ")?.1.split_once(", ").map(|(type_, _)| (line, type_))
        })
        .map(|(line, type_)| (line.split(' ').nth(1).expect("a name"), type_))
        .collect();
    let entry = |line: &str| {
        let (name, what) = line.split_once(" = ")?;
        let what = types.iter().fold(what.to_owned(), |what, (name, type_)| what.replace(name, type_));
        Some((name.to_owned(), what))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(entry).collect()
}

/// The entries of one kind.
fn described_as(kind: &str) -> BTreeSet<(String, String)> {
    described().into_iter().filter(|(name, _)| name.starts_with(kind)).collect()
}

/// Compares entries; the failure lists only those that differ.
fn compare(library: BTreeSet<(String, String)>, described: &BTreeSet<(String, String)>) {
    let only = |one: &BTreeSet<(String, String)>, other: &BTreeSet<(String, String)>| -> Vec<String> {
        one.difference(other).map(|(name, what)| format!("{name} = {what}")).collect()
    };
    let (beyond, missing) = (only(&library, described), only(described, &library));
    assert!(beyond.is_empty() && missing.is_empty(), "the library has {beyond:#?} where abi.txt has {missing:#?}");
}

/// A type with a name in C.
trait CType {
    fn name() -> String;
}

macro_rules! c_type {
    ($type:ty, $name:literal) => {
        impl CType for $type {
            fn name() -> String {
                $name.to_owned()
            }
        }
    };
}

c_type!((), "void");
c_type!(i8, "int8_t");
c_type!(u8, "uint8_t");
c_type!(u16, "uint16_t");
c_type!(i32, "int32_t");
c_type!(u32, "uint32_t");
c_type!(i64, "int64_t");
c_type!(u64, "uint64_t");
c_type!(usize, "size_t");
c_type!(HoistwayQueue, "struct hoistway_queue");
c_type!(CCapacity, "struct hoistway_capacity");
c_type!(CConfig, "struct hoistway_config");
c_type!(CBio, "struct hoistway_bio");
c_type!(CReservation, "struct hoistway_reservation");
c_type!(CSubmitted, "struct hoistway_submitted");
c_type!(CRequest, "struct hoistway_request");
c_type!(CWork, "struct hoistway_work");
c_type!(CTunable, "struct hoistway_tunable");
c_type!(CEvent, "struct hoistway_event");
c_type!(CNeighbour, "struct hoistway_neighbour");
c_type!(CExtent, "struct hoistway_extent");

impl<T: CType> CType for *mut T {
    /// Bytes behind a pointer are texts.
    fn name() -> String {
        format!("{} *", T::name()).replace("uint8_t *", "char *")
    }
}

impl<T: CType> CType for *const T {
    fn name() -> String {
        format!("const {}", <*mut T>::name())
    }
}

/// An array is passed as a pointer to its first element.
impl<T: CType, const N: usize> CType for [T; N] {
    fn name() -> String {
        T::name()
    }
}

/// A function with a signature in C.
trait Signature {
    fn spell(self) -> String;
}

macro_rules! signature {
    ($($parameter:ident)*) => {
        impl<R: CType, $($parameter: CType),*> Signature for unsafe extern "C" fn($($parameter),*) -> R {
            fn spell(self) -> String {
                let parameters: &[String] = &[$($parameter::name()),*];
                let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
                format!("{} ({parameters})", R::name())
            }
        }
    };
}

signature!();
signature!(A);
signature!(A B);
signature!(A B C);
signature!(A B C D);
signature!(A B C D E);
signature!(A B C D E F);

/// The size and the type of the field that a function selects.
fn field<S, F: CType>(_: fn(&S) -> &F) -> (usize, String) {
    (size_of::<F>(), F::name())
}

macro_rules! structures {
    ($($structure:ident $name:ident ($($field:ident),*))*) => {
        BTreeSet::from([$(
            (
                concat!("struct hoistway_", stringify!($name)).to_owned(),
                format!("size {}, alignment {}", size_of::<$structure>(), align_of::<$structure>()),
            ),
            $({
                let (size, type_) = field(|of: &$structure| &of.$field);
                let offset = offset_of!($structure, $field);
                let name = concat!("struct hoistway_", stringify!($name), " ", stringify!($field)).to_owned();
                (name, format!("offset {offset}, size {size}, {type_}"))
            },)*
        )*])
    };
}

macro_rules! functions {
    ($($name:ident($($parameter:tt),*))*) => {
        BTreeSet::from([$(
            (
                concat!("function ", stringify!($name)).to_owned(),
                ($name as unsafe extern "C" fn($($parameter),*) -> _).spell(),
            ),
        )*])
    };
}

macro_rules! codes {
    ($($name:ident = $code:expr;)*) => { BTreeSet::from([$((stringify!($name).to_owned(), ($code as i64).to_string()),)*]) };
}

#[test]
fn the_structures_have_the_described_layout() {
    let library = structures! {
        CCapacity capacity (requests, contexts, merged_bios, events, groups)
        CConfig config (layer, hz, uptime_ns, nr_requests, max_sectors, plugging, merging, refusal_ends_merging, ordered, ordered_flush, ordered_fua, hw_queues, rotational)
        CBio bio (token, context, sector, sectors, op, flags)
        CReservation reservation (bytes_per_second, depth_bytes, request_bytes)
        CSubmitted submitted (request, what, reserved)
        CRequest request (id, token, sector, submitted_ns, sectors, pid, op, flags, bios_max)
        CWork work (what, reserved, context)
        CTunable tunable (name, name_len, value, default_value, min, max)
        CEvent event (time_ns, token, sector, value, kind, pid, sectors, detail)
        CNeighbour neighbour (request, token, side, reserved)
        CExtent extent (sector, sectors, reserved)
    };
    compare(library, &described_as("struct "));
}

#[test]
fn the_functions_have_the_described_parameters() {
    let library = functions! {
        hoistway_queue_size(_)
        hoistway_config_default(_)
        hoistway_fixed_queue_size(_, _)
        hoistway_queue_init(_, _, _, _, _, _)
        hoistway_status_text(_)
        hoistway_elevator_count()
        hoistway_elevator_index(_, _)
        hoistway_elevator_name(_, _, _)
        hoistway_elevator(_)
        hoistway_is_reserving(_)
        hoistway_tunable_count(_)
        hoistway_tunable(_, _, _)
        hoistway_set_tunable(_, _, _)
        hoistway_set_tunable_by_name(_, _, _, _)
        hoistway_switch(_, _, _)
        hoistway_is_switching(_)
        hoistway_context_create(_, _, _, _, _, _)
        hoistway_context_exit(_, _, _)
        hoistway_context_set_priority(_, _, _, _, _)
        hoistway_context_set_nice(_, _, _, _)
        hoistway_context_set_cpu_policy(_, _, _, _)
        hoistway_context_set_cpu(_, _, _)
        hoistway_group_root(_, _)
        hoistway_group_create(_, _, _, _, _, _)
        hoistway_group_set_weights(_, _, _, _, _)
        hoistway_group_remove(_, _, _)
        hoistway_context_move(_, _, _, _)
        hoistway_reserve(_, _, _, _, _)
        hoistway_release(_, _, _)
        hoistway_group_reserve(_, _, _, _, _)
        hoistway_group_release(_, _, _)
        hoistway_submit(_, _, _, _)
        hoistway_resubmit(_, _, _, _)
        hoistway_unplug(_, _)
        hoistway_next(_, _, _)
        hoistway_next_for(_, _, _, _)
        hoistway_complete(_, _, _, _, _, _)
        hoistway_requeue(_, _, _)
        hoistway_in_flight(_)
        hoistway_prepare_merge(_, _, _, _)
        hoistway_joins_at_insert(_)
        hoistway_record_refusal(_, _)
        hoistway_allows_merge(_, _, _, _)
        hoistway_find_merge(_, _, _, _)
        hoistway_neighbour(_, _, _, _)
        hoistway_record_growth(_, _, _, _, _)
        hoistway_record_join(_, _, _, _, _)
        hoistway_record_join_at_insert(_, _, _, _, _)
        hoistway_depth_limit(_, _, _)
        hoistway_dispatched(_, _, _)
        hoistway_next_timer(_, _)
        hoistway_timer(_, _)
        hoistway_next_work(_, _)
        hoistway_pending(_)
        hoistway_next_event(_, _)
        hoistway_events_enable(_, _)
        hoistway_events_dropped(_)
    };
    compare(library, &described_as("function "));
}

#[test]
fn the_codes_have_the_described_values() {
    let library = codes! {
        HOISTWAY_OK = Status::Ok;
        HOISTWAY_RUN = Status::Run;
        HOISTWAY_WAIT = Status::Wait;
        HOISTWAY_EMPTY = Status::Empty;
        HOISTWAY_SEARCH = Status::Search;
        HOISTWAY_INVALID = Status::Invalid;
        HOISTWAY_TOO_SMALL = Status::TooSmall;
        HOISTWAY_FULL = Status::Full;
        HOISTWAY_STALE = Status::Stale;
        HOISTWAY_BAD_EXTENT = Status::BadExtent;
        HOISTWAY_NOT_SUPPORTED = Status::NotSupported;
        HOISTWAY_UNKNOWN = Status::Unknown;
        HOISTWAY_OUT_OF_RANGE = Status::OutOfRange;
        HOISTWAY_BUSY = Status::Busy;
        HOISTWAY_NOT_AWAKE = Status::NotAwake;
        HOISTWAY_NO_CAPACITY = Status::NoCapacity;
        HOISTWAY_EVENT_QUEUE = EventKind::Queue;
        HOISTWAY_EVENT_GET = EventKind::Get;
        HOISTWAY_EVENT_SLEEP = EventKind::Sleep;
        HOISTWAY_EVENT_BACK_MERGE = EventKind::BackMerge;
        HOISTWAY_EVENT_FRONT_MERGE = EventKind::FrontMerge;
        HOISTWAY_EVENT_JOIN = EventKind::Join;
        HOISTWAY_EVENT_INSERT = EventKind::Insert;
        HOISTWAY_EVENT_PLUG = EventKind::Plug;
        HOISTWAY_EVENT_UNPLUG = EventKind::Unplug;
        HOISTWAY_EVENT_UNPLUG_TIMER = EventKind::UnplugTimer;
        HOISTWAY_EVENT_ISSUE = EventKind::Issue;
        HOISTWAY_EVENT_REQUEUE = EventKind::Requeue;
        HOISTWAY_EVENT_COMPLETE = EventKind::Complete;
        HOISTWAY_EVENT_ACTIVATE = EventKind::Activate;
        HOISTWAY_EVENT_SLICE_SET = EventKind::SliceSet;
        HOISTWAY_EVENT_SLICE_EXPIRED = EventKind::SliceExpired;
        HOISTWAY_EVENT_IDLE_ARMED = EventKind::IdleArmed;
        HOISTWAY_EVENT_IDLE_HIT = EventKind::IdleHit;
        HOISTWAY_EVENT_IDLE_TIMEOUT = EventKind::IdleTimeout;
        HOISTWAY_EVENT_PREEMPT = EventKind::Preempt;
        HOISTWAY_EVENT_BATCH = EventKind::Batch;
        HOISTWAY_EVENT_OVERDUE = EventKind::Overdue;
        HOISTWAY_EVENT_ANTICIPATE = EventKind::Anticipate;
        HOISTWAY_EVENT_ANTICIPATION_BROKEN = EventKind::AnticipationBroken;
        HOISTWAY_EVENT_ANTICIPATION_TIMEOUT = EventKind::AnticipationTimeout;
        HOISTWAY_EVENT_SWITCHED = EventKind::Switched;
        HOISTWAY_EVENT_CHARGE = EventKind::Charge;
        HOISTWAY_EVENT_BUDGET_EXPIRED = EventKind::BudgetExpired;
        HOISTWAY_EVENT_WEIGHT_RAISED = EventKind::WeightRaised;
        HOISTWAY_EVENT_QUEUES_MERGED = EventKind::QueuesMerged;
        HOISTWAY_EVENT_QUEUE_SPLIT = EventKind::QueueSplit;
        HOISTWAY_EVENT_INJECTED = EventKind::Injected;
        HOISTWAY_EVENT_TOKEN_DEPTH = EventKind::TokenDepth;
        HOISTWAY_EVENT_AGED = EventKind::Aged;
        HOISTWAY_EVENT_WORKLOAD = EventKind::Workload;
        HOISTWAY_EVENT_POSTPONED = EventKind::Postponed;
        HOISTWAY_EVENT_SWEEP_BEGUN = EventKind::SweepBegun;
        HOISTWAY_EVENT_DEGRADED = EventKind::Degraded;
        HOISTWAY_RESERVING = RESERVING;
        HOISTWAY_FIXED = FIXED;
        HOISTWAY_ALIGNMENT = align_of::<HoistwayQueue>();
    };
    let kinds = ["enum hoistway_status ", "enum hoistway_event_kind ", "constant "];
    let described = kinds.into_iter().flat_map(|kind| {
        described_as(kind).into_iter().map(move |(name, value)| (name[kind.len()..].to_owned(), value))
    });
    compare(library, &described.collect());
}
