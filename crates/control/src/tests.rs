//! The protocol and the tree over a fake server.

use hoistway_core::{Class, Kind, Priority};

use super::fake::FakeTarget;
use super::*;
use hoistway_qos::{Limits, Rate};

/// Returns the replies of a new session to these requests.
fn answer(target: &mut FakeTarget, request: &str) -> String {
    answer_after(&Watch::new(), target, request)
}

fn answer_after(watch: &Watch, target: &mut FakeTarget, request: &str) -> String {
    let (mut session, mut out) = (Session::new(), Vec::new());
    session.receive(request.as_bytes(), watch, target, &mut out);
    while session.has_more() {
        session.resume(watch, target, &mut out);
    }
    session.end(watch, target, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_scheduler_is_read_and_switched_as_in_sysfs() {
    let target = &mut FakeTarget::new();
    let before = answer(target, "get devices/sda/queue/scheduler\n");
    assert!(before.starts_with("= linus noop deadline ") && before.ends_with(" paternoster\nok\n"), "{before}");
    assert!(before.contains(" [cfq] "), "{before}");
    assert_eq!(answer(target, "set devices/sda/queue/scheduler deadline\n"), "ok\n");
    assert_eq!(target.elevator, Kind::Deadline);
    assert!(answer(target, "get devices/sda/queue/scheduler").contains(" [deadline] "));
    assert_eq!(
        answer(target, "set devices/sda/queue/scheduler cqf"),
        "error value: \"cqf\" is no elevator; did you mean \"cfq\"?\n"
    );
}

#[test]
fn only_tunables_of_the_present_elevator_exist_with_the_names_and_units_of_the_kernel() {
    let target = &mut FakeTarget::new();
    assert_eq!(answer(target, "get devices/sda/queue/iosched/slice_idle"), "= 8\nok\n");
    assert_eq!(
        answer(target, "set devices/sda/queue/iosched/slice_idle 0\nget /devices//sda/queue/iosched/slice_idle/"),
        "ok\n= 0\nok\n"
    );
    let wrong = answer(target, "set devices/sda/queue/iosched/slice_idle -3");
    assert!(wrong.starts_with("error value: \"-3\" is out of range: slice_idle takes 0 to "), "{wrong}");
    assert_eq!(
        answer(target, "get devices/sda/queue/iosched/slice_idel"),
        "error path: no \"slice_idel\" in devices/sda/queue/iosched; did you mean \"slice_idle\"?\n"
    );
    assert_eq!(answer(target, "set devices/sda/queue/scheduler noop\nls devices/sda/queue/iosched"), "ok\nok\n");
}

#[test]
fn a_directory_lists_its_entries_and_marks_directories() {
    let target = &mut FakeTarget::new();
    assert_eq!(answer(target, "ls"), "= devices/\n= exports/\n= tenants/\n= groups/\n= clients/\n= server/\nok\n");
    assert_eq!(answer(target, "ls devices/sda/queue").lines().next(), Some("= scheduler"));
    assert_eq!(answer(target, "ls exports"), "= %/\n= vm%2F1/\nok\n");
    assert_eq!(answer(target, "ls tenants"), "= backup/\n= data%20base/\nok\n");
    assert_eq!(answer(target, "ls server/version"), "= server/version\nok\n");
    assert_eq!(answer(target, "get exports/%/read_only\nget exports/vm%2f1/read_only"), "= 1\nok\n= 0\nok\n");
}

#[test]
fn one_reply_has_all_readable_leaves_below_a_directory() {
    let target = &mut FakeTarget::new();
    let all = answer(target, "get -r");
    assert!(all.contains("= tenants/data%20base/weight: 300\n") && all.ends_with("\nok\n"), "{all}");
    assert!(all.contains("= exports/%/description: two\\nlines\n"), "{all}");
    assert!(all.contains("= clients/0/comm: fio\\x1b[2J\n"), "{all}");
    // Every leaf of the table exists for each of its objects: 1 device, 2 exports, 2 tenants, 1
    // group, 2 clients.
    let listed = answer(target, "ls -r");
    let of = |pattern: &str| match pattern.split('/').next() {
        _ if pattern.ends_with("TUNABLE") => Kind::Cfq.info().tunables.len(),
        Some("exports" | "tenants" | "clients") => 2,
        _ => 1,
    };
    let expected: usize = LEAVES.iter().map(|leaf| of(leaf.path)).sum();
    assert_eq!(listed.lines().count(), expected + 1);
    for path in listed.lines().filter_map(|line| line.strip_prefix("= ")) {
        let reply = answer(target, &format!("get {path}"));
        assert!(
            reply.ends_with("ok\n") || reply == format!("error access: {path} can only be set\n"),
            "{path}: {reply}"
        );
        assert!(!reply.contains('\u{1b}'), "{path}");
    }
}

#[test]
fn a_long_reply_is_sent_in_pieces_and_later_requests_wait() {
    let target = &mut FakeTarget { clients: 10_000, ..FakeTarget::new() };
    let (mut session, watch) = (Session::new(), Watch::new());
    let mut all = Vec::new();
    session.receive(b"get -r clients\nget server/engine\n", &watch, target, &mut all);
    let mut pieces = 1;
    while session.has_more() {
        assert!(!session.wants_input());
        let mut piece = Vec::new();
        session.resume(&watch, target, &mut piece);
        assert!(piece.len() < (64 << 10) + 8192, "{}", piece.len());
        all.extend(piece);
        pieces += 1;
    }
    let all = String::from_utf8(all).unwrap();
    assert!(pieces > 10 && all.contains("= clients/9999/tenant: data%20base\n"), "{pieces}");
    assert!(all.ends_with("ok\n= simulated\nok\n"));
}

#[test]
fn terms_are_set_one_at_a_time() {
    let target = &mut FakeTarget::new();
    for (path, value, expected) in [
        ("weight", "10", "10"),
        ("class", "realtime", "realtime"),
        ("level", "2", "2"),
        ("limit", "50M", "52428800"),
        ("burst", "1M", "1048576"),
        ("limit_iops", "500", "500"),
        ("reserve", "10M", "10485760"),
        ("reserve_request", "65536", "65536"),
    ] {
        let replies = answer(target, &format!("set tenants/backup/{path} {value}\nget tenants/backup/{path}"));
        assert_eq!(replies, format!("ok\n= {expected}\nok\n"), "{path}");
    }
    let terms = &target.tenants["backup"];
    assert_eq!(terms.priority, Priority::new(Class::RealTime, 2).unwrap());
    let bytes = Some(Rate { per_second: 50 << 20, burst: 1 << 20 });
    assert_eq!(terms.limits, Limits { bytes, operations: Some(Rate::new(500)) });
    // As in a configuration: a burst that was set stays, another follows the limit.
    answer(target, "set tenants/backup/limit 1G\nset tenants/backup/limit_iops 70");
    let terms = &target.tenants["backup"];
    let bytes = Some(Rate { per_second: 1 << 30, burst: 1 << 20 });
    assert_eq!(terms.limits, Limits { bytes, operations: Some(Rate { per_second: 70, burst: 7 }) });
    assert_eq!(answer(target, "get tenants/backup/ioprio"), "= realtime: prio 2\nok\n");
    assert_eq!(answer(target, "set tenants/backup/limit max\nget tenants/backup/burst"), "ok\n= -\nok\n");
    assert_eq!(answer(target, "set tenants/backup/reserve 0\nget tenants/backup/reserve"), "ok\n= 0\nok\n");
}

#[test]
fn errors_name_the_valid_paths_and_values() {
    let target = &mut FakeTarget::new();
    for (request, error) in [
        ("set tenants/backup/weight 1001", "value: \"1001\" is out of range: weight takes 1 to 1000"),
        ("set tenants/backup/wieght 5", "path: no \"wieght\" in tenants/backup; did you mean \"weight\"?"),
        ("set tenants/backup/level 3", "value: \"3\" has no effect in the class none: set class first"),
        ("set tenants/backup/burst 5", "value: \"5\" belongs to a limit, and there is none: set limit first"),
        ("set server/version 2", "access: server/version can only be read"),
        ("get clients/0/disconnect", "access: clients/0/disconnect can only be set"),
        ("get tenants/bakcup/weight", "path: no \"bakcup\" in tenants; did you mean \"backup\"?"),
        ("get server/version/x", "path: server/version is not a directory"),
        ("get", "path: \"\" is a directory: `ls ` lists it, `get -r ` reads all below"),
        ("set server/reload", "request: set needs a path and a value"),
        ("set server/reload yes", "value: \"yes\" is not 1, which is all that reload takes"),
        ("put x", "request: unknown request \"put\": the requests are ls, get, set and help"),
        ("help nothing", "path: no path begins with \"nothing\""),
    ] {
        assert_eq!(answer(target, request), format!("error {error}\n"), "{request}");
    }
    target.refuses = Some(Refused::No("the device can reserve 3 MB/s more".into()));
    assert_eq!(answer(target, "set tenants/backup/reserve 1g"), "error refused: the device can reserve 3 MB/s more\n");
    assert_eq!(target.tenants["backup"].reserve, None);
    target.refuses = Some(Refused::Gone);
    assert_eq!(answer(target, "set tenants/backup/weight 7"), "error path: tenants/backup/weight no longer exists\n");
}

#[test]
fn a_warning_follows_ok() {
    let target = &mut FakeTarget::new();
    assert_eq!(
        answer(target, "set devices/sda/queue/scheduler noop\nset tenants/backup/weight 5"),
        "ok\nok: the elevator does not support groups\n"
    );
}

#[test]
fn actions_are_started_with_1() {
    let target = &mut FakeTarget::new();
    assert_eq!(
        answer(
            target,
            "set server/reload 1\nset clients/1/disconnect 1\nset server/log debug\nset groups/vms/weight 9"
        ),
        "ok\n".repeat(4)
    );
    let weight = Change::GroupWeight { group: "vms".into(), weight: 9 };
    assert_eq!(target.changes, [Change::Reload, Change::Disconnect { client: 1 }, Change::Log("debug".into()), weight]);
    assert_eq!(answer(target, "set clients/7/disconnect 1"), "error path: no \"7\" in clients\n");
}

#[test]
fn requests_may_arrive_bytewise_and_their_length_is_bounded() {
    let target = &mut FakeTarget::new();
    let (mut session, watch, mut out) = (Session::new(), Watch::new(), Vec::new());
    for byte in b"get server/uptime\r\nget devices/sda/drive" {
        session.receive(&[*byte], &watch, target, &mut out);
    }
    assert_eq!(out, b"= 61.25\nok\n");
    session.end(&watch, target, &mut out);
    assert_eq!(out, b"= 61.25\nok\n= sata-7200-2006\nok\n");
    let mut out = Vec::new();
    for _ in 0..1000 {
        session.receive(&[b'x'; 5000], &watch, target, &mut out);
        assert!(session.input.len() <= 2 * LINE_BYTES_MAX);
    }
    session.receive(b"\nget server/engine\n\xff\xfe\n", &watch, target, &mut out);
    let reply = String::from_utf8(out).unwrap();
    assert_eq!(
        reply,
        "error request: the line is longer than 4096 bytes\n= simulated\nok\nerror request: the line is not UTF-8\n"
    );
}

#[test]
fn accounts_have_the_form_of_the_kernel() {
    let target = &mut FakeTarget::new();
    assert_eq!(
        answer(target, "get tenants/data%20base/stat"),
        "= sda rbytes=12288 wbytes=0 rios=3 wios=0 dbytes=0 dios=0 fios=0 errors=0 service_usec=3 waiting=4 held=0 in_flight=1 \
         reservation_missed=3\nok\n"
    );
    let tenants = answer(target, "get devices/sda/tenants");
    let end =
        " reservation_missed=3 weight=300 class=none reserve=20971520 limit=max bytes=- time=- entitlement=-\nok\n";
    assert!(tenants.contains("\n= data%20base rbytes=12288 ") && tenants.ends_with(end), "{tenants}");
    let stat = answer(target, "get devices/sda/stat");
    let fields: Vec<_> = stat.lines().next().unwrap().split_whitespace().skip(1).collect();
    // 4 requests of 8 sectors, 3 merges; each of 8 histograms holds 1 to 100 ms: their sum is 5.05
    // s, to 1 %.
    assert_eq!((fields.len(), &fields[..3], &fields[8..10]), (17, &["4", "3", "32"][..], &["2", "7"][..]));
    let read_ms: u64 = fields[3].parse().unwrap();
    assert!((10_000..10_200).contains(&read_ms), "{read_ms}");
    let latency = answer(target, "get tenants/backup/latency");
    assert!(latency.starts_with("= sda read queue count=100 p50=50"), "{latency}");
    let json: serde_json::Value = answer(target, "get tenants/backup/stat.json")
        .strip_prefix("= ")
        .and_then(|reply| serde_json::from_str(reply.lines().next()?).ok())
        .unwrap();
    assert_eq!((&json["latency_ns"]["count"], &json["devices"]["sda"]["bytes"]), (&400.into(), &4096.into()));
    assert!((49.0..52.0).contains(&(json["latency_ns"]["p50"].as_f64().unwrap() / 1e6)), "{json}");
    let histogram = answer(target, "get devices/sda/histogram");
    let buckets = histogram.lines().next().and_then(|line| line.strip_prefix("= backup queue ")).unwrap();
    let latencies = Latencies::from_text(buckets.split(' ')).unwrap();
    let p50_ms = latencies.percentile_ns(50.0).unwrap() as f64 / 1e6;
    assert!(latencies.count() == 400 && (45.0..57.0).contains(&p50_ms), "{p50_ms}");
    assert_eq!(answer(target, "get devices/sda/lateness"), "= count=10 p50=20000 p99=90000 max=150000\nok\n");
}

#[test]
fn shares_cover_the_last_ten_seconds() {
    let target = &mut FakeTarget::new();
    let mut watch = Watch::new();
    let reply = answer_after(&watch, target, "get tenants/backup/share");
    assert_eq!(reply, "= sda bytes=- time=- entitlement=-\nok\n");
    assert_eq!(watch.due_ns(), 0);
    watch.tick(5, target);
    target.served = 1001;
    watch.tick(6, target);
    assert_eq!(watch.due_ns(), 5 + INTERVAL_NS);
    watch.tick(5 + INTERVAL_NS, target);
    // 1000 and 3000 requests of 4 KiB. 20 MiB/s are reserved of 16.4 MB/s: everything.
    let reply = answer_after(&watch, target, "get tenants/backup/share\nget tenants/data%20base/entitlement");
    assert_eq!(reply, "= sda bytes=0.250 time=0.250 entitlement=0.000\nok\n= sda 1.000\nok\n");
    // Nine seconds later it still counts; another second later it does not.
    for second in 2..=10 {
        watch.tick(5 + second * INTERVAL_NS, target);
    }
    assert_eq!(watch.share("sda", "backup").bytes, Some(0.25));
    watch.tick(5 + 11 * INTERVAL_NS, target);
    assert_eq!(watch.share("sda", "backup").bytes, None);
}

#[test]
fn help_lists_every_path() {
    let target = &mut FakeTarget::new();
    let all = answer(target, "help");
    for leaf in LEAVES {
        assert!(all.contains(leaf.path), "{}", leaf.path);
        assert!(
            leaf.meaning.ends_with('.') && !leaf.meaning.contains("  ") && !leaf.meaning.contains('|'),
            "{}",
            leaf.path
        );
        assert!(leaf.get.is_some() || leaf.set.is_some(), "{}", leaf.path);
    }
    let one = answer(target, "help tenants/backup/weight");
    assert_eq!(
        one,
        format!(
            "= tenants/NAME/weight (rw, 1 to 1000): {}\nok\n",
            LEAVES.iter().find(|leaf| leaf.path == "tenants/NAME/weight").unwrap().meaning
        )
    );
}

#[test]
fn a_reply_is_read_up_to_its_end() {
    let mut input: &[u8] = b"= one\n= \nok: beware\nerror path: no \"x\" in y: z\n= cut";
    let reply = read_reply(&mut input).unwrap();
    assert_eq!(reply, Reply { lines: vec!["one".into(), "".into()], warning: Some("beware".into()) });
    let error = read_reply(&mut input).unwrap_err();
    assert_eq!(error.to_string(), "no \"x\" in y: z");
    assert!(matches!(read_reply(&mut input), Err(ReplyError::NoReply(_))));
    assert!(matches!(read_reply(&mut input), Err(ReplyError::Io(_))));
    let mut foreign: &[u8] = b"NBDMAGIC\n";
    assert!(matches!(read_reply(&mut foreign), Err(ReplyError::NoReply(_))));
}

#[test]
fn the_account_of_one_tenant_needs_no_walk_over_all() {
    let mut fake = FakeTarget::new();
    let (mut session, watch, mut out) = (Session::new(), Watch::new(), Vec::new());
    session.receive(b"get -r tenants\n", &watch, &mut fake, &mut out);
    while session.has_more() {
        session.resume(&watch, &mut fake, &mut out);
    }
    let reply = String::from_utf8(out).unwrap();
    assert!(reply.contains("= tenants/data%20base/stat: sda rbytes=12288 "), "{reply}");
    assert_eq!(fake.walks.get(), 0);
}
