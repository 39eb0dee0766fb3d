//! Guarantees of FIOPS for random processes, costs and tunables: shares within the cost of one
//! request, no credit for idling, order of arrival within a process, strict classes, no idling.
//! Decisions are compared with a naive linear model.

use std::collections::VecDeque;

use hoistway_core::{
    Bio, BlockLayer, Capacity, Class, ContextId, ElevatorStorage, Event, Flags, GroupWeights, Kind, Next, Note, Op,
    Owned, Priority, QueueConfig, RequestId, RequestQueue, Sink, Storage,
};
use proptest::prelude::*;

/// Records the last charge.
#[derive(Debug, Default)]
struct Charges(Option<u64>);

impl Sink for Charges {
    fn record(&mut self, _: u64, event: Event) {
        if let Event::Note(Note::Charge { amount, .. }) = event {
            self.0 = Some(amount);
        }
    }
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    Read,
    SyncWrite,
    AsyncWrite,
}

#[derive(Clone, Copy, Debug)]
struct Process {
    class: Class,
    level: u8,
    kind: RequestKind,
}

#[derive(Clone, Copy, Debug)]
struct Scales {
    read: u64,
    write: u64,
    sync: u64,
    asynchronous: u64,
}

const PLAIN: Scales = Scales { read: 1, write: 1, sync: 2, asynchronous: 5 };

/// The cost of a request, computed independently.
fn cost(process: &Process, kind: RequestKind, scales: Scales) -> u64 {
    let mut cost: i64 = 1024;
    if kind != RequestKind::Read {
        cost = cost * scales.write as i64 / scales.read as i64;
    }
    if kind == RequestKind::AsyncWrite {
        cost = cost * scales.asynchronous as i64 / scales.sync as i64;
    }
    cost += cost * (i64::from(process.level) - 4) / 5;
    cost.max(1) as u64
}

struct Host {
    queue: RequestQueue<Owned<Charges>>,
    contexts: Vec<ContextId>,
    device: VecDeque<RequestId>,
    next_token: u64,
}

impl Host {
    fn new(processes: &[Process]) -> Host {
        let config = QueueConfig {
            layer: BlockLayer::V3_4,
            plugging: false,
            merging: false,
            nr_requests: None,
            ..QueueConfig::default()
        };
        let capacity = Capacity { requests: 2048, contexts: 16, merged_bios: 4, groups: 4 };
        let (storage, elevator) = (Storage::owned(capacity), ElevatorStorage::owned(Kind::Fiops, capacity));
        let mut queue = RequestQueue::new(config, storage, elevator, Charges::default(), 0);
        let create = |(pid, process): (usize, &Process)| {
            let priority = Priority::new(process.class, process.level).expect("a level");
            queue.create_context(pid as u32, priority, 0).expect("few processes")
        };
        let contexts = processes.iter().enumerate().map(create).collect();
        Host { queue, contexts, device: VecDeque::new(), next_token: 0 }
    }

    fn set(&mut self, name: &str, value: u64) {
        self.queue.set_tunable(name, value as i64).expect("in range");
    }

    fn scale(&mut self, scales: Scales) {
        self.set("read_scale", scales.read);
        self.set("write_scale", scales.write);
        self.set("sync_scale", scales.sync);
        self.set("async_scale", scales.asynchronous);
    }

    fn submit(&mut self, process: usize, kind: RequestKind) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        let (op, flags) = match kind {
            RequestKind::Read => (Op::Read, Flags::NONE),
            RequestKind::SyncWrite => (Op::Write, Flags::SYNC),
            RequestKind::AsyncWrite => (Op::Write, Flags::NONE),
        };
        // Later requests lie lower: order of arrival is not that of sectors.
        let bio = Bio { flags, ..Bio::new(token, self.contexts[process], op, (1 << 30) - token * 64, 8) };
        let _ = self.queue.submit(bio, 0).expect("free entries");
        token
    }

    /// The next request for the device: its process and token, and its cost.
    fn take(&mut self) -> Option<(usize, u64, u64)> {
        let Next::Request(id) = self.queue.next(0) else { return None };
        let process = self.queue.context_of(id).expect("an in-flight request").pid() as usize;
        let token = self.queue.request(id).expect("an in-flight request").token();
        self.device.push_back(id);
        let charged = self.queue.sink_mut().0.take().expect("every dispatched request is charged");
        Some((process, token, charged))
    }

    fn complete_first(&mut self) {
        if let Some(id) = self.device.pop_front() {
            let _ = self.queue.complete(id, 0, |_| {}).expect("an in-flight request");
        }
    }
}

fn request_kinds() -> impl Strategy<Value = RequestKind> {
    prop_oneof![Just(RequestKind::Read), Just(RequestKind::SyncWrite), Just(RequestKind::AsyncWrite)]
}

