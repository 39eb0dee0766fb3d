use super::*;

/// Runs lines of the form `time action op sector+sectors pid`. Optional suffixes are `error=N`,
/// `at=SECTOR` (splits), `from=DEVICE:SECTOR` (remaps) and `dev=N` for a device other than 0.
fn found(lines: &str) -> (Vec<RequestRecord>, RequestTracker) {
    let mut tracker = RequestTracker::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (event, payload) = event(line);
        tracker.event(&event, &payload);
    }
    (tracker.take_finished().collect(), tracker)
}

fn event(line: &str) -> (Event, Vec<u8>) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let action = Action::ALL.into_iter().find(|action| action.letters() == words[1]).unwrap();
    let (sector, sectors) = words[3].split_once('+').unwrap();
    let mut event = Event {
        op: op(words[2]),
        sector: sector.parse().unwrap(),
        bytes: sectors.parse::<u32>().unwrap() * 512,
        pid: words[4].parse().unwrap(),
        ..Event::new(words[0].parse().unwrap(), action)
    };
    let mut payload = Vec::new();
    for (name, value) in words[5..].iter().map(|word| word.split_once('=').unwrap()) {
        match name {
            "error" => event.error = value.parse().unwrap(),
            "dev" => event.device = DeviceId(value.parse().unwrap()),
            "at" => payload = value.parse::<u64>().unwrap().to_be_bytes().to_vec(),
            "from" => {
                let (device, sector) = value.split_once(':').unwrap();
                payload.extend(device.parse::<u32>().unwrap().to_be_bytes());
                payload.extend(event.device.0.to_be_bytes());
                payload.extend(sector.parse::<u64>().unwrap().to_be_bytes());
            }
            _ => unreachable!("{name}"),
        }
    }
    (event, payload)
}

fn op(letters: &str) -> Rwbs {
    crate::text::parse_rwbs(letters.as_bytes()).unwrap()
}

/// The times of Q, G, I, D and C.
fn steps(record: &RequestRecord) -> [Option<u64>; 5] {
    [record.queued_ns, record.got_ns, record.inserted_ns, record.issued_ns, record.completed_ns]
}

fn range(record: &RequestRecord) -> (u64, u32) {
    (record.sector, record.bytes / 512)
}

#[test]
fn a_request_is_followed_through_all_its_steps() {
    let (finished, tracker) = found(
        "10 Q RS 100+8 7
         11 G RS 100+8 7
         13 I RS 100+8 7
         20 D RS 100+8 99
         50 C RS 100+8 0",
    );
    assert_eq!(finished.len(), 1);
    let record = &finished[0];
    assert_eq!((record.pid, range(record), record.op), (7, (100, 8), op("RS")));
    assert_eq!(steps(record), [Some(10), Some(11), Some(13), Some(20), Some(50)]);
    assert_eq!(
        [record.q2g_ns(), record.g2i_ns(), record.i2d_ns(), record.d2c_ns(), record.q2c_ns()],
        [Some(1), Some(2), Some(7), Some(30), Some(40)]
    );
    assert_eq!((tracker.outstanding(), tracker.in_device(), tracker.earliest_ns()), (0, 0, None));
}

#[test]
fn merges_at_both_ends_are_recorded_and_extend_the_range() {
    let (finished, _) = found(
        "1 Q W 100+8 7
         2 G W 100+8 7
         3 Q W 108+8 7
         4 M W 108+8 7
         5 Q W 92+8 8
         6 F W 92+8 8
         7 I W 92+24 7
         8 D W 92+24 7
         9 C W 92+24 0",
    );
    assert_eq!(finished.len(), 1);
    assert_eq!((range(&finished[0]), finished[0].pid, finished[0].first_bytes()), ((92, 24), 7, 4096));
    let back = Merged { pid: 7, queued_ns: 3, merged_ns: 4, sector: 108, bytes: 4096, front: false };
    let front = Merged { pid: 8, queued_ns: 5, merged_ns: 6, sector: 92, bytes: 4096, front: true };
    assert_eq!(finished[0].merged, [back, front]);
}

