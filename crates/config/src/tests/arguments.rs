//! Options of the command line.

use std::path::PathBuf;

use hoistway_core::Kind;

use super::{TestEnvironment, problem_lines};
use crate::{BackendConfig, Config, Draft, Listen, Rule, Section};

fn of(exports: &[&str]) -> Result<Config, Vec<String>> {
    with("", exports)
}

fn with(file: &str, exports: &[&str]) -> Result<Config, Vec<String>> {
    let mut draft = if file.is_empty() { Draft::default() } else { Draft::from_toml(file, "/etc/hoistway.toml") };
    for export in exports {
        draft.export(export, &TestEnvironment);
    }
    problem_lines(draft.check(&TestEnvironment)).map(|checked| checked.config)
}

fn good(exports: &[&str]) -> Config {
    of(exports).unwrap_or_else(|problems| panic!("{exports:?}: {}", problems.join("\n")))
}

#[test]
fn an_export_needs_a_name_and_a_backend() {
    let config = good(&["db=/srv/disk.img"]);
    assert_eq!((config.exports[0].name.as_str(), config.exports[0].device.as_str()), ("db", "disk.img"));
    assert_eq!(
        config.devices[0].backend,
        BackendConfig::File { path: "/srv/disk.img".into(), direct: None, read_only: false, force_in_use: false }
    );
    assert!(config.tenants.is_empty(), "no terms were given");
    for nameless in ["=/srv/disk.img", "/srv/disk.img", "=file:/srv/disk.img"] {
        assert_eq!(good(&[nameless]).exports[0].name, "", "{nameless}");
    }
    let config = good(&["=mem:256M", "b=null:1T"]);
    assert_eq!(config.devices[0].backend, BackendConfig::Memory { bytes: 256 << 20 });
    assert_eq!(
        (config.devices[1].queue.name.as_str(), &config.devices[1].backend),
        ("b", &BackendConfig::Null { bytes: 1 << 40 })
    );
}

#[test]
fn the_keys_of_an_export_reach_their_sections() {
    let config = good(&[
        "db=/srv/disk.img,elevator=bfq,depth=4,bandwidth=150M,position=60us,offset=1M,size=2M,read-only,description=two,, words,weight=300,class=idle,reserve=20M,limit-iops=500",
    ]);
    let (device, export, tenant) = (&config.devices[0], &config.exports[0], &config.tenants[0]);
    assert_eq!(
        (device.queue.elevator, device.queue.depth, device.queue.bandwidth),
        (Some(Kind::Bfq), Some(4), Some(150 << 20))
    );
    assert_eq!((export.offset, export.size, export.read_only), (1 << 20, Some(2 << 20), true));
    assert_eq!(export.description, "two, words");
    assert_eq!((tenant.name.as_str(), tenant.rules.as_slice()), ("db", &[Rule::Export("db".into())][..]));
    assert_eq!((tenant.terms.weight, tenant.terms.limits.operations.map(|rate| rate.per_second)), (300, Some(500)));
    assert_eq!(good(&["=/srv/disk.img,weight=3"]).tenants[0].name, "default-export");
}

#[test]
fn exports_of_one_path_share_its_device() {
    let config = good(&[
        "a=/srv/disk.img,size=1M,elevator=bfq",
        "b=/srv/./disk.img,offset=1M,depth=2,elevator=bfq",
        "c=/srv/other.img",
        "d=mem:1M",
        "e=mem:1M",
    ]);
    let devices: Vec<&str> = config.devices.iter().map(|device| device.queue.name.as_str()).collect();
    assert_eq!(devices, ["disk.img", "other.img", "d", "e"], "each memory is its own");
    assert_eq!((config.devices[0].queue.elevator, config.devices[0].queue.depth), (Some(Kind::Bfq), Some(2)));
    assert_eq!(
        config.exports.iter().map(|export| export.device.as_str()).collect::<Vec<_>>(),
        ["disk.img", "disk.img", "other.img", "d", "e"]
    );
    assert_eq!(
        of(&["a=/srv/disk.img,elevator=bfq", "b=/srv/disk.img,elevator=noop"]).unwrap_err(),
        [
            "--export b=/srv/disk.img,elevator=noop: `elevator` is \"noop\" and \"bfq\" in `--export a=/srv/disk.img,elevator=bfq`, another export of the same device: set it once"
        ]
    );
}

