//! The keys of a mount's configuration, declared once. Parsing, suggestions for misspelt keys and
//! the reference in docs/mount.md follow from this table.

use super::{Key, Section, key, tables};

/// Renders the tables of all keys in Markdown: the reference of docs/mount.md.
pub fn markdown() -> String {
    tables(&Section::MOUNT)
}

/// The keys that a server's configuration does not have.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key(Section::Mount, "elevator", "a name that `hoistway elevators` lists, or `none`, the name of `noop` since Linux 5.0", "`paternoster` where the device rotates, else `fiops`", "The elevator of devices without one of their own."),
    key(Section::Mount, "device", "`\"auto\"`, a name such as `\"sdb\"`, or the path of its node", "`\"auto\"`", "The device below all file systems; `auto` detects the device of each."),
    key(Section::Mount, "depth", "1 to 4096", "2 where the device rotates, else 32", "The queue depth of devices without a depth of their own. The elevator orders only requests that are not yet in flight."),
    key(Section::Mount, "write_back", "`\"ours\"`, `\"kernel\"`", "`\"ours\"`", "The component that writes dirty data back: the mount, as requests of the process that wrote the data, or the kernel."),
    key(Section::Mount, "dirty_background", "a size", "5 % of memory", "Dirty data above which write-back starts at once, whatever their age."),
    key(Section::Mount, "dirty_limit", "a size, 1M or more", "10 % of memory", "Dirty data above which writers wait."),
    key(Section::Mount, "dirty_age", "a time, at most 1s", "`\"1s\"`", "The age at which dirty data are written back."),
    key(Section::Mount, "groups", "`\"none\"`, `\"cgroup\"`", "`\"none\"`", "The grouping of processes that no rule matches: each on its own, or one group for each control group, with the weight of its `io.weight`."),
    key(Section::Mount, "allow_other", "`true`, `false`", "`true` for root, else `false`", "Let users other than the one who mounts use the mount."),
    key(Section::Mount, "threads", "1 to 64", "twice the processors, 4 to 32", "The threads that take requests from the kernel."),

    key(Section::MountDevice, "name", "a name such as `\"sdb\"`, or the path of its node", "required", "The whole device."),
    key(Section::MountDevice, "elevator", "a name that `hoistway elevators` lists, or `none`, the name of `noop` since Linux 5.0", "the mount's", "The elevator."),
    key(Section::MountDevice, "tunables", "a table: `{ slice_idle = 0 }`", "the elevator's", "Tunables of the elevator, in the kernel's names and units; `hoistway elevators NAME` lists them. Tunables of reservations (`excess`, `dirs`, ...) work with every elevator."),
    key(Section::MountDevice, "depth", "1 to 4096", "the mount's", "The queue depth: the largest number of requests in flight."),
    key(Section::MountDevice, "merge", "`true`, `false`", "`true`", "Dispatch adjacent waiting requests together."),
    key(Section::MountDevice, "bandwidth", "a rate", "none", "The lowest sustained bandwidth, for the admission of reservations. `hoistway serve --calibrate` measures it."),
    key(Section::MountDevice, "position", "a time, at most 1s", "none", "The positioning time of a request, for the admission of reservations."),
    key(Section::MountDevice, "log_slow", "a time: 1ms to 1h", "`\"10s\"`", "Requests that take longer, from arrival to completion, are logged with their tenant, range and times; at most one a minute for each tenant."),
    key(Section::MountDevice, "rotational", "`true`, `false`", "as the system reports", "True if the device has an arm. Behind a controller or in a virtual machine the system may report it wrongly."),

    key(Section::MountTenant, "name", "letters, digits, `-`, `_`, `.`; at most 64", "from its only rule", "The name of the tenant in the control tree and in metrics. `default` is reserved for processes that no rule matches."),
    key(Section::MountTenant, "cgroup", "a path from the root, as `/system.slice/backup.service`", "any", "Rule: the process is in this control group, or in one below."),
    key(Section::MountTenant, "comm", "text; `*` is any characters", "any", "Rule: the command name of the process matches; the kernel keeps 15 bytes of it."),
    key(Section::MountTenant, "command", "text; `*` is any characters", "any", "Rule: the command line of the process, its words separated by blanks, matches."),
    key(Section::MountTenant, "uid", "0 to 4294967294", "any", "Rule: the request has this user id."),
    key(Section::MountTenant, "gid", "0 to 4294967294", "any", "Rule: the request has this group id."),
    key(Section::MountTenant, "path", "text; `*` is any characters, slashes too", "any", "Rule: the path below the mount, without a leading slash, matches: `films/*`."),
    key(Section::MountTenant, "op", "`\"read\"`, `\"write\"`, `\"sync\"`, `\"meta\"`, or a list of them", "any", "Rule: the operation is one of these. Write-back counts as `write`."),
    key(Section::MountTenant, "class", "`\"realtime\"`, `\"best-effort\"`, `\"idle\"`", "the process's own", "The priority class."),
    key(Section::MountTenant, "level", "0 to 7", "4", "The priority level in the class; 0 is the highest. Without `class`, a level of best effort."),
    key(Section::MountTenant, "weight", "1 to 1000", "100", "The share among siblings, under elevators that support groups."),
    key(Section::MountTenant, "reserve", "a rate, or `{ rate = \"20M\", request = \"64k\" }`", "none", "The guaranteed rate in bytes a second, with every elevator. `request` is the request size that the admission assumes, 512 to 1G (`\"128k\"`)."),
    key(Section::MountTenant, "limit", "a rate", "none", "The largest rate in bytes a second."),
    key(Section::MountTenant, "limit_iops", "1 or more", "none", "The largest rate in operations a second."),
    key(Section::MountTenant, "burst", "a size", "a tenth of a second of `limit`", "The bytes that may pass at once after a pause."),
    key(Section::MountTenant, "burst_iops", "1 or more", "a tenth of a second of `limit_iops`", "The operations that may pass at once after a pause."),
    key(Section::MountTenant, "parent", "a group's name", "the root", "The parent group."),
    key(Section::MountTenant, "schedule", "`true`, `false`", "`true`", "With `false`, files that the tenant opens use FUSE passthrough where possible (Linux 6.9, as root): their requests are not scheduled, and the tenant's other terms do not apply."),

    key(Section::MountControl, "socket", "a path, or `\"none\"`", "`\"none\"`", "The control socket, to which `hoistway ctl` and `hoistway top` connect."),
];
