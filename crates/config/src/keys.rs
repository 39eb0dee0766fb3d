//! The keys of a configuration, declared once: what is read, what a typing error is compared with,
//! and the reference in docs/serve-config.md.

use std::fmt::Write as _;

pub mod mount;

/// A table of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// The file itself.
    Top,
    /// `[[device]]`.
    Device,
    /// `[[export]]`.
    Export,
    /// `[[group]]`.
    Group,
    /// `[[tenant]]`.
    Tenant,
    /// `[listen]`.
    Listen,
    /// `[tls]`.
    Tls,
    /// `[control]`.
    Control,
    /// `[metrics]`.
    Metrics,
    /// The file itself, of a mount.
    MountTop,
    /// `[mount]`.
    Mount,
    /// `[[device]]` of a mount.
    MountDevice,
    /// `[[tenant]]` of a mount.
    MountTenant,
    /// `[control]` of a mount.
    MountControl,
}

impl Section {
    /// All of them that a mount's configuration has, in the order of its reference.
    pub const MOUNT: [Section; 7] = [
        Section::Mount,
        Section::MountDevice,
        Section::MountTenant,
        Section::Group,
        Section::MountControl,
        Section::Metrics,
        Section::MountTop,
    ];

    /// All of them that a server's configuration has, in the order of the reference.
    pub const ALL: [Section; 9] = [
        Section::Device,
        Section::Export,
        Section::Tenant,
        Section::Group,
        Section::Listen,
        Section::Tls,
        Section::Control,
        Section::Metrics,
        Section::Top,
    ];

    /// What its table is called; the file itself has no name.
    pub const fn name(self) -> &'static str {
        match self {
            Section::Top | Section::MountTop => "",
            Section::Mount => "mount",
            Section::Device | Section::MountDevice => "device",
            Section::Export => "export",
            Section::Group => "group",
            Section::Tenant | Section::MountTenant => "tenant",
            Section::Listen => "listen",
            Section::Tls => "tls",
            Section::Control | Section::MountControl => "control",
            Section::Metrics => "metrics",
        }
    }

    /// Whether there can be many: `[[name]]`.
    pub const fn is_list(self) -> bool {
        matches!(
            self,
            Section::Device
                | Section::Export
                | Section::Group
                | Section::Tenant
                | Section::MountDevice
                | Section::MountTenant
        )
    }

    /// As it is written above its keys.
    pub fn heading(self) -> String {
        match (self, self.is_list()) {
            (Section::Top | Section::MountTop, _) => "the file itself".into(),
            (section, true) => format!("[[{}]]", section.name()),
            (section, false) => format!("[{}]", section.name()),
        }
    }

    /// Its keys.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> + Clone {
        KEYS.iter().chain(mount::KEYS).filter(move |key| key.section == self)
    }
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The table that it is in.
    pub section: Section,
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What it is.
    pub what: &'static str,
}

pub(crate) const fn key(
    section: Section,
    name: &'static str,
    takes: &'static str,
    default: &'static str,
    what: &'static str,
) -> Key {
    Key { section, name, takes, default, what }
}