fn processes_of(class: Class) -> impl Strategy<Value = Vec<Process>> {
    prop::collection::vec((0u8..8, request_kinds()).prop_map(move |(level, kind)| Process { class, level, kind }), 2..6)
}

fn processes() -> impl Strategy<Value = Vec<Process>> {
    let classes = prop_oneof![Just(Class::RealTime), Just(Class::BestEffort), Just(Class::Idle)];
    let process = (classes, 0u8..8, request_kinds()).prop_map(|(class, level, kind)| {
        let level = if class == Class::Idle { 7 } else { level };
        Process { class, level, kind }
    });
    prop::collection::vec(process, 1..7)
}

fn scales() -> impl Strategy<Value = Scales> {
    let scale = || prop_oneof![1u64..6, 1u64..=100];
    (scale(), scale(), scale(), scale()).prop_map(|(read, write, sync, asynchronous)| Scales {
        read,
        write,
        sync,
        asynchronous,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(192) })]

    /// The vios spent by two backlogged processes of a class differ by the cost of at most one
    /// request, so their shares of requests are in inverse proportion to their costs.
    #[test]
    fn backlogged_processes_spend_alike(processes in processes_of(Class::BestEffort), scales in scales()) {
        let mut host = Host::new(&processes);
        host.scale(scales);
        let mut left = vec![200; processes.len()];
        for (process, left) in left.iter().enumerate() {
            (0..*left).for_each(|_| { host.submit(process, processes[process].kind); });
        }
        let costs: Vec<u64> = processes.iter().map(|process| cost(process, process.kind, scales)).collect();
        let dearest = costs.iter().max().copied().unwrap_or(0);
        let mut spent = vec![0; processes.len()];
        while left.iter().all(|left| *left > 0) {
            let (process, _, charged) = host.take().expect("requests wait, and no process is alone");
            prop_assert_eq!(charged, costs[process]);
            spent[process] += charged;
            left[process] -= 1;
            let (least, most) = (spent.iter().min(), spent.iter().max());
            prop_assert!(most.unwrap_or(&0) - least.unwrap_or(&0) <= dearest, "{:?} of {:?}", spent, costs);
        }
    }

    /// A process that was idle or is new has no credit: from its return on both spend alike.
    #[test]
    fn idling_gives_no_credit(processes in processes_of(Class::BestEffort), before in 0u32..20, alone in 1u32..100) {
        let [a, b] = [processes[0], processes[1]];
        let mut host = Host::new(&[a, b]);
        (0..300).for_each(|_| { host.submit(0, a.kind); });
        (0..before).for_each(|_| { host.submit(1, b.kind); });
        let (mut record_submission, mut of_b) = (0, 0);
        while record_submission < alone || of_b < before {
            // An async request waits for sync ones in the device while its process is alone;
            // completions let it go on.
            let Some((process, _, _)) = host.take() else { host.complete_first(); continue };
            record_submission += 1;
            of_b += u32::from(process == 1);
            if record_submission > 250 { return Ok(()) }
        }
        while !host.device.is_empty() { host.complete_first() }
        (0..100).for_each(|_| { host.submit(1, b.kind); });
        let dearest = cost(&a, a.kind, PLAIN).max(cost(&b, b.kind, PLAIN));
        let mut spent = [0u64; 2];
        for _ in 0..40 {
            let (process, _, charged) = host.take().expect("both have requests");
            spent[process] += charged;
            prop_assert!(spent[0].abs_diff(spent[1]) <= 2 * dearest, "{spent:?}");
        }
    }

    /// A process that returns with a request in the device catches up the amount by which it is
    /// behind, and no more.
    #[test]
    fn a_deep_queue_catches_up_what_it_is_behind(a_level in 0u8..8, b_level in 0u8..8, alone in 1u64..60) {
        let of = |level| Process { class: Class::BestEffort, level, kind: RequestKind::Read };
        let (a, b) = (of(a_level), of(b_level));
        let (a_cost, b_cost) = (cost(&a, RequestKind::Read, PLAIN), cost(&b, RequestKind::Read, PLAIN));
        let mut host = Host::new(&[b, a]);
        host.submit(0, RequestKind::Read);
        (0..200).for_each(|_| { host.submit(1, RequestKind::Read); });
        // Equals are served in order of arrival: B's request goes first and stays in the device.
        prop_assert_eq!(host.take().map(|record_submission| record_submission.0), Some(0));
        for _ in 0..alone {
            prop_assert_eq!(host.take().map(|record_submission| record_submission.0), Some(1));
        }
        (0..1000).for_each(|_| { host.submit(0, RequestKind::Read); });
        let behind = (alone * a_cost).saturating_sub(b_cost);
        let run = std::iter::from_fn(|| host.take()).take_while(|record_submission| record_submission.0 == 0).count() as u64;
        // Equal sums: the process inserted first goes first, which is A.
        prop_assert_eq!(run, if alone * a_cost < b_cost { 0 } else { behind.div_ceil(b_cost) });
    }

    /// A naive model makes the same decisions for random calls. Also: classes are strict, a
    /// process's requests go in order of arrival, and a request waits only if it is async, its
    /// process is alone in its class and sync requests are in the device.
    #[test]
    fn decisions_equal_those_of_a_naive_model(
        processes in processes(),
        scales in scales(),
        deep_share in any::<bool>(),
        postpone_async in any::<bool>(),
        sync_preempt in 0u64..3,
        calls in prop::collection::vec((0u8..10, 0usize..8, request_kinds()), 0..300),
    ) {
        let mut host = Host::new(&processes);
        host.scale(scales);
        host.set("deep_share", deep_share.into());
        host.set("postpone_async", postpone_async.into());
        let mut model = Model { deep_share, postpone_async, sync_preempt, ..Model::new(&processes, scales) };
        for (at, &(what, which, kind)) in calls.iter().enumerate() {
            if at == calls.len() / 3 {
                host.set("sync_preempt", sync_preempt);
                model.preempting = true;
            }
            match what {
                0..=4 => {
                    let process = which % processes.len();
                    let token = host.submit(process, kind);
                    model.submit(process, token, kind);
                }
                5..=7 => {
                    let expected = model.take();
                    prop_assert_eq!(host.take(), expected, "call {}", at);
                }
                _ => {
                    host.complete_first();
                    model.complete_first();
                }
            }
        }
        loop {
            let expected = model.take();
            prop_assert_eq!(host.take(), expected, "at the end");
            if expected.is_none() && model.device.is_empty() { break }
            if expected.is_none() { host.complete_first(); model.complete_first(); }
        }
        prop_assert!(model.queues.iter().all(VecDeque::is_empty), "every request is served");
    }

    /// Groups have shares by weight, however many processes they have, and within a group processes
    /// have equal shares.
    #[test]
    fn groups_share_by_weight(weights in (1u16..=1000, 1u16..=1000), members in (1usize..4, 1usize..4)) {
        let reader = Process { class: Class::BestEffort, level: 4, kind: RequestKind::Read };
        let mut host = Host::new(&vec![reader; members.0 + members.1]);
        host.set("groups", 1);
        let root = host.queue.root_group();
        let groups = [weights.0, weights.1].map(|weight| {
            host.queue.create_group(root, GroupWeights::of(weight), 0).expect("free entries")
        });
        let group_of = |process: usize| usize::from(process >= members.0);
        for process in 0..host.contexts.len() {
            let _ = host.queue.move_context(host.contexts[process], groups[group_of(process)], 0).expect("both exist");
            (0..300).for_each(|_| { host.submit(process, RequestKind::Read); });
        }
        let price = |group: usize| (1024 * 100 / u64::from([weights.0, weights.1][group])).max(1);
        let (mut of_group, mut of_process) = ([0u64; 2], vec![0u64; host.contexts.len()]);
        for _ in 0..250 {
            let (process, _, _) = host.take().expect("requests wait");
            of_group[group_of(process)] += 1;
            of_process[process] += 1;
            let spent = [of_group[0] * price(0), of_group[1] * price(1)];
            prop_assert!(spent[0].abs_diff(spent[1]) <= price(0).max(price(1)), "{spent:?}");
            let (one, other) = of_process.split_at(members.0);
            for members in [one, other] {
                prop_assert!(members.iter().max().unwrap_or(&0) - members.iter().min().unwrap_or(&0) <= 1);
            }
        }
        prop_assert!(host.queue.remove_group(groups[0], 0).is_err(), "it has processes");
    }
}

