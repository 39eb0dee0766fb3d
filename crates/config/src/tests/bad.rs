//! Invalid configurations, each with its exact messages.

use hoistway_core::Kind;
use hoistway_drive::Profile;

use super::checked;
use crate::keys::Section;
use crate::names::list;

/// The two lines that every configuration needs, so that the tables below begin at line 3.
const BASE: &str = "device = [{ name = \"sda\", backend = \"file:/srv/disk.img\" }]\nexport = [{ name = \"a\" }]\n";
/// The same two lines without the export.
const DEVICE: &str = "device = [{ name = \"sda\", backend = \"file:/srv/disk.img\" }]\n\n";

fn problems_of(text: &str) -> Vec<String> {
    match checked(text) {
        Ok(_) => panic!("nothing is wrong with\n{text}"),
        Err(problems) => problems.iter().map(|line| line.replace("/etc/hoistway.toml:", "")).collect(),
    }
}

/// Checks the messages of each configuration of a table, appended to `base`.
fn compare(base: &str, table: &[(&str, &str)]) {
    for (text, located) in table {
        assert_eq!(problems_of(&format!("{base}{text}")).join("\n"), *located, "of\n{text}");
    }
}

#[test]
fn invalid_devices_are_reported() {
    let of = |text: &str| problems_of(&format!("{text}\n[[export]]\nname = \"a\"\n")).join("\n");
    let backends = "a backend is \"file:PATH\", \"mem:SIZE\", \"null:SIZE\" or an NBD URI (\"nbd://HOST/EXPORT\")";
    let name = "a name has letters, digits, `-`, `_` and `.`, and 1 to 64 of them";
    let table: &[(&str, String)] = &[
        ("[[device]]\nname = \"a\"", format!("1:1: [[device]] has no `backend`: {backends}")),
        ("[[device]]\nbackend = \"mem:1G\"", "1:1: [[device]] has no `name`: exports refer to the device by its name".into()),
        ("[[device]]\nname = \"a b\"\nbackend = \"mem:1G\"", format!("2:8: `name` is \"a b\": {name}")),
        ("[[device]]\nname = \"..\"\nbackend = \"mem:1G\"", format!("2:8: `name` is \"..\": {name}")),
        ("[[device]]\nname = 7\nbackend = \"mem:1G\"", format!("2:8: `name` is 7: {name}")),
        ("[[device]]\nname = \"a\"\nbackend = \"men:1G\"", format!("3:11: `backend` is \"men:1G\": {backends}")),
        ("[[device]]\nname = \"a\"\nbackend = \"file:\"", format!("3:11: `backend` is \"file:\": {backends}")),
        ("[[device]]\nname = \"a\"\nbackend = \"mem\"", "3:11: `backend` is \"mem\": write the size, as in \"mem:1G\"".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:0\"", "3:11: `backend` is \"mem:0\": a size is above 0 and at most 2^63 - 1 bytes".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"null:1X\"", "3:11: `backend` is \"null:1X\": `X` is not a unit; the units are k, m, g, t, p, each also as ki or kib, and b".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"null:1.5G\"", "3:11: `backend` is \"null:1.5G\": it takes whole numbers; use a smaller unit, as in 1500ms for 1.5s or 1536k for 1.5m".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1000\"", "3:11: `backend` is \"mem:1000\": it takes whole sectors, multiples of 512 bytes".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"file:/srv/none\"", "3:11: `backend` is \"file:/srv/none\": entity not found".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\ndirect = true", "4:10: `direct` is true: only files have a page cache to bypass".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\ndirect = 1", "4:10: `direct` is 1: it takes true or false".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\ndepth = 0", "4:9: `depth` is 0: it takes 1 to 4096".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\ndepth = 99999999999999999999999", "4:9: `depth` is 99999999999999999999999: it takes 1 to 4096".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\ndepth = 1.5", "4:9: `depth` is 1.5: it takes 1 to 4096".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\nrequest_max = \"64M\"", "4:15: `request_max` is \"64M\": it takes 4k to 32m".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\nrequest_max = 5000", "4:15: `request_max` is 5000: it takes whole sectors, multiples of 512 bytes".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\nbandwidth = \"fast\"", "4:13: `bandwidth` is \"fast\": it takes a rate in bytes a second such as 150M".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\nbandwidth = 0", "4:13: `bandwidth` is 0: it takes a rate above 0".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\nposition = 12", "4:12: `position` is 12: it takes a time of at most 1s, with its unit, such as 12ms or 60us".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\nposition = \"12\"", "4:12: `position` is \"12\": it takes a time of at most 1s, with its unit, such as 12ms or 60us".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\nposition = \"2s\"", "4:12: `position` is \"2s\": it takes a time of at most 1s, with its unit, such as 12ms or 60us".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:2G\"\ndrive = \"/etc/slow.toml\"", "3:11: the backend has 2147483648 bytes and the drive only 1073741824: make the backend no larger".into()),
        ("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\ndrive = \"/etc/none.toml\"", "4:9: `drive` is \"/etc/none.toml\": the profile cannot be read: entity not found".into()),
    ];
    for (text, located) in table {
        assert_eq!(of(text), *located, "of\n{text}");
    }
    let broken = of("[[device]]\nname = \"a\"\nbackend = \"mem:1G\"\ndrive = \"broken.toml\"");
    assert!(
        broken.starts_with("4:9: `drive` is \"broken.toml\": /etc/broken.toml:1:8: invalid type: integer"),
        "{broken}"
    );
}

