//! The admission check of the configuration and that of the queue agree.

use hoistway_core::{
    Capacity, ElevatorStorage, GroupWeights, Kind, NoSink, Owned, QueueConfig, RequestQueue, Reservation, ReserveError,
    Storage,
};
use proptest::prelude::*;

use super::checked;

/// A queue with the reservation layer, configured with the figures of a device with an arm.
fn queue(bandwidth: u64, position_us: u64) -> RequestQueue<Owned<NoSink>> {
    let capacity = Capacity { requests: 8, contexts: 8, merged_bios: 8, groups: 8 };
    let elevator = ElevatorStorage::owned_reserving(Kind::Noop, capacity);
    let mut queue = RequestQueue::new(QueueConfig::default(), Storage::owned(capacity), elevator, NoSink, 0);
    let figures = [
        ("device_bandwidth", bandwidth / 1000),
        ("device_position", position_us),
        ("device_return", position_us * 1000 / 800),
    ];
    for (name, value) in figures {
        let value = i64::try_from(value).expect("a small number");
        queue.set_tunable(name, value).unwrap_or_else(|error| panic!("{name} {value}: {error}"));
    }
    queue
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn the_configuration_admits_what_the_queue_admits(
        bandwidth in 1_000_000u64..1_000_000_000,
        position_us in 1_000u64..20_000,
        // Shares in thousandths of the device's time, and request sizes.
        wanted in prop::collection::vec((1u64..600, 512u64..(4 << 20)), 1..4),
    ) {
        let mut text = format!(
            "[[device]]\nname = \"a\"\nbackend = \"file:/srv/disk.img\"\nbandwidth = {bandwidth}\nposition = \"{position_us}us\"\n[[export]]\nname = \"x\"\n"
        );
        let mut queue = queue(bandwidth, position_us);
        let mut refused = 0;
        for (number, (thousandths, request_bytes)) in wanted.into_iter().enumerate() {
            // The rate that takes about that share of the device: each request takes its transfer
            // and a positioning.
            let request_ns = request_bytes * 1_000_000_000 / bandwidth + position_us * 1000;
            let rate = (request_bytes * 1_000_000 * thousandths / request_ns).max(1);
            let tenant = format!("[[tenant]]\nname = \"t{number}\"\nreserve = {{ rate = {rate}, request = {request_bytes} }}\n");
            let group = queue.create_group(queue.root_group(), GroupWeights::of(100), 0).expect("room");
            let reservation = Reservation { request_bytes, ..Reservation::of(rate) };
            let admitted = match queue.reserve_group(group, reservation, 0) {
                Ok(_) => true,
                Err(ReserveError::NoCapacity { .. }) => false,
                Err(error) => panic!("{reservation:?}: {error}"),
            };
            text.push_str(&tenant);
            refused += usize::from(!admitted);
            let problems = checked(&text).err().unwrap_or_default();
            prop_assert_eq!(problems.len(), refused, "{}\n{:?}", text, problems);
        }
    }
}