#[test]
fn a_whole_request_merged_to_another_brings_its_bios_along() {
    // Newer kernels record the merge of the second request with M, older ones do not.
    for merge in ["9 M W 108+16 7", ""] {
        let (finished, tracker) = found(&format!(
            "1 Q W 108+8 7
             2 G W 108+8 7
             3 Q W 116+8 7
             4 M W 116+8 7
             5 Q W 100+8 8
             6 G W 100+8 8
             7 I W 108+16 7
             8 I W 100+8 8
             {merge}
             10 D W 100+24 8
             11 C W 100+24 0"
        ));
        assert_eq!((finished.len(), tracker.outstanding()), (1, 0), "{merge}");
        let record = &finished[0];
        assert_eq!((range(record), record.pid, record.bios(), steps(record)[0]), ((100, 24), 8, 3, Some(5)), "{merge}");
        let submitted: Vec<(u64, u64, u32)> =
            record.merged.iter().map(|bio| (bio.queued_ns, bio.sector, bio.bytes)).collect();
        assert_eq!(submitted, [(1, 108, 4096), (3, 116, 4096)], "{merge}");
    }
}

#[test]
fn without_an_elevator_or_an_allocation_the_bio_itself_is_issued() {
    let (finished, _) = found(
        "1 Q R 0+8 7
         2 D R 0+8 7
         3 C R 0+8 0
         4 Q R 8+8 7
         5 C R 8+8 0",
    );
    assert_eq!(steps(&finished[0]), [Some(1), None, None, Some(2), Some(3)]);
    assert_eq!(steps(&finished[1]), [Some(4), None, None, None, Some(5)]);
}

#[test]
fn a_trace_that_begins_in_the_middle_yields_partial_records() {
    let (finished, _) = found(
        "1 C R 0+8 5
         2 D W 64+8 9
         3 C W 64+8 5",
    );
    assert_eq!((steps(&finished[0]), finished[0].pid), ([None, None, None, None, Some(1)], 0));
    assert_eq!((steps(&finished[1]), finished[1].pid), ([None, None, None, Some(2), Some(3)], 9));
    assert_eq!(finished[0].first_seen_ns(), None);
}

#[test]
fn completions_in_parts_end_a_request_with_its_last() {
    let (finished, tracker) = found(
        "1 Q W 100+24 7
         2 G W 100+24 7
         3 I W 100+24 7
         4 D W 100+24 7
         5 C W 100+8 0 error=5
         6 C W 108+8 0
         7 C W 116+8 0",
    );
    assert_eq!((finished.len(), tracker.in_device()), (1, 0));
    assert_eq!((range(&finished[0]), finished[0].completed_ns, finished[0].error), ((100, 24), Some(7), 5));
}

#[test]
fn a_requeued_request_counts_its_last_issue() {
    let (finished, _) = found(
        "1 Q R 100+8 7
         2 G R 100+8 7
         3 I R 100+8 7
         4 D R 100+8 7
         5 R R 100+8 7
         6 D R 100+8 7
         9 C R 100+8 7",
    );
    assert_eq!((finished[0].issued_ns, finished[0].requeues, finished[0].inserted_ns), (Some(6), 1, Some(3)));
}

#[test]
fn a_split_bio_becomes_two_requests_of_the_same_submission() {
    for cut in ["2 X R 100+8 7 at=108", ""] {
        let (finished, _) = found(&format!(
            "1 Q R 100+24 7
             {cut}
             3 G R 100+8 7
             4 G R 108+16 7
             5 D R 108+16 7
             6 D R 100+8 7
             7 C R 108+16 0
             8 C R 100+8 0"
        ));
        assert_eq!(finished.iter().map(range).collect::<Vec<_>>(), [(108, 16), (100, 8)], "{cut}");
        assert_eq!(finished.iter().map(|record| record.queued_ns).collect::<Vec<_>>(), [Some(1), Some(1)], "{cut}");
    }
}

#[test]
fn one_flush_of_the_device_serves_all_waiting_flushes() {
    // As Linux 6.1 records it: the flush of the device, then the end of each request.
    let (finished, tracker) = found(
        "1 Q FWS 0+0 7
         2 G FWS 0+0 7
         3 Q FWS 0+0 8
         4 G FWS 0+0 8
         5 D FN 0+0 99
         6 Q FWS 0+0 9
         7 C FN 0+0 0
         8 C WS 0+0 0
         9 C WS 0+0 0",
    );
    assert_eq!(
        finished.iter().map(|record| (record.pid, record.q2c_ns())).collect::<Vec<_>>(),
        [(7, Some(6)), (8, Some(4))]
    );
    assert_eq!(tracker.outstanding(), 1);
}