/// A process that waits when sync requests may pass keeps its position among equals.
#[test]
fn sync_requests_pass_in_the_order_of_their_processes() {
    let process = Process { class: Class::BestEffort, level: 4, kind: RequestKind::Read };
    let mut host = Host::new(&[process; 3]);
    host.submit(2, RequestKind::AsyncWrite);
    host.submit(1, RequestKind::Read);
    host.submit(0, RequestKind::Read);
    host.set("sync_preempt", 1);
    let order: Vec<usize> = std::iter::from_fn(|| host.take()).map(|record_submission| record_submission.0).collect();
    assert_eq!(order, [1, 0], "and the write waits for both");
}

/// A process that moves to another group while it has requests is served there, and its old group
/// can be removed.
#[test]
fn a_process_moves_to_another_group_with_its_requests() {
    let reader = Process { class: Class::BestEffort, level: 4, kind: RequestKind::Read };
    let mut host = Host::new(&[reader; 3]);
    host.set("groups", 1);
    let root = host.queue.root_group();
    let [heavy, light] =
        [300, 100].map(|weight| host.queue.create_group(root, GroupWeights::of(weight), 0).expect("free entries"));
    for (process, group) in [(0, heavy), (1, light), (2, light)] {
        let _ = host.queue.move_context(host.contexts[process], group, 0).expect("both exist");
        (0..40).for_each(|_| {
            host.submit(process, RequestKind::Read);
        });
    }
    // 341 vios a request of the heavy group, 1024 of the light one: three or four for one.
    let first: Vec<usize> = (0..12).map(|_| host.take().expect("requests wait").0).collect();
    assert_eq!(first, [0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0]);
    let _ = host.queue.move_context(host.contexts[0], light, 0).expect("both exist");
    assert!(host.queue.remove_group(heavy, 0).is_err(), "requests of it are in the device");
    while !host.device.is_empty() {
        host.complete_first();
    }
    assert!(host.queue.remove_group(heavy, 0).is_ok());
    // Three equals in one group: none gets two more than another.
    let mut served = [0; 3];
    for _ in 0..30 {
        served[host.take().expect("requests wait").0] += 1;
    }
    assert!(served.iter().all(|served| (9..=11).contains(served)), "{served:?}");
}

