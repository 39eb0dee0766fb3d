//! Valid configurations and their parsed values.

use hoistway_core::{Class, Kind, Priority};

use super::{checked, good, warnings};
use crate::{BackendConfig, Listen, Rule};
use hoistway_qos::{Rate, Reserve};

const DISK: &str = "[[device]]\nname = \"sda\"\nbackend = \"file:/srv/disk.img\"\n";

#[test]
fn the_smallest_configuration_has_a_device_and_an_export() {
    let config = good(&format!("{DISK}[[export]]\nname = \"\"\n"));
    let device = &config.devices[0];
    assert_eq!(
        device.backend,
        BackendConfig::File { path: "/srv/disk.img".into(), direct: None, read_only: false, force_in_use: false }
    );
    assert_eq!(
        (device.queue.elevator, device.queue.depth, device.queue.merge, device.queue.request_bytes_max),
        (None, None, true, 1 << 20)
    );
    assert_eq!((device.queue.bandwidth, device.queue.position_ns, device.drive.is_none()), (None, None, true));
    let export = &config.exports[0];
    assert_eq!((export.device.as_str(), export.offset, export.size, export.read_only), ("sda", 0, None, false));
    assert_eq!(
        (config.listen.len(), config.tls.is_none(), config.metrics, config.record.is_none()),
        (0, true, None, true)
    );
    assert_eq!(
        config.listen_or_default(&super::TestEnvironment),
        [Listen::Unix { path: "/run/user/7/hoistway.sock".into(), mode: 0o600 }]
    );
    assert_eq!(config.control, Some("/run/user/7/hoistway-control.sock".into()));
}

#[test]
fn each_key_of_a_device_is_parsed() {
    let config = good(
        "[[device]]\nname = \"a\"\nbackend = \"mem:256M\"\nelevator = \"bfq\"\ntunables = { slice_idle = 0 }\ndepth = 4\nmerge = false\nrequest_max = \"128k\"\n\
         bandwidth = \"150M/s\"\nposition = \"12ms\"\n[[export]]\nname = \"x\"\n",
    );
    let device = &config.devices[0];
    assert_eq!(device.backend, BackendConfig::Memory { bytes: 256 << 20 });
    assert_eq!(
        (device.queue.elevator, device.queue.tunables.as_slice()),
        (Some(Kind::Bfq), &[("slice_idle".to_owned(), 0)][..])
    );
    assert_eq!((device.queue.depth, device.queue.merge, device.queue.request_bytes_max), (Some(4), false, 128 << 10));
    assert_eq!((device.queue.bandwidth, device.queue.position_ns), (Some(150 << 20), Some(12_000_000)));
}

#[test]
fn a_drive_sets_the_size_and_the_figures() {
    let config =
        good("[[device]]\nname = \"a\"\nbackend = \"null\"\ndrive = \"slow.toml\"\n[[export]]\nname = \"x\"\n");
    assert_eq!(
        config.devices[0].backend,
        BackendConfig::Null { bytes: 1 << 30 },
        "a path is relative to the file's folder"
    );
    let config =
        good("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\ndrive = \"sata-7200-2006\"\n[[export]]\nname = \"x\"\n");
    let device = &config.devices[0];
    let described = hoistway_drive::describe(device.drive.as_ref().expect("a drive"));
    let (rate, position) = (described.sequential_inner_mb_s * 1e6, described.random_read_4k_ms * 1e6);
    assert_eq!((device.queue.bandwidth, device.queue.position_ns), (Some(rate as u64), Some(position as u64)));
    assert!(rate > 2e7 && position > 5e6, "it is a disk: {rate} bytes/s, {position} ns");
}