#[test]
fn a_write_with_fua_ends_with_the_flush_after_its_data() {
    // As Linux records it for a disk without FUA. Drivers may hide the flush itself.
    for flush in ["53 D FN 0+0 99\n90 C FN 0+0 0", ""] {
        let (finished, tracker) = found(&format!(
            "1 Q WFS 4112+4 7
             2 G WFS 4112+4 7
             4 I WFS 4112+4 7
             5 D WS 4112+4 7
             50 C WS 4112+4 0
             {flush}
             95 C WS 4112+0 0"
        ));
        assert_eq!((finished.len(), tracker.outstanding(), tracker.in_device()), (1, 0, 0));
        let record = &finished[0];
        assert_eq!((record.pid, range(record), record.op), (7, (4112, 4), op("WFS")));
        assert_eq!(steps(record), [Some(1), Some(2), Some(4), Some(5), Some(95)]);
        assert_eq!([record.q2c_ns(), record.d2c_ns(), record.postflush_ns()], [Some(94), Some(45), Some(45)]);
        let after_ns = if flush.is_empty() { None } else { Some((53, 90)) };
        let expected = FlushSteps { before_ns: None, data_completed_ns: Some(50), after_ns };
        assert_eq!(record.flush.as_deref(), Some(&expected));
    }
}

#[test]
fn a_commit_block_is_one_request_with_the_flushes_around_its_data() {
    let (finished, tracker) = found(
        "1 Q FWFSM 32788+2 7
         2 G FWFSM 32788+2 7
         3 D FN 0+0 99
         60 C FN 0+0 0
         61 I WSM 32788+2 99
         62 D WSM 32788+2 99
         70 C WSM 32788+2 0
         71 D FN 0+0 99
         80 C FN 0+0 0
         81 C WSM 32788+0 0",
    );
    assert_eq!((finished.len(), tracker.outstanding()), (1, 0));
    let record = &finished[0];
    assert_eq!((record.pid, steps(record)), (7, [Some(1), Some(2), Some(61), Some(62), Some(81)]));
    assert_eq!([record.preflush_ns(), record.d2c_ns(), record.postflush_ns()], [Some(57), Some(8), Some(11)]);
    let expected = FlushSteps { before_ns: Some((3, 60)), data_completed_ns: Some(70), after_ns: Some((71, 80)) };
    assert_eq!(record.flush.as_deref(), Some(&expected));
}

#[test]
fn a_device_with_fua_completes_a_write_once() {
    let (finished, tracker) = found(
        "1 Q WFS 8+8 7
         2 D WFS 8+8 7
         9 C WFS 8+8 0",
    );
    assert_eq!((finished[0].completed_ns, &finished[0].flush, tracker.outstanding()), (Some(9), &None, 0));
}

#[test]
fn sequences_end_with_their_data_in_a_trace_that_shows_no_ends() {
    let lines = "1 Q WFS 8+8 7
         2 D WS 8+8 7
         9 C WS 8+8 0";
    let (finished, tracker) = found(lines);
    assert_eq!((finished.len(), tracker.outstanding(), tracker.in_device()), (0, 1, 0));
    assert_eq!(tracker.into_outstanding()[0].completed_ns, Some(9));
    let (finished, tracker) = found(&format!("{lines}\n20 C WS 8+0 0\n{lines}"));
    assert_eq!((finished.len(), tracker.into_outstanding()[0].completed_ns), (1, None), "the end is missing");
}

#[test]
fn a_completion_of_an_unknown_command_is_no_request() {
    let (finished, tracker) = found("1 C N 0+0 0");
    assert_eq!((finished.len(), tracker.outstanding()), (0, 0));
}

#[test]
fn flushes_recorded_as_writes_complete_separately() {
    let (finished, _) = found(
        "1 Q FW 0+0 7
         2 Q FW 0+0 8
         3 D FW 0+0 7
         4 D FW 0+0 8
         5 C FW 0+0 0
         6 C FW 0+0 0",
    );
    assert_eq!(
        finished.iter().map(|record| (record.pid, record.completed_ns)).collect::<Vec<_>>(),
        [(7, Some(5)), (8, Some(6))]
    );
}

