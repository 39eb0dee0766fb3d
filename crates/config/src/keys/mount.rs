//! The keys of a mount's configuration, declared once: what is read, what a typing error is
//! compared with, and the reference in docs/mount.md.

use super::{Key, Section, key, tables};

/// The tables of all keys in Markdown: the reference of docs/mount.md.
pub fn markdown() -> String {
    tables(&Section::MOUNT)
}

/// All keys that a server's configuration has not.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key(Section::Mount, "elevator", "a name that `hoistway elevators` lists", "`bfq` where the device rotates, else `fiops`", "The elevator of devices without one of their own."),
    key(Section::Mount, "device", "`\"auto\"`, a name such as `\"sdb\"`, or the path of its node", "`\"auto\"`", "The device that everything lies on; `auto` finds it for each file system."),
    key(Section::Mount, "depth", "1 to 4096", "2 where the device rotates, else 32", "How many requests devices without a depth of their own are given at once. There is fairness only among those that wait above it."),
    key(Section::Mount, "write_back", "`\"ours\"`, `\"kernel\"`", "`\"ours\"`", "Who writes back what was written: the mount, as requests of who wrote it, or the kernel."),
    key(Section::Mount, "dirty_background", "a size", "5 % of memory", "So much in memory is written back at once, whatever its age."),
    key(Section::Mount, "dirty_limit", "a size, 1M or more", "10 % of memory", "With so much in memory, who writes more waits."),
    key(Section::Mount, "dirty_age", "a time, at most 1s", "`\"1s\"`", "How old data become before they are written back."),
    key(Section::Mount, "groups", "`\"none\"`, `\"cgroup\"`", "`\"none\"`", "What processes are that no rule holds for: each its own, or one with all of its control group, with the weight that `io.weight` says."),
    key(Section::Mount, "allow_other", "`true`, `false`", "`true` for root, else `false`", "Whether others than who mounts may use it."),
    key(Section::Mount, "threads", "1 to 64", "twice the processors, 4 to 32", "Threads that take requests from the kernel."),

    key(Section::MountDevice, "name", "a name such as `\"sdb\"`, or the path of its node", "required", "The device, as a whole."),
    key(Section::MountDevice, "elevator", "a name that `hoistway elevators` lists", "the mount's", "The elevator."),
    key(Section::MountDevice, "tunables", "a table: `{ slice_idle = 0 }`", "the elevator's", "Tunables of the elevator, in the kernel's names and units; `hoistway elevators NAME` lists them. Those of reservations (`excess`, `dirs`, ...) go with any elevator."),
    key(Section::MountDevice, "depth", "1 to 4096", "the mount's", "How many requests it is given at once."),
    key(Section::MountDevice, "merge", "`true`, `false`", "`true`", "Whether neighbouring requests that wait are begun together."),
    key(Section::MountDevice, "bandwidth", "a rate", "none", "What it sustains at its slowest, for the admission of reservations. `hoistway serve --calibrate` measures it."),
    key(Section::MountDevice, "position", "a time, at most 1s", "none", "What positioning costs a request, for the same."),
    key(Section::MountDevice, "rotational", "`true`, `false`", "as the system says", "Whether an arm moves in it: behind a controller or a virtual disk the system does not know."),

    key(Section::MountTenant, "name", "letters, digits, `-`, `_`, `.`; at most 64", "from its only rule", "What the control socket and metrics call it. `default` is taken: processes that no rule holds for are called so."),
    key(Section::MountTenant, "cgroup", "a path from the root, as `/system.slice/backup.service`", "any", "Rule: the process is in this control group, or in one below."),
    key(Section::MountTenant, "comm", "text; `*` is any characters", "any", "Rule: the process's command is called so; the kernel keeps 15 bytes of its name."),
    key(Section::MountTenant, "command", "text; `*` is any characters", "any", "Rule: the process's command line, with blanks between the words, is so."),
    key(Section::MountTenant, "uid", "0 to 4294967294", "any", "Rule: the request is this user's."),
    key(Section::MountTenant, "gid", "0 to 4294967294", "any", "Rule: the request is this group's."),
    key(Section::MountTenant, "path", "text; `*` is any characters, slashes too", "any", "Rule: the path below the mount, without a slash at its beginning, is so: `films/*`."),
    key(Section::MountTenant, "op", "`\"read\"`, `\"write\"`, `\"sync\"`, `\"meta\"`, or a list of them", "any", "Rule: the request is one of these. What is written back later is `write`."),
    key(Section::MountTenant, "class", "`\"realtime\"`, `\"best-effort\"`, `\"idle\"`", "the process's own", "The priority class."),
    key(Section::MountTenant, "level", "0 to 7", "4", "The level in the class, 0 is the best; without a class, of best effort."),
    key(Section::MountTenant, "weight", "1 to 1000", "100", "Its share among its siblings, with elevators that know groups."),
    key(Section::MountTenant, "reserve", "a rate, or `{ rate = \"20M\", request = \"64k\" }`", "none", "Bytes a second that it can count on, over any elevator; `request` is the size of its requests, 512 to 1G, that the admission reckons with (`\"128k\"`)."),
    key(Section::MountTenant, "limit", "a rate", "none", "Bytes a second that it may not exceed."),
    key(Section::MountTenant, "limit_iops", "1 or more", "none", "Operations a second that it may not exceed."),
    key(Section::MountTenant, "burst", "a size", "a tenth of a second of `limit`", "Bytes that may come at once after a pause."),
    key(Section::MountTenant, "burst_iops", "1 or more", "a tenth of a second of `limit_iops`", "Operations that may come at once after a pause."),
    key(Section::MountTenant, "parent", "a group's name", "the root", "The group that it is part of."),
    key(Section::MountTenant, "schedule", "`true`, `false`", "`true`", "With `false`, the kernel reads and writes files that it opens past the mount, where it can (Linux 6.9, as root): nothing of that is scheduled, and nothing else of its terms holds for it."),

    key(Section::MountControl, "socket", "a path, or `\"none\"`", "`\"none\"`", "Where `hoistway ctl` and `hoistway top` connect."),
];