#[test]
fn each_key_of_a_tenant_is_parsed() {
    let config = good(&format!(
        "{DISK}bandwidth = \"150M\"\nposition = \"60us\"\n[[export]]\nname = \"x\"\n[[group]]\nname = \"vms\"\nweight = 200\n[[group]]\nname = \"small\"\nlimit = \"10M\"\nparent = \"vms\"\n\
         [[tenant]]\nname = \"t\"\nexport = \"x*\"\nuid = 1000\npid = 7\ncomm = \"fio\"\ncgroup = \"/a/b/\"\naddress = \"::ffff:10.0.0.0/104\"\n\
         class = \"realtime\"\nlevel = 2\nweight = 300\nreserve = {{ rate = \"20M\", request = \"64k\" }}\nlimit = \"50M\"\nlimit_iops = 500\nburst = \"64M\"\nparent = \"small\"\n"
    ));
    let tenant = &config.tenants[0];
    let network = Rule::Address { network: [10, 0, 0, 0].into(), bits: 8 };
    let text = |text: &str| text.to_owned();
    assert_eq!(
        tenant.rules,
        [
            Rule::Export(text("x*")),
            Rule::Uid(1000),
            Rule::Pid(7),
            Rule::Cgroup(text("/a/b/")),
            Rule::Comm(text("fio")),
            network
        ]
    );
    let terms = &tenant.terms;
    assert_eq!(Some(terms.priority), Priority::new(Class::RealTime, 2));
    assert_eq!((terms.weight, terms.parent.as_deref()), (300, Some("small")));
    assert_eq!(terms.reserve, Some(Reserve { bytes_per_second: 20 << 20, request_bytes: 64 << 10 }));
    assert_eq!(terms.limits.bytes, Some(Rate { per_second: 50 << 20, burst: 64 << 20 }));
    assert_eq!(terms.limits.operations, Some(Rate { per_second: 500, burst: 50 }), "a tenth of a second");
    let groups: Vec<_> =
        config.groups.iter().map(|group| (group.name.as_str(), group.weight, group.parent.as_deref())).collect();
    assert_eq!(config.groups[1].limits.bytes, Some(Rate { per_second: 10 << 20, burst: 1 << 20 }));
    assert_eq!(groups, [("vms", 200, None), ("small", 100, Some("vms"))]);
}

#[test]
fn a_tenant_with_one_plain_rule_has_a_default_name() {
    let rules = [
        ("export = \"db\"", "db"),
        ("uid = 1000", "uid-1000"),
        ("pid = 7", "pid-7"),
        ("comm = \"fio\"", "fio"),
        ("cgroup = \"/system.slice/backup.service\"", "backup.service"),
        ("address = \"10.0.0.0/8\"", "10.0.0.0-8"),
    ];
    for (rule, name) in rules {
        let config = good(&format!("{DISK}[[export]]\nname = \"x\"\n[[tenant]]\n{rule}\n"));
        assert_eq!(config.tenants[0].name, name, "{rule}");
    }
}

#[test]
fn priorities_have_the_defaults_of_ionice() {
    let of = |keys: &str| {
        good(&format!("{DISK}[[export]]\nname = \"x\"\n[[tenant]]\nname = \"t\"\n{keys}\n")).tenants[0].terms.priority
    };
    assert_eq!(of(""), Priority::UNSET);
    assert_eq!(Some(of("level = 6")), Priority::new(Class::BestEffort, 6));
    assert_eq!(Some(of("class = \"best-effort\"")), Priority::new(Class::BestEffort, 4));
    assert_eq!(Some(of("class = \"idle\"")), Priority::new(Class::Idle, 7));
}

#[test]
fn listeners_are_parsed_and_the_control_socket_is_beside_the_first() {
    let config = good(&format!(
        "record = \"log/passed\"\n{DISK}[[export]]\nname = \"x\"\n[listen]\nsocket = [\"/srv/a.sock\", \"b.sock\"]\nmode = \"0660\"\naddress = [\"127.0.0.1\", \"[::1]:7\", \"10.0.0.1\"]\n\
         [tls]\ncertificate = \"cert.pem\"\nkey = \"/k.pem\"\nclient_authority = \"ca.pem\"\nrequired = true\n[metrics]\naddress = \"127.0.0.1:9464\"\n"
    ));
    let unix = |path: &str| Listen::Unix { path: path.into(), mode: 0o660 };
    let tcp = |text: &str| Listen::Tcp(text.parse().expect("an address"));
    assert_eq!(
        config.listen,
        [unix("/srv/a.sock"), unix("/etc/b.sock"), tcp("127.0.0.1:10809"), tcp("[::1]:7"), tcp("10.0.0.1:10809")]
    );
    assert_eq!(config.control, Some("/srv/a-control.sock".into()));
    assert_eq!(
        (config.metrics, config.record),
        (Some("127.0.0.1:9464".parse().expect("an address")), Some("/etc/log/passed".into()))
    );
    let tls = config.tls.expect("TLS");
    assert_eq!((tls.certificate, tls.key), ("/etc/cert.pem".into(), "/k.pem".into()));
    assert_eq!((tls.client_authority, tls.required), (Some("/etc/ca.pem".into()), true));
    let required = |more: &str| {
        let tls = format!("[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n{more}");
        good(&format!("{DISK}[[export]]\nname = \"x\"\n{tls}")).tls.expect("TLS").required
    };
    // A server that asks for certificates requires them unless the file says otherwise.
    let authority = "client_authority = \"ca.pem\"\n";
    assert_eq!([required(""), required(authority)], [false, true]);
    assert!(!required(&format!("{authority}required = false\n")));
    let none = good(&format!("{DISK}[[export]]\nname = \"x\"\n[control]\nsocket = \"none\"\n"));
    assert_eq!(none.control, None);
}