#[test]
fn unknown_elevators_drives_and_tunables_get_a_suggestion() {
    let of = |keys: &str| {
        problems_of(&format!("[[device]]\nname = \"a\"\nbackend = \"mem:1M\"\n{keys}\n[[export]]\nname = \"a\"\n"))
            .join("\n")
    };
    let near = "4:12: `elevator` is \"dedline\": there is no such elevator (did you mean `deadline`?); `hoistway elevators` lists all";
    assert_eq!(of("elevator = \"dedline\""), format!("{near} {}", Kind::ALL.len()));
    let near = "4:9: `drive` is \"nvme\": there is no such drive (did you mean `ssd-nvme-tlc` or `ssd-nvme-tlc-mixed`?); `hoistway drives` lists all";
    assert_eq!(of("drive = \"nvme\""), format!("{near} {}, and any FILE.toml is one", Profile::names().count()));
    let tunables = list(Kind::Bfq.info().tunables.iter().map(|row| row.name));
    let near = "5:14: bfq has no tunable `slice_idel` (did you mean `slice_idle`?); it has ";
    assert_eq!(of("elevator = \"bfq\"\ntunables = { slice_idel = 0 }"), format!("{near}{tunables}"));
    let idle = Kind::Bfq.info().tunables.iter().find(|row| row.name == "slice_idle").expect("bfq idles");
    let range = format!("5:27: `slice_idle` is -1: it takes {} to {} ({})", idle.min, idle.max, idle.unit.label());
    assert_eq!(of("elevator = \"bfq\"\ntunables = { slice_idle = -1 }"), range);
    assert_eq!(
        of("tunables = { slice_idle = 0 }"),
        "4:12: `tunables` are given without an `elevator`: name the elevator that they belong to"
    );
    assert_eq!(
        of("elevator = \"bfq\"\ntunables = \"slice_idle=0\""),
        "5:12: `tunables` is \"slice_idle=0\": it takes a table, as { slice_idle = 0 }"
    );
}

