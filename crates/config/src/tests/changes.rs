//! Changes that a reload finds.

use super::good;

const BASE: &str = "[[device]]\nname = \"a\"\nbackend = \"mem:1M\"\nelevator = \"bfq\"\n[[export]]\nname = \"x\"\ndevice = \"a\"\n[[group]]\nname = \"g\"\n[[tenant]]\nname = \"t\"\nuid = 1\n[listen]\nsocket = \"/s\"\n";

/// Lists the changes from the configuration `from` to `to`.
fn changes(from: &str, to: &str) -> Vec<String> {
    assert!(BASE.contains(from), "{from}");
    let (old, new) = (good(BASE), good(&BASE.replace(from, to)));
    old.changes(&new).iter().map(ToString::to_string).collect()
}

#[test]
fn each_change_is_found_with_its_need_of_a_restart() {
    let table: &[(&str, &str, &[&str])] = &[
        ("bfq", "bfq", &[]),
        ("mem:1M", "mem:2M", &["device `a`: backend: this needs a restart"]),
        (
            "elevator = \"bfq\"",
            "drive = \"/etc/slow.toml\"\nelevator = \"bfq\"",
            &["device `a`: drive: this needs a restart", "device `a`: bandwidth or position"],
        ),
        ("socket = \"/s\"", "socket = \"/t\"", &["[listen]: this needs a restart", "[control]: this needs a restart"]),
        ("[listen]", "[control]\nsocket = \"/c\"\n[listen]", &["[control]: this needs a restart"]),
        ("[listen]", "[metrics]\naddress = \"127.0.0.1:9\"\n[listen]", &["[metrics]: this needs a restart"]),
        (
            "[listen]",
            "[tls]\ncertificate = \"c\"\nkey = \"k\"\n[listen]",
            &["[tls]: whether TLS is offered: this needs a restart"],
        ),
        ("\"bfq\"", "\"noop\"", &["device `a`: another elevator"]),
        ("\"bfq\"", "\"bfq\"\ntunables = { slice_idle = 0 }", &["device `a`: tunables"]),
        ("\"bfq\"", "\"bfq\"\ndepth = 9", &["device `a`: depth"]),
        ("\"bfq\"", "\"bfq\"\nmerge = false", &["device `a`: merge, request_max or log_slow"]),
        ("\"bfq\"", "\"bfq\"\nbandwidth = \"1M\"", &["device `a`: bandwidth or position"]),
        ("name = \"x\"", "name = \"y\"", &["export `y`: added", "export `x`: removed"]),
        ("name = \"x\"", "name = \"x\"\nread_only = true", &["export `x`: moved, its clients are disconnected"]),
        ("name = \"x\"", "name = \"x\"\ndescription = \"d\"", &["export `x`: description or tenants"]),
        ("name = \"g\"", "name = \"g\"\nweight = 7", &["groups"]),
        ("uid = 1", "uid = 2", &["rules"]),
        ("uid = 1", "uid = 1\nweight = 7", &["tenant `t`: terms"]),
        ("name = \"t\"", "name = \"u\"", &["tenant `u`: added", "tenant `t`: removed", "rules"]),
        (
            "[[export]]",
            "[[device]]\nname = \"b\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"z\"\ndevice = \"b\"\n[[export]]",
            &["device `b`: added", "export `z`: added"],
        ),
        (
            "name = \"a\"\nbackend = \"mem:1M\"\nelevator = \"bfq\"\n[[export]]\nname = \"x\"\ndevice = \"a\"",
            "name = \"b\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"x\"\ndevice = \"b\"",
            &["device `b`: added", "export `x`: moved, its clients are disconnected", "device `a`: removed"],
        ),
    ];
    for (from, to, problem_lines) in table {
        assert_eq!(changes(from, to), *problem_lines, "{from} -> {to}");
    }
}

#[test]
fn certificates_are_always_read_again() {
    let with = |tls: &str| good(&BASE.replace("[listen]", &format!("[tls]\ncertificate = \"c\"\n{tls}[listen]")));
    let located = |old: &str, new: &str| -> Vec<String> {
        with(old).changes(&with(new)).iter().map(ToString::to_string).collect()
    };
    assert_eq!(located("key = \"k\"\n", "key = \"k\"\n"), ["certificates"]);
    assert_eq!(located("key = \"k\"\n", "key = \"l\"\n"), ["certificates"]);
    assert_eq!(
        located("key = \"k\"\n", "key = \"k\"\nrequired = true\n"),
        ["[tls]: `required`: this needs a restart", "certificates"]
    );
}