#[test]
fn an_invalid_export_is_quoted_as_written() {
    let table: &[(&str, &str)] = &[
        (
            "a=",
            "--export a=: there is no backend: write NAME=PATH, NAME=mem:SIZE, NAME=null:SIZE or NAME=nbd://HOST/EXPORT",
        ),
        ("a=/none", "--export a=/none: `backend` is \"/none\": entity not found"),
        ("a=mem:1M,weight=0", "--export a=mem:1M,weight=0: `weight` is \"0\": it takes 1 to 1000"),
        ("a=mem:1M,weight", "--export a=mem:1M,weight: `weight` is true: it takes 1 to 1000"),
        ("a=mem:1M,depth=2,depth=3", "--export a=mem:1M,depth=2,depth=3: `depth` is given twice"),
        ("a=mem:1M,size=2M", "--export a=mem:1M,size=2M: the device `a` ends at byte 1048576, the export at 2097152"),
        (
            "a*=mem:1M",
            "--export a*=mem:1M: `name` is \"a*\": a name has no `*`, which stands for any characters in rules, and no control characters",
        ),
        (
            "a/b=mem:1M,weight=3",
            "--export a/b=mem:1M,weight=3: `name` is \"a/b\": a name has letters, digits, `-`, `_` and `.`, and 1 to 64 of them",
        ),
    ];
    for (argument, located) in table {
        let problems = of(&[argument]).unwrap_err();
        assert_eq!(problems.first().map(String::as_str), Some(*located), "{problems:?}");
    }
    let unknown = &of(&["a=mem:1M,read-olny"]).unwrap_err()[0];
    assert!(unknown.starts_with("--export a=mem:1M,read-olny: there is no key `read-olny` in an export (did you mean `read-only`?); there are `drive`, "), "{unknown}");
    assert!(!unknown.contains("`uid`") && !unknown.contains("`backend`"), "{unknown}");
    assert_eq!(
        of(&["a=mem:1M", "a=mem:2M"]).unwrap_err(),
        ["--export a=mem:2M: there is already export `a`: --export a=mem:1M"]
    );
}

const FILE: &str = "[[device]]\nname = \"sda\"\nbackend = \"file:disk.img\"\nelevator = \"bfq\"\ntunables = { slice_idle = 0 }\n\
    [[export]]\nname = \"x\"\nread_only = true\n[listen]\nsocket = \"/srv/a.sock\"\nmode = \"0660\"\n[control]\nsocket = \"/srv/c.sock\"\n";

#[test]
fn the_command_line_overrides_the_file() {
    // The device of the file is the same one, though its path is relative there.
    let file = FILE.replace("file:disk.img", "file:../srv/disk.img");
    assert!(with(&file, &[]).is_err(), "the test environment resolves no .. in paths");
    let config = with(
        &FILE.replace("file:disk.img", "file:/srv/disk.img"),
        &["x=/srv/disk.img,offset=1M", "y=/srv/disk.img,depth=2"],
    );
    let config = config.expect("a configuration");
    assert_eq!(config.devices.len(), 1);
    assert_eq!((config.devices[0].queue.name.as_str(), config.devices[0].queue.depth), ("sda", Some(2)));
    let exports: Vec<_> =
        config.exports.iter().map(|export| (export.name.as_str(), export.offset, export.read_only)).collect();
    assert_eq!(exports, [("x", 1 << 20, false), ("y", 0, false)]);
}

#[test]
fn options_set_keys_of_all_sections() {
    let mut draft = Draft::from_toml(&FILE.replace("file:disk.img", "file:/srv/disk.img"), "/etc/hoistway.toml");
    draft.export("m=mem:1M,elevator=noop", &TestEnvironment);
    draft.set(Section::Device, "elevator", "--elevator", "deadline");
    draft.set_tunable(Kind::Deadline, "writes_starved", 4);
    draft.listen(&[PathBuf::from("/srv/b.sock")], &["127.0.0.1".to_owned()]);
    draft.set(Section::Control, "socket", "--control", "none");
    draft.set(Section::Tls, "certificate", "--tls-cert", "c.pem");
    draft.set(Section::Tls, "key", "--tls-key", "k.pem");
    draft.switch_on(Section::Tls, "required", "--tls-required");
    let config = problem_lines(draft.check(&TestEnvironment))
        .unwrap_or_else(|problems| panic!("{}", problems.join("\n")))
        .config;
    let elevators: Vec<_> = config.devices.iter().map(|device| device.queue.elevator).collect();
    assert_eq!(elevators, [Some(Kind::Deadline), Some(Kind::Noop)], "an export's own elevator stays");
    assert_eq!(config.devices[0].queue.tunables, [("writes_starved".to_owned(), 4)], "bfq's went with it");
    let tcp = Listen::Tcp("127.0.0.1:10809".parse().expect("an address"));
    assert_eq!(config.listen, [Listen::Unix { path: "/srv/b.sock".into(), mode: 0o660 }, tcp]);
    assert_eq!(config.control, None);
    assert!(config.tls.is_some_and(|tls| tls.required && tls.certificate.as_os_str() == "c.pem"));
}