#[test]
fn invalid_exports_are_reported() {
    compare(
        DEVICE,
        &[
            (
                "[[export]]\ndevice = \"sda\"",
                "3:1: [[export]] has no `name`: clients request an export by its name; \"\" is the default export",
            ),
            (
                "[[export]]\nname = \"a*\"",
                "4:8: `name` is \"a*\": a name has no `*`, which stands for any characters in rules, and no control characters",
            ),
            (
                "[[export]]\nname = \"a\"\ndevice = \"sdb\"",
                "5:10: there is no device `sdb` (did you mean `sda`?); there are `sda`",
            ),
            (
                "[[export]]\nname = \"a\"\noffset = 100",
                "5:10: `offset` is 100: it takes whole sectors, multiples of 512 bytes",
            ),
            ("[[export]]\nname = \"a\"\noffset = -512", "5:10: `offset` is -512: it takes a size such as 256M or 4k"),
            ("[[export]]\nname = \"a\"\nsize = 0", "5:8: `size` is 0: an export has at least one sector"),
            (
                "[[export]]\nname = \"a\"\nsize = \"2G\"",
                "5:8: the device `sda` ends at byte 1073741824, the export at 2147483648",
            ),
            (
                "[[export]]\nname = \"a\"\noffset = \"1G\"",
                "5:10: the device `sda` ends at byte 1073741824, before `offset` 1073741824",
            ),
            (
                "[[export]]\nname = \"a\"\noffset = \"512M\"\nsize = \"15000p\"",
                "6:8: the device `sda` ends at byte 1073741824, the export at 16888498603176230912",
            ),
            (
                "[[export]]\nname = \"a\"\nread_only = \"perhaps\"",
                "5:13: `read_only` is \"perhaps\": it takes true or false",
            ),
            ("[[export]]\nname = \"a\"\ntenants = [\"x\"]", "5:12: there is no tenant `x`; there are none"),
            ("[[export]]\nname = \"a\"\n[[export]]\nname = \"a\"", "6:8: there is already export `a`: 4:8"),
            ("[export]\nname = \"a\"", "3:1: `export` is no list of tables: write [[export]]"),
        ],
    );
    let two = "device = [{ name = \"a\", backend = \"mem:1M\" }, { name = \"b\", backend = \"mem:1M\" }]\n";
    compare(
        two,
        &[(
            "[[export]]\nname = \"x\"",
            "2:1: [[export]] has no `device`: with more than one device, an export names the device that it is on",
        )],
    );
}

#[test]
fn invalid_tenants_are_reported() {
    compare(
        BASE,
        &[
            (
                "[[tenant]]\nweight = 3",
                "3:1: [[tenant]] has no `name`: no name follows from its rules; letters, digits, `-`, `_` and `.` make one",
            ),
            (
                "[[tenant]]\nexport = \"vm-*\"",
                "3:1: [[tenant]] has no `name`: no name follows from its rules; letters, digits, `-`, `_` and `.` make one",
            ),
            (
                "[[tenant]]\nuid = 1\ncomm = \"fio\"",
                "3:1: [[tenant]] has no `name`: no name follows from its rules; letters, digits, `-`, `_` and `.` make one",
            ),
            ("[[tenant]]\nname = \"default\"", "4:8: the name `default` is reserved for clients that no rule matches"),
            ("[[tenant]]\nname = \"t\"\nuid = -1", "5:7: `uid` is -1: it takes 0 to 4294967294"),
            ("[[tenant]]\nname = \"t\"\nuid = \"root\"", "5:7: `uid` is \"root\": it takes 0 to 4294967294"),
            ("[[tenant]]\nname = \"t\"\npid = 0", "5:7: `pid` is 0: it takes 1 to 4194304"),
            (
                "[[tenant]]\nname = \"t\"\ncomm = \"qemu-system-x86_64\"",
                "5:8: `comm` is \"qemu-system-x86_64\": the kernel keeps 15 bytes of a command's name: write \"qemu-system-x86\"",
            ),
            (
                "[[tenant]]\nname = \"t\"\ncgroup = \"system.slice\"",
                "5:10: `cgroup` is \"system.slice\": it takes a path from the root, such as /system.slice/backup.service",
            ),
            (
                "[[tenant]]\nname = \"t\"\naddress = \"10.1.0.0/8\"",
                "5:11: `address` is \"10.1.0.0/8\": the network of 8 bits is 10.0.0.0/8",
            ),
            (
                "[[tenant]]\nname = \"t\"\naddress = \"10.0.0.0/33\"",
                "5:11: `address` is \"10.0.0.0/33\": an address of this kind has 32 bits",
            ),
            (
                "[[tenant]]\nname = \"t\"\naddress = \"here\"",
                "5:11: `address` is \"here\": it takes an IP address or a network, such as 192.168.0.7, 10.0.0.0/8 or fd00::/8",
            ),
        ],
    );
}

