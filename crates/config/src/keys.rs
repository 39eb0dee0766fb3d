//! The keys of a configuration, declared once. Parsing, suggestions for misspelt keys and the
//! reference in docs/serve-config.md follow from this table.

use std::fmt::Write as _;

use hoistway_qos::scheduler::{DEFAULT, DEFAULT_ROTATING};

pub mod mount;

/// A table of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// The top level of a server's file.
    Top,
    /// A `[[device]]` table.
    Device,
    /// An `[[export]]` table.
    Export,
    /// A `[[group]]` table.
    Group,
    /// A `[[tenant]]` table.
    Tenant,
    /// The `[listen]` table.
    Listen,
    /// The `[tls]` table.
    Tls,
    /// The `[control]` table.
    Control,
    /// The `[metrics]` table.
    Metrics,
    /// The top level of a mount's file.
    MountTop,
    /// The `[mount]` table.
    Mount,
    /// A `[[device]]` table of a mount.
    MountDevice,
    /// A `[[tenant]]` table of a mount.
    MountTenant,
    /// The `[control]` table of a mount.
    MountControl,
}

impl Section {
    /// The sections of a mount's configuration, in the order of the reference.
    pub const MOUNT: [Section; 7] = [
        Section::Mount,
        Section::MountDevice,
        Section::MountTenant,
        Section::Group,
        Section::MountControl,
        Section::Metrics,
        Section::MountTop,
    ];

    /// The sections of a server's configuration, in the order of the reference.
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

    /// Returns the name of the table; the top level has an empty name.
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

    /// Returns true if the section can occur many times: `[[name]]`.
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

    /// Returns the heading of the section as written in a file.
    pub fn heading(self) -> String {
        match (self, self.is_list()) {
            (Section::Top | Section::MountTop, _) => "the file itself".into(),
            (section, true) => format!("[[{}]]", section.name()),
            (section, false) => format!("[{}]", section.name()),
        }
    }

    /// Iterates over the keys of the section.
    pub fn keys(self) -> impl Iterator<Item = &'static Key> + Clone {
        KEYS.iter().chain(mount::KEYS).filter(move |key| key.section == self)
    }
}

/// The declaration of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The table that contains the key.
    pub section: Section,
    /// The name of the key.
    pub name: &'static str,
    /// The values that the key takes.
    pub takes: &'static str,
    /// The default.
    pub default: &'static str,
    /// The meaning of the key, for the reference.
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