/// FIOPS's second version according to its description.
struct Model {
    processes: Vec<Process>,
    scales: Scales,
    deep_share: bool,
    postpone_async: bool,
    sync_preempt: u64,
    preempting: bool,
    queues: Vec<VecDeque<(u64, RequestKind)>>,
    spent: Vec<u64>,
    in_flight: Vec<u32>,
    /// Waiting processes in order, by class; and the highest value that the first one had spent.
    trees: [Vec<usize>; 3],
    floors: [u64; 3],
    device: VecDeque<(usize, RequestKind)>,
}

impl Model {
    fn new(processes: &[Process], scales: Scales) -> Model {
        let count = processes.len();
        Model {
            processes: processes.to_vec(),
            scales,
            deep_share: true,
            postpone_async: true,
            sync_preempt: 0,
            preempting: false,
            queues: vec![VecDeque::new(); count],
            spent: vec![0; count],
            in_flight: vec![0; count],
            trees: [const { Vec::new() }; 3],
            floors: [0; 3],
            device: VecDeque::new(),
        }
    }

    fn class(&self, process: usize) -> usize {
        self.processes[process].class as usize - 1
    }

    fn submit(&mut self, process: usize, token: u64, kind: RequestKind) {
        self.queues[process].push_back((token, kind));
        let class = self.class(process);
        if self.trees[class].contains(&process) {
            return;
        }
        if !self.deep_share || self.in_flight[process] == 0 {
            self.spent[process] = self.spent[process].max(self.floors[class]);
        }
        self.place(class, process);
    }

    fn place(&mut self, class: usize, process: usize) {
        let at = self.trees[class].iter().take_while(|other| self.spent[**other] <= self.spent[process]).count();
        self.trees[class].insert(at, process);
        self.raise_floor(class);
    }

    fn raise_floor(&mut self, class: usize) {
        if let Some(first) = self.trees[class].first() {
            self.floors[class] = self.floors[class].max(self.spent[*first]);
        }
    }

    fn take(&mut self) -> Option<(usize, u64, u64)> {
        let class = self.trees.iter().position(|tree| !tree.is_empty())?;
        let tree = &self.trees[class];
        let is_sync =
            |process: usize| self.queues[process].front().is_some_and(|(_, kind)| *kind != RequestKind::AsyncWrite);
        let mut process = tree[0];
        if !is_sync(process) {
            let sync_in_flight = self.device.iter().any(|(_, kind)| *kind != RequestKind::AsyncWrite);
            if self.postpone_async && sync_in_flight && tree.len() == 1 {
                return None;
            }
            let mode = if self.preempting { self.sync_preempt } else { 0 };
            let found = tree.iter().copied().find(|process| is_sync(*process));
            process = match (mode, found) {
                (0, _) => process,
                (_, Some(found)) => found,
                (1, None) => process,
                _ => tree[tree.len() - 1],
            };
        }
        let (token, kind) = self.queues[process].pop_front()?;
        let price = cost(&self.processes[process], kind, self.scales);
        self.device.push_back((process, kind));
        self.in_flight[process] += 1;
        self.trees[class].retain(|other| *other != process);
        self.spent[process] += price;
        if !self.queues[process].is_empty() {
            self.place(class, process);
        }
        self.raise_floor(class);
        Some((process, token, price))
    }

    fn complete_first(&mut self) {
        if let Some((process, _)) = self.device.pop_front() {
            self.in_flight[process] -= 1;
        }
    }
}
