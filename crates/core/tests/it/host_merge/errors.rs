//! Wrong calls of a host that merges: errors, and nothing changes.

use hoistway_core::{
    Bio, BlockLayer, Capacity, ContextId, ElevatorStorage, Extent, HostSearch, Kind, Merge, MergeError, Next, NoSink,
    Op, Priority, QueueConfig, RequestId, Storage, SubmitError, Submitted,
};

use super::{CAPACITY, config, queue};
use crate::host_merge::merger::Queue;

fn merging_host(kind: Kind) -> (Queue, ContextId) {
    let mut queue = queue(kind, QueueConfig { merging: false, ..config(1024, false, true) });
    let context = queue.create_context(1, Priority::UNSET, 0).expect("the first process");
    (queue, context)
}

fn insert(queue: &mut Queue, context: ContextId, token: u64, sector: u64) -> RequestId {
    match queue.submit(Bio::new(token, context, Op::Read, sector, 8), 0) {
        Ok((Submitted::Queued(id), _)) => id,
        other => panic!("{other:?}"),
    }
}

fn extent(sector: u64, sectors: u32) -> Extent {
    Extent { sector, sectors }
}

/// What the driver gets, one request after the other.
fn served(queue: &mut Queue) -> Vec<(u64, u64, u32)> {
    let mut served = Vec::new();
    let mut now_ns = 0;
    loop {
        match queue.next(now_ns) {
            Next::Request(id) => {
                let request = queue.request(id).expect("it was issued");
                served.push((request.token(), request.sector(), request.sectors()));
                let _ = queue.complete(id, now_ns, |_| {}).expect("it is in the device");
            }
            Next::Empty => return served,
            Next::Wait => {
                now_ns = queue.next_timer().expect("a wait ends").max(now_ns);
                let _ = queue.timer(now_ns);
            }
        }
        while queue.next_work().is_some() {}
    }
}

#[test]
fn stale_handles_are_refused_and_change_nothing() {
    for &kind in Kind::ALL {
        let (mut queue, context) = merging_host(kind);
        let gone = insert(&mut queue, context, 1, 0);
        assert_eq!(served(&mut queue), [(1, 0, 8)], "{kind:?}");
        let lower = insert(&mut queue, context, 2, 100);
        let upper = insert(&mut queue, context, 3, 108);
        let stale = Err(MergeError::Stale);
        let bio = Bio::new(4, context, Op::Read, 8, 8);
        assert_eq!(queue.record_growth(gone, Merge::Back, extent(0, 16), 0), stale);
        assert_eq!(queue.record_join((gone, extent(0, 16)), (upper, extent(108, 8)), 0), stale);
        assert_eq!(queue.record_join((lower, extent(100, 16)), (gone, extent(108, 8)), 0), stale);
        assert_eq!(queue.record_join((lower, extent(100, 16)), (lower, extent(100, 8)), 0), stale, "with itself");
        assert_eq!(queue.record_join_at_insert(gone, extent(0, 16), &bio, 0), stale);
        assert_eq!(queue.record_refusal(gone), Err(MergeError::Stale));
        assert_eq!(queue.neighbour(gone, Merge::Back), None);
        assert!(!queue.allows_merge(gone, &bio, 0));
        let mut requests = served(&mut queue);
        requests.sort_unstable();
        assert_eq!(requests, [(2, 100, 8), (3, 108, 8)], "{kind:?}");
    }
}

#[test]
fn a_request_that_was_dispatched_is_listed_and_refused() {
    for &kind in Kind::ALL {
        let (mut queue, context) = merging_host(kind);
        let id = insert(&mut queue, context, 1, 0);
        assert_eq!(queue.dispatched().count(), 0, "{kind:?}");
        assert!(matches!(queue.next(0), Next::Request(_)), "{kind:?}");
        assert_eq!(queue.record_growth(id, Merge::Back, extent(0, 16), 0), Err(MergeError::Stale), "in the device");
        let _ = queue.requeue(id, 0).expect("it is in the device");
        assert_eq!(queue.dispatched().map(|request| request.token()).collect::<Vec<_>>(), [1], "{kind:?}");
        assert_eq!(queue.record_growth(id, Merge::Back, extent(0, 16), 0), Err(MergeError::Stale), "requeued");
        assert_eq!(served(&mut queue), [(1, 0, 8)]);
    }
}

#[test]
fn bad_extents_are_refused_and_change_nothing() {
    for &kind in Kind::ALL {
        let (mut queue, context) = merging_host(kind);
        let lower = insert(&mut queue, context, 1, 100);
        let upper = insert(&mut queue, context, 2, 108);
        let bad = Err(MergeError::BadExtent);
        let bio = Bio::new(3, context, Op::Read, 108, 8);
        for wrong in [extent(100, 0), extent(u64::MAX, 1)] {
            assert_eq!(queue.record_growth(lower, Merge::Back, wrong, 0), bad);
            assert_eq!(queue.record_join((lower, wrong), (upper, extent(108, 8)), 0), bad);
            assert_eq!(queue.record_join((lower, extent(100, 16)), (upper, wrong), 0), bad);
            assert_eq!(queue.record_join_at_insert(lower, wrong, &bio, 0), bad);
        }
        let submit = |error| Err(MergeError::Submit(error));
        let empty = Bio { sectors: 0, ..bio };
        assert_eq!(queue.record_join_at_insert(lower, extent(100, 16), &empty, 0), submit(SubmitError::BadExtent));
        let flush = Bio { op: Op::Flush, ..bio };
        assert_eq!(queue.record_join_at_insert(lower, extent(100, 16), &flush, 0), submit(SubmitError::NotSupported));
        let mut requests = served(&mut queue);
        requests.sort_unstable();
        assert_eq!(requests, [(1, 100, 8), (2, 108, 8)], "{kind:?}");
    }
}