#[test]
fn invalid_terms_are_reported() {
    compare(
        BASE,
        &[
            (
                "[[tenant]]\nname = \"t\"\nclass = \"rt\"",
                "5:9: `class` is \"rt\": it takes \"realtime\", \"best-effort\" or \"idle\"",
            ),
            ("[[tenant]]\nname = \"t\"\nlevel = 8", "5:9: `level` is 8: it takes 0 to 7"),
            (
                "[[tenant]]\nname = \"t\"\nclass = \"idle\"\nlevel = 3",
                "6:9: `level` is 3: the class idle has no levels",
            ),
            ("[[tenant]]\nname = \"t\"\nweight = 0", "5:10: `weight` is 0: it takes 1 to 1000"),
            ("[[tenant]]\nname = \"t\"\nweight = 1001", "5:10: `weight` is 1001: it takes 1 to 1000"),
            ("[[tenant]]\nname = \"t\"\nlimit = 0", "5:9: `limit` is 0: it takes a rate above 0"),
            ("[[tenant]]\nname = \"t\"\nlimit_iops = 0", "5:14: `limit_iops` is 0: it takes 1 or more"),
            ("[[tenant]]\nname = \"t\"\nburst = \"1M\"", "5:9: `burst` is given without `limit`"),
            ("[[tenant]]\nname = \"t\"\nlimit = \"1M\"\nburst = 0", "6:9: `burst` is 0: it takes 1 or more"),
            ("[[tenant]]\nname = \"t\"\nburst_iops = 7", "5:14: `burst_iops` is given without `limit_iops`"),
            ("[[tenant]]\nname = \"t\"\nparent = \"g\"", "5:10: there is no group `g`; there are none"),
            ("[[tenant]]\nname = \"t\"\n[[tenant]]\nname = \"t\"", "6:8: there is already tenant `t`: 4:8"),
            (
                "[[tenant]]\nname = \"t\"\nreserve = \"20G\"",
                "5:11: `reserve` is \"20G\": at most 10000000000 bytes a second can be reserved",
            ),
            (
                "[[tenant]]\nname = \"t\"\nreserve = { request = \"4k\" }",
                "5:11: `reserve` is a table: it takes a rate, as { rate = \"20M\", request = \"64k\" }",
            ),
            (
                "[[tenant]]\nname = \"t\"\nreserve = { rate = \"1M\", request = 100 }",
                "5:11: `reserve` is a table: its `request` is 100: it takes 512 to 1g",
            ),
            (
                "[[tenant]]\nname = \"t\"\nreserve = { rate = \"1M\", size = 100 }",
                "5:11: `reserve` is a table: it has no key `size`; there are `rate`, `request`",
            ),
            (
                "[[tenant]]\nname = \"t\"\nreserve = \"1M\"",
                "5:11: `reserve` needs the `bandwidth` and the `position` of the device `sda`; `hoistway serve --calibrate` measures them",
            ),
        ],
    );
}