/// All keys.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key(Section::Device, "name", "letters, digits, `-`, `_`, `.`; at most 64", "required", "What exports, the control socket and metrics call it."),
    key(Section::Device, "backend", "`\"file:PATH\"`, `\"mem:SIZE\"`, `\"null:SIZE\"`", "required", "Where its bytes lie: a file or block device; memory, all zeroes at the start; nothing (reads are zeroes, writes are lost). With a drive, `\"mem\"` and `\"null\"` may leave the size out and have the drive's."),
    key(Section::Device, "drive", "a name that `hoistway drives` lists, or the path of a profile", "none", "The model that says how long each request takes."),
    key(Section::Device, "elevator", "a name that `hoistway elevators` lists", "`bfq` where the device rotates, else `fiops`", "The elevator."),
    key(Section::Device, "tunables", "a table: `{ slice_idle = 0 }`", "the elevator's", "Tunables of the elevator, in the kernel's names and units; `hoistway elevators NAME` lists them. Those of reservations (`excess`, `dirs`, ...) go with any elevator."),
    key(Section::Device, "depth", "1 to 4096", "the backend's", "How many requests it is given at once. There is fairness only among those that wait above it."),
    key(Section::Device, "direct", "`true`, `false`", "where the file and the request allow", "Whether a file is read and written past the page cache; `true` refuses to start where it cannot be."),
    key(Section::Device, "merge", "`true`, `false`", "`true`", "Whether neighbouring requests that wait become one."),
    key(Section::Device, "request_max", "a size: 4k to 32M, whole sectors", "`\"1M\"`", "The largest request that the device is given; longer ones are split, and merging ends there."),
    key(Section::Device, "bandwidth", "a rate", "a drive's slowest; else none", "What it sustains at its slowest, for the admission of reservations."),
    key(Section::Device, "position", "a time, at most 1s", "a drive's mean; else none", "What positioning costs a request, for the same."),

    key(Section::Export, "name", "at most 4096 bytes, without `*`", "required", "What clients ask for. The empty name is the export of clients that name none."),
    key(Section::Export, "device", "a device's name", "the only device", "Where it lies."),
    key(Section::Export, "offset", "a size, whole sectors", "0", "Its first byte on the device."),
    key(Section::Export, "size", "a size, whole sectors", "to the device's end", "Its length."),
    key(Section::Export, "read_only", "`true`, `false`", "`false`", "Whether writes are refused. A file all of whose exports are so is opened for reading only."),
    key(Section::Export, "description", "text, at most 4096 bytes", "none", "A line for people, which clients can ask for."),
    key(Section::Export, "tenants", "a list of tenants' names", "everybody", "Who may see it; for others it does not exist."),

    key(Section::Tenant, "name", "letters, digits, `-`, `_`, `.`; at most 64", "from its only rule", "What the control socket and metrics call it. `default` is taken: clients without a rule are called so."),
    key(Section::Tenant, "export", "text; `*` is any characters", "any", "Rule: the client chose this export."),
    key(Section::Tenant, "uid", "0 to 4294967294", "any", "Rule: a process of this user on a Unix socket."),
    key(Section::Tenant, "pid", "1 to 4194304", "any", "Rule: this process on a Unix socket."),
    key(Section::Tenant, "comm", "text; `*` is any characters", "any", "Rule: a process on a Unix socket whose command is called so; the kernel keeps 15 bytes of its name."),
    key(Section::Tenant, "cgroup", "a path from the root, as `/system.slice/backup.service`", "any", "Rule: a process on a Unix socket in this control group, or in one below."),
    key(Section::Tenant, "certificate", "text; `*` is any characters", "any", "Rule: a name in the client's certificate, its common name or an alternative one."),
    key(Section::Tenant, "address", "an address or network, as `10.0.0.0/8`", "any", "Rule: a client that comes from there over TCP."),
    key(Section::Tenant, "class", "`\"realtime\"`, `\"best-effort\"`, `\"idle\"`", "the process's own on a Unix socket, else best effort", "The priority class."),
    key(Section::Tenant, "level", "0 to 7", "4", "The level in the class, 0 is the best; without a class, of best effort."),
    key(Section::Tenant, "weight", "1 to 1000", "100", "Its share among its siblings, with elevators that know groups."),
    key(Section::Tenant, "reserve", "a rate, or `{ rate = \"20M\", request = \"64k\" }`", "none", "Bytes a second that it can count on, over any elevator; `request` is the size of its requests, 512 to 1G, that the admission reckons with (`\"128k\"`)."),
    key(Section::Tenant, "limit", "a rate", "none", "Bytes a second that it may not exceed."),
    key(Section::Tenant, "limit_iops", "1 or more", "none", "Operations a second that it may not exceed."),
    key(Section::Tenant, "burst", "a size", "a tenth of a second of `limit`", "Bytes that may come at once after a pause."),
    key(Section::Tenant, "burst_iops", "1 or more", "a tenth of a second of `limit_iops`", "Operations that may come at once after a pause."),
    key(Section::Tenant, "parent", "a group's name", "the root", "The group that it is part of."),

    key(Section::Group, "name", "letters, digits, `-`, `_`, `.`; at most 64", "required", "What tenants call it. `root` is taken."),
    key(Section::Group, "weight", "1 to 1000", "100", "Its share among its siblings."),
    key(Section::Group, "limit", "a rate", "none", "Bytes a second that all in it together may not exceed."),
    key(Section::Group, "limit_iops", "1 or more", "none", "Operations a second that all in it together may not exceed."),
    key(Section::Group, "burst", "a size", "a tenth of a second of `limit`", "Bytes that may come at once after a pause."),
    key(Section::Group, "burst_iops", "1 or more", "a tenth of a second of `limit_iops`", "Operations that may come at once after a pause."),
    key(Section::Group, "parent", "a group's name", "the root", "The group that it is part of."),

    key(Section::Listen, "socket", "a path, or a list of them", "`$XDG_RUNTIME_DIR/hoistway.sock`, else `/run/hoistway.sock`; none if an address is given", "Unix sockets."),
    key(Section::Listen, "mode", "text in octal digits", "`\"0600\"`", "The mode of the Unix sockets."),
    key(Section::Listen, "address", "`\"ADDRESS:PORT\"` or `\"ADDRESS\"`, or a list of them", "none", "TCP; the port is 10809 unless told. Beyond loopback TLS has to be required."),
    key(Section::Listen, "insecure", "`true`, `false`", "`false`", "Whether TCP beyond loopback is served without TLS all the same."),

    key(Section::Tls, "certificate", "a path", "required", "The server's certificates, PEM, its own first."),
    key(Section::Tls, "key", "a path", "required", "Its key, PEM. A warning tells if others than its owner and group can read it."),
    key(Section::Tls, "client_authority", "a path", "none", "Authorities, PEM, one of which a client's certificate must come from."),
    key(Section::Tls, "required", "`true`, `false`", "whether there is a `client_authority`", "Whether nothing is served in plain text. Otherwise TLS is offered."),

    key(Section::Control, "socket", "a path, or `\"none\"`", "beside the first Unix socket: `a.sock` has `a-control.sock`", "Where `hoistway ctl` and `hoistway top` connect."),
    key(Section::Metrics, "address", "`\"ADDRESS:PORT\"`", "none", "Where metrics are served over HTTP, at /metrics."),
    key(Section::Top, "record", "a path", "none", "A file that what passes is recorded in, as blktrace does."),
];

/// The tables of all keys in Markdown: the reference of docs/serve-config.md.
pub fn markdown() -> String {
    tables(&Section::ALL)
}

/// The tables of all keys of some sections in Markdown.
pub(crate) fn tables(sections: &[Section]) -> String {
    let mut text = String::new();
    for &section in sections {
        if section.keys().next().is_none() {
            continue;
        }
        let heading = section.heading();
        let heading = if section == Section::Top { "Outside of tables".to_owned() } else { format!("`{heading}`") };
        let _ = write!(text, "### {heading}\n\n| key | takes | without it | what it is |\n|---|---|---|---|\n");
        for key in section.keys() {
            let _ = writeln!(text, "| `{}` | {} | {} | {} |", key.name, key.takes, key.default, key.what);
        }
        text.push('\n');
    }
    text
}