#[test]
fn a_process_that_exited_merges_nothing() {
    let (mut queue, context) = merging_host(Kind::MqDeadline);
    let other = queue.create_context(2, Priority::UNSET, 0).expect("the second process");
    let id = insert(&mut queue, context, 1, 100);
    let _ = queue.exit_context(other, 0).expect("it lives");
    let bio = Bio::new(2, other, Op::Read, 108, 8);
    assert_eq!(queue.prepare_merge(&bio, 0), HostSearch::Nothing);
    assert_eq!(queue.find_merge_for_host(&Bio { sector: 92, ..bio }, 0), None);
    assert!(!queue.allows_merge(id, &bio, 0));
    let no_context = Err(MergeError::Submit(SubmitError::NoContext));
    assert_eq!(queue.record_join_at_insert(id, extent(100, 16), &bio, 0), no_context);
    assert_eq!(served(&mut queue), [(1, 100, 8)]);
}

#[test]
fn a_full_storage_is_reported_and_merges_that_need_none_go_on() {
    let (mut queue, context) = merging_host(Kind::MqDeadline);
    let first = insert(&mut queue, context, 0, 0);
    for token in 1..u64::from(CAPACITY.requests) {
        insert(&mut queue, context, token, token * 1000);
    }
    let bio = Bio::new(100, context, Op::Read, 8, 8);
    assert_eq!(queue.submit(bio, 0).err(), Some(SubmitError::Full));
    let full = Err(MergeError::Submit(SubmitError::Full));
    assert_eq!(queue.record_join_at_insert(first, extent(0, 16), &bio, 0), full);
    assert!(queue.record_growth(first, Merge::Back, extent(0, 16), 0).is_ok());
    let served = served(&mut queue);
    assert_eq!((served[0], served.len()), ((0, 0, 16), CAPACITY.requests as usize));
}

#[test]
fn a_refused_request_is_merged_no_more() {
    for &kind in Kind::ALL {
        let (mut queue, context) = merging_host(kind);
        let id = insert(&mut queue, context, 1, 100);
        queue.record_refusal(id).expect("it is queued");
        let before = Bio::new(2, context, Op::Read, 92, 8);
        assert!(matches!(queue.prepare_merge(&before, 0), HostSearch::Usual | HostSearch::Nothing), "{kind:?}");
        assert!(!queue.allows_merge(id, &before, 0));
        assert_eq!(queue.record_growth(id, Merge::Front, extent(92, 16), 0), Err(MergeError::Stale));
        assert_eq!(served(&mut queue), [(1, 100, 8)], "{kind:?}");
    }
}

#[test]
fn the_depth_limit_is_between_one_and_the_number_of_requests() {
    for &kind in Kind::ALL {
        let (mut queue, context) = merging_host(kind);
        for op in [Op::Read, Op::Write, Op::Discard] {
            for nr_requests in [0, 1, 2, 64, 1024, u32::MAX] {
                let bio = Bio::new(1, context, op, 0, 8);
                let limit = queue.depth_limit(nr_requests, &bio);
                assert!((1..=nr_requests.max(1)).contains(&limit), "{kind:?}: {limit} of {nr_requests}");
            }
        }
        let _ = queue.exit_context(context, 0).expect("it lives");
        let bio = Bio::new(1, context, Op::Write, 0, 8);
        assert!((1..=64).contains(&queue.depth_limit(64, &bio)), "{kind:?}: of a stale process");
    }
}

#[test]
fn a_blank_queue_refuses_everything_until_it_has_an_elevator() {
    let (mut other, stranger) = merging_host(Kind::Noop);
    let strange = insert(&mut other, stranger, 1, 0);
    for &kind in Kind::ALL {
        let mut queue = Queue::blank(config(1024, false, true), Storage::owned(CAPACITY), NoSink, 0);
        let bio = Bio::new(1, stranger, Op::Read, 0, 8);
        assert!(queue.create_context(1, Priority::UNSET, 0).is_err());
        assert_eq!(queue.submit(bio, 0).err(), Some(SubmitError::NoContext));
        assert_eq!(queue.next(0), Next::Empty);
        assert!(queue.is_empty() && queue.next_timer().is_none() && queue.next_work().is_none());
        let _ = queue.timer(1);
        assert!(queue.complete(strange, 1, |_| {}).is_err() && queue.requeue(strange, 1).is_err());
        assert_eq!(queue.record_growth(strange, Merge::Back, extent(0, 16), 1), Err(MergeError::Stale));
        assert_eq!(queue.prepare_merge(&bio, 1), HostSearch::Nothing);
        assert_eq!(queue.dispatched().count(), 0);

        let less = Capacity { requests: CAPACITY.requests - 1, ..CAPACITY };
        assert!(queue.attach(ElevatorStorage::owned(kind, less)).is_err(), "{kind:?}: too small");
        assert!(queue.create_context(1, Priority::UNSET, 1).is_err(), "still blank");
        assert!(queue.attach(ElevatorStorage::owned(kind, CAPACITY)).is_ok(), "{kind:?}");
        assert!(queue.attach(ElevatorStorage::owned(Kind::Noop, CAPACITY)).is_err(), "twice");
        assert_eq!(queue.kind(), kind);
        assert_eq!(queue.config().layer, BlockLayer::V6_1);
        let context = queue.create_context(1, Priority::UNSET, 1).expect("the first process");
        insert(&mut queue, context, 7, 100);
        assert_eq!(served(&mut queue), [(7, 100, 8)], "{kind:?}");
    }
}