#[test]
fn a_file_is_read_only_if_all_its_exports_are() {
    let read_only = |exports: &str| {
        let config = good(&format!("{DISK}{exports}"));
        matches!(config.devices[0].backend, BackendConfig::File { read_only: true, .. })
    };
    assert!(read_only(
        "[[export]]\nname = \"x\"\nread_only = true\n[[export]]\nname = \"y\"\ndevice = \"sda\"\nread_only = true\n"
    ));
    assert!(!read_only("[[export]]\nname = \"x\"\nread_only = true\n[[export]]\nname = \"y\"\n"));
}

#[test]
fn likely_mistakes_get_a_warning() {
    let supporting = Kind::ALL.iter().filter(|kind| kind.info().groups).map(|kind| format!("`{}`", kind.info().name));
    let supporting: Vec<String> = supporting.collect();
    let weights = "[[tenant]]\nname = \"t\"\nexport = \"x\"\nweight = 300\n";
    assert_eq!(
        warnings(&format!("{DISK}elevator = \"deadline\"\n[[export]]\nname = \"x\"\n{weights}")),
        [format!(
            "/etc/hoistway.toml:4:12: deadline does not support groups: on the device `sda`, `weight` (/etc/hoistway.toml:10:10) has no effect; these elevators support groups: {}",
            supporting.join(", ")
        )]
    );
    good(&format!("{DISK}elevator = \"bfq\"\n[[export]]\nname = \"x\"\n{weights}"));
    assert_eq!(
        warnings(&format!(
            "{DISK}[[export]]\nname = \"x\"\n[[tenant]]\nname = \"all\"\n[[tenant]]\nname = \"t\"\nuid = 1\n"
        )),
        ["/etc/hoistway.toml:8:1: no client can be the tenant `t`: `all` precedes it and has no rule"]
    );
    assert_eq!(
        warnings(&format!("{DISK}[[export]]\nname = \"x\"\n[[tenant]]\ncertificate = \"alice\"\n")),
        ["/etc/hoistway.toml:7:15: no client presents a certificate: [tls] has no `client_authority`"]
    );
    assert_eq!(
        warnings(&format!("{DISK}[[export]]\nname = \"x\"\n[listen]\naddress = \"0.0.0.0\"\ninsecure = true\n")),
        [
            "/etc/hoistway.toml:7:11: 0.0.0.0:10809 is reachable from other machines, and every client that reaches it can read and write in plain text"
        ]
    );
    assert_eq!(
        warnings(&format!(
            "{DISK}[[device]]\nname = \"idle\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"x\"\ndevice = \"sda\"\n"
        )),
        ["/etc/hoistway.toml:4:1: no export is on the device `idle`"]
    );
}

#[test]
fn a_reservation_counts_only_on_reachable_devices() {
    let two = "[[device]]\nname = \"a\"\nbackend = \"mem:1M\"\nbandwidth = \"100M\"\nposition = \"0us\"\n[[device]]\nname = \"b\"\nbackend = \"mem:1M\"\n\
               [[export]]\nname = \"x\"\ndevice = \"a\"\n[[export]]\nname = \"y\"\ndevice = \"b\"\n[[tenant]]\nname = \"t\"\nreserve = \"20M\"\n";
    assert!(checked(two).is_err(), "the figures of b are unknown");
    good(&format!("{two}export = \"x\"\n"));
    good(
        &two.replace("name = \"y\"\n", "name = \"y\"\ntenants = [\"u\"]\n")
            .replace("[[tenant]]\n", "[[tenant]]\nname = \"u\"\nuid = 7\n[[tenant]]\n"),
    );
}

#[test]
fn reservation_tunables_work_with_any_elevator_and_get_a_warning_without_reservations() {
    let disk = format!("{DISK}bandwidth = \"100M\"\nposition = \"0us\"\n");
    let reserving = "[[export]]\nname = \"x\"\n[[tenant]]\nname = \"t\"\nexport = \"x\"\nreserve = \"20M\"\n";
    let of = |tunables: &str| good(&format!("{disk}{tunables}{reserving}")).devices[0].queue.tunables.clone();
    assert_eq!(of("elevator = \"bfq\"\ntunables = { dirs = 0, slice_idle = 1 }\n").len(), 2);
    assert_eq!(
        of("tunables = { excess_wait = 1 }\n"),
        [("excess_wait".to_owned(), 1)],
        "they belong to the reservation layer"
    );
    assert!(checked(&format!("{disk}tunables = {{ rt_headroom = 80 }}\n{reserving}")).is_err(), "10 % are left");
    assert_eq!(
        warnings(&format!("{disk}tunables = {{ dirs = 0 }}\n[[export]]\nname = \"x\"\n")),
        [
            "/etc/hoistway.toml:6:12: `dirs` is a tunable of reservations and has no effect: no tenant has a reservation on the device `sda`"
        ]
    );
}