#[test]
fn directions_and_discards_of_one_sector_are_distinguished() {
    let (finished, _) = found(
        "1 Q R 100+8 1
         2 Q W 100+8 2
         3 Q D 100+8 3
         4 C D 100+8 0
         5 C R 100+8 0
         6 C W 100+8 0",
    );
    assert_eq!(finished.iter().map(|record| record.pid).collect::<Vec<_>>(), [3, 1, 2]);
}

#[test]
fn the_oldest_request_of_the_same_length_and_sector_is_preferred() {
    let (finished, _) = found(
        "1 Q R 100+8 1
         2 Q R 100+16 2
         3 Q R 100+8 3
         4 C R 100+16 0
         5 C R 100+8 0
         6 C R 100+8 0",
    );
    assert_eq!(finished.iter().map(|record| record.pid).collect::<Vec<_>>(), [2, 1, 3]);
}

#[test]
fn a_bio_that_is_submitted_again_below_is_a_separate_request() {
    // A device mapper submits a bio of its own to the disk.
    let (finished, tracker) = found(
        "1 Q R 0+8 7 dev=5
         2 A R 2048+8 7 dev=1 from=5:0
         3 Q R 2048+8 7 dev=1
         4 G R 2048+8 7 dev=1
         5 D R 2048+8 7 dev=1
         6 C R 2048+8 0 dev=1
         7 C R 0+8 0 dev=5",
    );
    assert_eq!(
        finished.iter().map(|record| (record.device.0, record.queued_ns)).collect::<Vec<_>>(),
        [(1, Some(3)), (5, Some(1))]
    );
    assert_eq!(tracker.outstanding(), 0);
}

#[test]
fn a_remapped_bio_keeps_its_submission_time() {
    // Striping passes the bio itself on: no Q below, no C above.
    let (finished, tracker) = found(
        "1 Q R 0+8 7 dev=5
         2 A R 2048+8 7 dev=1 from=5:0
         4 G R 2048+8 7 dev=1
         5 D R 2048+8 7 dev=1
         6 C R 2048+8 0 dev=1",
    );
    assert_eq!(finished.iter().map(|record| (record.device.0, record.queued_ns)).collect::<Vec<_>>(), [(1, Some(1))]);
    assert_eq!(tracker.outstanding(), 0);
}

#[test]
fn a_request_with_a_lost_completion_is_abandoned_and_returned() {
    let later = 2 + ABANDON_AFTER_NS;
    let (finished, tracker) = found(&format!(
        "1 Q R 0+8 7
         1 D R 0+8 7
         {later} Q R 64+8 7"
    ));
    assert_eq!((finished.len(), finished[0].completed_ns, finished[0].issued_ns), (1, None, Some(1)));
    assert_eq!((tracker.abandoned(), tracker.outstanding(), tracker.in_device()), (1, 1, 0));
    assert_eq!(tracker.into_outstanding().iter().map(range).collect::<Vec<_>>(), [(64, 8)]);
}

#[test]
fn arbitrary_events_are_tracked_without_a_panic() {
    // All actions on few sectors in pseudo-random order: the counters stay consistent.
    let mut tracker = RequestTracker::new();
    let mut state = 1u64;
    let (mut queued, mut ended) = (0usize, 0usize);
    for time_ns in 0..200_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (state >> 33) as u32;
        let mut event = Event::new(time_ns, Action::ALL[number as usize % Action::ALL.len()]);
        // Each set of read, write, discard, preflush and FUA.
        event.op = Rwbs((number >> 24 & 31) as u16);
        event.bytes = (number >> 8 & 3) * 4096;
        event.sector = u64::from(number >> 11 & 15) * 8;
        queued += usize::from(event.action == Action::Queue);
        let payload = [[0; 4], [0; 4], [0; 4], (number >> 12 & 31).to_be_bytes()].concat();
        tracker.event(&event, if number & 1 << 20 == 0 { &payload } else { &payload[8..] });
        ended += tracker.take_finished().count();
        assert!(tracker.in_device() <= tracker.outstanding());
    }
    assert!(queued > 5_000 && ended > 5_000, "{queued} {ended}");
    let outstanding = tracker.outstanding();
    assert!(tracker.into_outstanding().len() <= outstanding);
}