#[test]
fn invalid_groups_are_reported() {
    compare(
        BASE,
        &[
            ("[[group]]\nweight = 7", "3:1: [[group]] has no `name`: tenants refer to the group by its name"),
            ("[[group]]\nname = \"root\"", "4:8: `name` is \"root\": this name is reserved for the root of all groups"),
            (
                "[[group]]\nname = \"vms\"\nparent = \"vm\"",
                "5:10: there is no group `vm` (did you mean `vms`?); there are `vms`",
            ),
            ("[[group]]\nname = \"a\"\nparent = \"a\"", "5:10: groups must not form a circle: a < a"),
            (
                "[[group]]\nname = \"a\"\nparent = \"b\"\n[[group]]\nname = \"b\"\nparent = \"c\"\n[[group]]\nname = \"c\"\nparent = \"b\"",
                "8:10: groups must not form a circle: b < c < b",
            ),
        ],
    );
}

#[test]
fn a_device_is_not_reserved_beyond_its_capacity() {
    // 20 MB/s in requests of 125,000 bytes take a fifth of the bandwidth, and 160 positionings of
    // 2.5 ms a second, 40 %: 60 % of the device. 25 of the 85 % are left, which suffices for the 24
    // % of 8 MB/s.
    let device = "[[device]]\nname = \"a\"\nbackend = \"mem:1M\"\nbandwidth = 100_000_000\nposition = \"2500us\"\n[[export]]\nname = \"x\"\n";
    let tenant = |name: &str, rate: u64, request: u64| {
        format!("[[tenant]]\nname = \"{name}\"\nreserve = {{ rate = {rate}, request = {request} }}\n")
    };
    let text = format!("{device}{}{}", tenant("one", 20_000_000, 125_000), tenant("two", 20_000_000, 125_000));
    assert_eq!(
        problems_of(&text),
        [
            "13:11: `reserve` of 20000000 bytes/s in requests of 125000 bytes takes 60.0 % of the device `a`, and 25.0 % are left of the 85 % that may be reserved"
        ]
    );
    let fits = format!("{device}{}{}", tenant("one", 20_000_000, 125_000), tenant("two", 8_000_000, 125_000));
    assert!(checked(&fits).is_ok());
    // Small requests need more positioning: 8 MB/s in 4,000 bytes are 2000 requests a second, which
    // take 5 s.
    let small = problems_of(&format!("{device}{}", tenant("two", 8_000_000, 4_000)));
    assert!(small[0].contains("takes 508.0 %"), "{small:?}");
    // An arm returns over the disk twice a second: 5/4 * 2 * 10 ms are 2.5 %.
    let arm = device.replace("mem:1M", "file:/srv/disk.img").replace("2500us", "10ms");
    let arm = problems_of(&format!("{arm}{}", tenant("t", 20_000_000, 125_000)));
    assert!(arm[0].contains("takes 180.0 % of the device `a`, and 82.5 % are left"), "{arm:?}");
}

#[test]
fn open_or_contradictory_listeners_are_refused() {
    let open = "is reachable from other machines: require TLS ([tls] required = true, --tls-required), listen on 127.0.0.1 or [::1], or set insecure = true (--insecure)";
    compare(
        BASE,
        &[
            ("[listen]\naddress = \"0.0.0.0\"", format!("4:11: 0.0.0.0:10809 {open}").leak()),
            ("[listen]\naddress = \"[::]:99\"", format!("4:11: [::]:99 {open}").leak()),
            (
                "[listen]\naddress = \"192.168.0.1:99\"\n[tls]\ncertificate = \"c\"\nkey = \"k\"",
                format!("4:11: 192.168.0.1:99 {open}").leak(),
            ),
            (
                "[listen]\naddress = \"localhost\"",
                "4:11: `address` is \"localhost\": it takes an IP address, with a port if it is not 10809, such as 127.0.0.1:10809 or [::1]",
            ),
            ("[listen]\nmode = \"0888\"", "4:8: `mode` is \"0888\": it takes octal digits in quotes, such as \"0660\""),
            ("[listen]\nmode = 660", "4:8: `mode` is 660: it takes octal digits in quotes, such as \"0660\""),
            ("[listen]\nsocket = \"\"", "4:10: `socket` is \"\": it takes a path"),
            ("[listen]\nsocket = [\"/a\", \"/a\"]", "4:17: this address is listed twice"),
            (
                "[listen]\nsocket = \"/a\"\n[control]\nsocket = \"/a\"",
                "6:10: the control socket has the path of a client socket",
            ),
            ("[tls]\nkey = \"k\"", "3:1: [tls] has no `certificate`: TLS takes both, each the path of a PEM file"),
            (
                "[tls]\nrequired = true",
                "3:1: [tls] has no `certificate`: TLS takes both, each the path of a PEM file\n3:1: [tls] has no `key`: TLS takes both, each the path of a PEM file",
            ),
            (
                "[metrics]\naddress = \"9464\"",
                "4:11: `address` is \"9464\": it takes an IP address and a port, such as 127.0.0.1:9464",
            ),
            (
                "[listen]\nport = 10809",
                format!(
                    "4:1: there is no key `port` in [listen]; there are {}",
                    list(Section::Listen.keys().map(|key| key.name))
                )
                .leak(),
            ),
        ],
    );
}