/// The keys of a server's configuration.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key(Section::Device, "name", "letters, digits, `-`, `_`, `.`; at most 64", "required", "The name of the device in exports, in the control tree and in metrics."),
    key(Section::Device, "backend", "`\"file:PATH\"`, `\"mem:SIZE\"`, `\"null:SIZE\"`, an NBD URI", "required", "The storage: a file or block device; memory, all zeroes at the start; none (reads return zeroes, writes are discarded); an export of another NBD server, as `nbd://HOST[:PORT]/NAME`. With a drive, `\"mem\"` and `\"null\"` may omit the size and take that of the drive."),
    key(Section::Device, "drive", "a name that `hoistway drives` lists, or the path of a profile", "none", "The drive model that determines service times."),
    key(Section::Device, "elevator", "a name that `hoistway elevators` lists, or `none`, the name of `noop` since Linux 5.0", "`none` for a remote export, `paternoster` where the device rotates, else `fiops`", "The elevator."),
    key(Section::Device, "tunables", "a table: `{ slice_idle = 0 }`", "the elevator's", "Tunables of the elevator, in the kernel's names and units; `hoistway elevators NAME` lists them. Tunables of reservations (`excess`, `dirs`, ...) work with every elevator."),
    key(Section::Device, "depth", "1 to 4096", "the backend's", "The queue depth: the largest number of requests in flight. The elevator orders only requests that are not yet in flight."),
    key(Section::Device, "direct", "`true`, `false`", "where the file and the request allow", "Direct I/O, which bypasses the page cache. With `true`, the start fails where the file does not support it."),
    key(Section::Device, "force_in_use", "`true`, `false`", "`false`", "Open the file or block device for writing even if it is in use: mounted, swap, part of a volume or array, behind a loop device. Two writers destroy each other's data."),
    key(Section::Device, "merge", "`true`, `false`", "`true`", "Merge adjacent waiting requests into one."),
    key(Section::Device, "request_max", "a size: 4k to 32M, whole sectors", "`\"1M\"`", "The largest request of the device. Longer requests are split; merging stops at this size."),
    key(Section::Device, "bandwidth", "a rate", "a drive's slowest; else none", "The lowest sustained bandwidth, for the admission of reservations."),
    key(Section::Device, "position", "a time, at most 1s", "a drive's mean; else none", "The positioning time of a request, for the admission of reservations."),
    key(Section::Device, "log_slow", "a time: 1ms to 1h", "`\"10s\"`", "Requests that take longer, from arrival to completion, are logged with their tenant, range and times; at most one a minute for each tenant."),

    key(Section::Device, "connections", "1 to 16", "4", "Remote exports: the number of connections, if the remote announces that several connections may be used (NBD_FLAG_CAN_MULTI_CONN); otherwise one is used."),
    key(Section::Device, "timeout", "a time: 1s to 1h", "`\"30s\"`", "Remote exports: the time after which a request that the remote has not completed fails with EIO, whether the remote cannot be reached or does not reply."),
    key(Section::Device, "unflushed", "a size, at most 64G", "`\"64M\"`", "Remote exports: the bytes of completed writes that are kept until the remote has flushed them, and are sent again after a lost connection. Before they exceed this size, the server flushes the remote itself. With 0 no writes are kept: after a lost connection that leaves writes unflushed, all flushes fail."),
    key(Section::Device, "tls_authority", "a path", "`ca-cert.pem` in the directory `tls-certificates` of the URI", "Remote exports with TLS (`nbds://`): the authorities, PEM, one of which must have issued the remote's certificate."),
    key(Section::Device, "tls_certificate", "a path", "`client-cert.pem` in the directory, if it exists", "Remote exports with TLS: the certificate chain that the remote is shown, PEM."),
    key(Section::Device, "tls_key", "a path", "`client-key.pem` in the directory", "Remote exports with TLS: the private key of `tls_certificate`, PEM."),

    key(Section::Export, "name", "at most 4096 bytes, without `*`", "required", "The name that clients request. The empty name is the default export."),
    key(Section::Export, "device", "a device's name", "the only device", "The device of the export."),
    key(Section::Export, "offset", "a size, whole sectors", "0", "The first byte of the export on the device."),
    key(Section::Export, "size", "a size, whole sectors", "to the device's end", "The size of the export."),
    key(Section::Export, "read_only", "`true`, `false`", "`false`", "Refuse writes. A file is opened for reading only if all its exports are read-only."),
    key(Section::Export, "description", "text, at most 4096 bytes", "none", "A description for users, which clients can query."),
    key(Section::Export, "tenants", "a list of tenants' names", "all tenants", "The tenants that may use the export; it is hidden from all others."),

    key(Section::Tenant, "name", "letters, digits, `-`, `_`, `.`; at most 64", "from its only rule", "The name of the tenant in the control tree and in metrics. `default` is reserved for clients that no rule matches."),
    key(Section::Tenant, "export", "text; `*` is any characters", "any", "Rule: the requested export matches."),
    key(Section::Tenant, "uid", "0 to 4294967294", "any", "Rule: a process of this user on a Unix socket."),
    key(Section::Tenant, "pid", "1 to 4194304", "any", "Rule: this process on a Unix socket."),
    key(Section::Tenant, "comm", "text; `*` is any characters", "any", "Rule: the command name of the process on a Unix socket matches; the kernel keeps 15 bytes of it."),
    key(Section::Tenant, "cgroup", "a path from the root, as `/system.slice/backup.service`", "any", "Rule: a process on a Unix socket in this control group, or in one below."),
    key(Section::Tenant, "certificate", "text; `*` is any characters", "any", "Rule: a name in the client's certificate, its common name or an alternative one."),
    key(Section::Tenant, "address", "an address or network, as `10.0.0.0/8`", "any", "Rule: the client's TCP address belongs to this network."),
    key(Section::Tenant, "class", "`\"realtime\"`, `\"best-effort\"`, `\"idle\"`", "the process's own on a Unix socket, else best effort", "The priority class."),
    key(Section::Tenant, "level", "0 to 7", "4", "The priority level in the class; 0 is the highest. Without `class`, a level of best effort."),
    key(Section::Tenant, "weight", "1 to 1000", "100", "The share among siblings, under elevators that support groups."),
    key(Section::Tenant, "reserve", "a rate, or `{ rate = \"20M\", request = \"64k\" }`", "none", "The guaranteed rate in bytes a second, with every elevator. `request` is the request size that the admission assumes, 512 to 1G (`\"128k\"`)."),
    key(Section::Tenant, "limit", "a rate", "none", "The largest rate in bytes a second."),
    key(Section::Tenant, "limit_iops", "1 or more", "none", "The largest rate in operations a second."),
    key(Section::Tenant, "burst", "a size", "a tenth of a second of `limit`", "The bytes that may pass at once after a pause."),
    key(Section::Tenant, "burst_iops", "1 or more", "a tenth of a second of `limit_iops`", "The operations that may pass at once after a pause."),
    key(Section::Tenant, "parent", "a group's name", "the root", "The parent group."),

    key(Section::Group, "name", "letters, digits, `-`, `_`, `.`; at most 64", "required", "The name of the group. `root` is reserved."),
    key(Section::Group, "weight", "1 to 1000", "100", "The share among siblings."),
    key(Section::Group, "limit", "a rate", "none", "The largest rate of all members together, in bytes a second."),
    key(Section::Group, "limit_iops", "1 or more", "none", "The largest rate of all members together, in operations a second."),
    key(Section::Group, "burst", "a size", "a tenth of a second of `limit`", "The bytes that may pass at once after a pause."),
    key(Section::Group, "burst_iops", "1 or more", "a tenth of a second of `limit_iops`", "The operations that may pass at once after a pause."),
    key(Section::Group, "parent", "a group's name", "the root", "The parent group."),

    key(Section::Listen, "socket", "a path, or a list of them", "`$XDG_RUNTIME_DIR/hoistway.sock`, else `/run/hoistway.sock`; none if an address is given", "Unix sockets."),
    key(Section::Listen, "mode", "text in octal digits", "`\"0600\"`", "The mode of the Unix sockets."),
    key(Section::Listen, "address", "`\"ADDRESS:PORT\"` or `\"ADDRESS\"`, or a list of them", "none", "TCP addresses; the default port is 10809. Addresses beyond loopback need `required` TLS."),
    key(Section::Listen, "insecure", "`true`, `false`", "`false`", "Allow TCP beyond loopback without TLS."),

    key(Section::Tls, "certificate", "a path", "required", "The server's certificate chain, PEM, its own certificate first."),
    key(Section::Tls, "key", "a path", "required", "The server's private key, PEM. The server warns if users other than the owner and the group can read the file."),
    key(Section::Tls, "client_authority", "a path", "none", "The authorities, PEM, one of which must have issued a client's certificate."),
    key(Section::Tls, "required", "`true`, `false`", "`true` with `client_authority`, else `false`", "Require TLS. If `false`, TLS is offered beside plain text."),

    key(Section::Control, "socket", "a path, or `\"none\"`", "beside the first Unix socket: `a.sock` has `a-control.sock`", "The control socket, to which `hoistway ctl` and `hoistway top` connect."),
    key(Section::Metrics, "address", "`\"ADDRESS:PORT\"`", "none", "The address of the metrics endpoint: HTTP, path /metrics."),
    key(Section::Top, "record", "a path", "none", "The file of a recording of all requests, in the format of blktrace."),
];

/// Renders the tables of all keys in Markdown: the reference of docs/serve-config.md.
pub fn markdown() -> String {
    tables(&Section::ALL)
}

/// Returns the names of the elevators of devices for which the configuration names none: of those
/// that rotate, and of the others.
pub fn default_elevators() -> [&'static str; 2] {
    [DEFAULT_ROTATING, DEFAULT].map(|kind| kind.info().name)
}

/// Renders the tables of the keys of some sections in Markdown.
pub(crate) fn tables(sections: &[Section]) -> String {
    let mut text = String::new();
    for &section in sections {
        if section.keys().next().is_none() {
            continue;
        }
        let heading = section.heading();
        let heading = if section == Section::Top { "Top level".to_owned() } else { format!("`{heading}`") };
        let _ = write!(text, "### {heading}\n\n| key | value | default | meaning |\n|---|---|---|---|\n");
        for key in section.keys() {
            let _ = writeln!(text, "| `{}` | {} | {} | {} |", key.name, key.takes, key.default, key.what);
        }
        text.push('\n');
    }
    text
}