#[test]
fn reservations_can_be_removed_for_a_calibration() {
    let mut draft = Draft::default();
    draft.export("m=mem:1M,reserve=1M,weight=7", &TestEnvironment);
    assert!(draft.check(&TestEnvironment).is_err(), "nothing is known of the device");
    draft.without_reservations();
    let config = problem_lines(draft.check(&TestEnvironment))
        .unwrap_or_else(|problems| panic!("{}", problems.join("\n")))
        .config;
    assert_eq!((config.tenants[0].terms.reserve, config.tenants[0].terms.weight), (None, 7));
}

#[test]
fn a_tunable_of_an_elevator_that_no_device_has_is_refused() {
    let mut draft = Draft::default();
    draft.export("m=mem:1M", &TestEnvironment);
    draft.set_tunable(Kind::Bfq, "slice_idle", 0);
    draft.set(Section::Metrics, "address", "--metrics", "here");
    assert_eq!(
        problem_lines(draft.check(&TestEnvironment)).unwrap_err(),
        [
            "--set bfq.slice_idle=0: no device has the elevator bfq: add --elevator bfq",
            "--metrics here: `address` is \"here\": it takes an IP address and a port, such as 127.0.0.1:9464",
        ]
    );
}

#[test]
fn a_remote_export_is_an_nbd_uri_with_its_keys() {
    let config = of(&["vm=nbd://store:1234/vm,connections=2,timeout=5m,unflushed=1M"]).expect("it is valid");
    let BackendConfig::Remote(remote) = &config.devices[0].backend else { panic!("{:?}", config.devices[0].backend) };
    assert_eq!((remote.connections, remote.timeout_ns, remote.unflushed_bytes), (2, 300_000_000_000, 1 << 20));
    assert_eq!(config.devices[0].queue.elevator, Some(hoistway_core::Kind::Noop));
    assert_eq!(config.devices[0].queue.name, "vm");
    // A URI has equals signs of its own; two exports of one URI share its device.
    let uri = "nbd+unix:///x?socket=/run/store";
    let config = of(&[uri, &format!("other={uri},read-only")]).expect("they are valid");
    assert_eq!((config.devices.len(), config.exports.len()), (1, 2));
    assert_eq!((config.exports[0].name.as_str(), config.exports[1].name.as_str()), ("", "other"));
}

#[test]
fn invalid_remote_exports_are_reported() {
    let table: &[(&str, &str)] = &[
        ("a=nbd:///x?sock=/s", "`backend` is \"nbd:///x?sock=/s\": unknown key \"sock\""),
        ("a=nbd+unix:///x", "the socket is missing: add ?socket=PATH after the export"),
        ("a=nbds://h/x", "TLS needs the authority of the remote's certificate"),
        ("a=nbds://h/x?tls-type=psk,tls-authority=ca.pem", "only certificates are supported"),
        ("a=nbd://h/x,tls-authority=ca.pem", "`tls_authority` is given, and the URI does not use TLS"),
        ("a=nbds://h/x,tls-authority=ca.pem,tls-key=k.pem", "`tls_certificate` and `tls_key` belong together"),
        ("a=nbd://h/x,timeout=1ms", "`timeout` is \"1ms\": it takes a time from 1s to 1h"),
        ("a=nbd://h/x,connections=0", "`connections` is \"0\": it takes 1 to 16"),
        ("a=nbd://h/x,force-in-use", "`force_in_use` is given: only files and block devices have it"),
        ("a=mem:1M,connections=2", "`connections` is given: only exports of other NBD servers have it"),
    ];
    for (argument, text) in table {
        let problems = of(&[argument]).unwrap_err();
        assert!(problems.iter().any(|problem| problem.contains(text)), "{argument}: {problems:?}");
    }
}