#[test]
fn malformed_files_are_reported() {
    let tops = list(Section::ALL.into_iter().map(Section::name).filter(|name| !name.is_empty()).chain(["record"]));
    assert_eq!(problems_of(""), ["1:1: nothing is exported: write an [[export]], or --export NAME=PATH"]);
    assert_eq!(
        problems_of(&format!("{BASE}devices = 1")),
        [format!("3:1: there is no key `devices` (did you mean `device`?); there are {tops}")]
    );
    assert_eq!(
        problems_of(&format!("{BASE}weight = 1")),
        [format!(
            "3:1: there is no key `weight` outside of tables: it belongs in [[tenant]] or [[group]]; there are {tops}"
        )]
    );
    assert_eq!(problems_of(&format!("{BASE}tls = 1")), ["3:7: `tls` is no table: write [tls]"]);
    assert_eq!(problems_of(&format!("{BASE}tenant = [1]")), ["3:11: `tenant` is no table: write [[tenant]]"]);
    let known = list(Section::Tenant.keys().map(|key| key.name));
    assert_eq!(
        problems_of(&format!("{BASE}[[tenant]]\nname = \"t\"\nwieght = 7")),
        [format!("5:1: there is no key `wieght` in [[tenant]] (did you mean `weight`?); there are {known}")]
    );
    let twice = problems_of("a = 1\na = 2\n[device");
    assert!(twice.len() > 1 && twice.iter().all(|line| line.starts_with("2:") || line.starts_with("3:")), "{twice:?}");
}

#[test]
fn problems_of_all_sections_are_reported_together() {
    let text = "[[device]]\nname = \"a\"\nbackend = \"mem:x\"\nelevator = 7\n[[device]]\nname = \"a\"\nbackend = \"mem:1M\"\n[[export]]\nname = \"e\"\ndevice = \"b\"\nsize = 3\n";
    assert_eq!(
        problems_of(text),
        [
            "4:12: `elevator` is 7: it takes an elevator's name, in quotes",
            "3:11: `backend` is \"mem:x\": it takes a size such as 256M or 4k",
            "11:8: `size` is 3: it takes whole sectors, multiples of 512 bytes",
            "6:8: there is already device `a`: 2:8",
            "10:10: there is no device `b`; there are `a`, `a`",
        ]
    );
}

#[test]
fn two_devices_on_one_file_are_refused() {
    let text = "device = [{ name = \"a\", backend = \"file:/srv/disk.img\" }, { name = \"b\", backend = \"file:/srv/./disk.img\" }]\nexport = [{ name = \"x\", device = \"a\" }, { name = \"y\", device = \"b\" }]\n";
    assert_eq!(problems_of(text), ["1:83: the device `a` has the same storage: make two exports of one device"]);
}
