//! The configuration of a mount: a TOML file of its own, with the same devices, tenants, groups and
//! limits as a server's.

mod build;
mod builder;
mod check;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;

use hoistway_core::Kind;

use crate::draft::{Draft, Problem};
use crate::error::ConfigError;
use crate::keys::Section;
use crate::model::GroupConfig;

use hoistway_qos::Terms;

pub use crate::keys::mount::{KEYS, markdown};

/// A checked configuration of a mount.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountConfig {
    /// Settings of the mount as a whole.
    pub mount: MountTerms,
    /// The devices with settings of their own.
    pub devices: Vec<MountDevice>,
    /// The groups that tenants can be members of.
    pub groups: Vec<GroupConfig>,
    /// The tenants, in the order in which their rules are tried.
    pub tenants: Vec<MountTenant>,
    /// The path of the control socket.
    pub control: Option<PathBuf>,
    /// The address of the metrics endpoint.
    pub metrics: Option<SocketAddr>,
}

/// Settings of the mount as a whole; `None` selects the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountTerms {
    /// The elevator of devices without an elevator of their own.
    pub elevator: Option<Kind>,
    /// The device below all file systems; `None`: the device that the system reports for each.
    pub device: Option<String>,
    /// The queue depth of devices without a depth of their own.
    pub depth: Option<u32>,
    /// The component that writes dirty data back.
    pub write_back: WriteBackChoice,
    /// Dirty bytes above which write-back starts at once, whatever their age.
    pub dirty_background: Option<u64>,
    /// Dirty bytes above which writers wait.
    pub dirty_limit: Option<u64>,
    /// The age at which dirty data are written back, in ns.
    pub dirty_age_ns: Option<u64>,
    /// The grouping of processes that no rule matches.
    pub groups: GroupsChoice,
    /// Lets users other than the one who mounts use the mount.
    pub allow_other: Option<bool>,
    /// The number of session threads.
    pub threads: Option<u32>,
    /// Tunables set on the command line, for the devices that have the elevator.
    pub settings: Vec<(Kind, String, i64)>,
}

/// The component that writes dirty data back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBackChoice {
    /// The mount, as requests of the process that wrote the data.
    #[default]
    Ours,
    /// The kernel at a time of its own choice, as requests of the process that opened the file.
    Kernel,
}

/// The grouping of processes that no rule matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupsChoice {
    /// Each process is on its own.
    #[default]
    None,
    /// The processes of a control group form one group, with the weight of its `io.weight`.
    Cgroup,
}

/// A device below the mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountDevice {
    /// The kernel's name of the device (`sda`), or the path of its node.
    pub name: String,
    /// The elevator; `None`: that of the mount.
    pub elevator: Option<Kind>,
    /// The queue depth in requests; `None`: that of the mount.
    pub depth: Option<u32>,
    /// The elevator's tunables, by the kernel's names.
    pub tunables: Vec<(String, i64)>,
    /// Merges adjacent requests.
    pub merge: bool,
    /// The sustained bandwidth in bytes a second, for the admission of reservations.
    pub bandwidth: Option<u64>,
    /// The positioning time of a request in ns, for the admission of reservations.
    pub position_ns: Option<u64>,
    /// Requests that take longer than this, in ns, are logged.
    pub log_slow_ns: Option<u64>,
    /// True if the device has an arm; `None`: as the system reports.
    pub rotational: Option<bool>,
}

/// A tenant and the rules that assign requests to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountTenant {
    /// The name of the tenant.
    pub name: String,
    /// The rules, all of which must match; a tenant without rules matches every request.
    pub rules: Vec<MountRule>,
    /// The terms: priority, weight, reservation, limits.
    pub terms: Terms,
    /// Files that the tenant opens are not scheduled: the kernel reads and writes them by FUSE
    /// passthrough where it can.
    pub pass: bool,
}

/// A property that a request or its process must have. In texts `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountRule {
    /// The process is in this control group or in one below.
    Cgroup(String),
    /// The command name of the process matches.
    Comm(String),
    /// The command line of the process, its words separated by blanks, matches.
    Command(String),
    /// The request has this user id.
    Uid(u32),
    /// The request has this group id.
    Gid(u32),
    /// The path below the mount, without a leading slash, matches.
    Path(String),
    /// The operation is one of these kinds.
    Op(Ops),
}

/// A set of kinds of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ops {
    /// Reads of data.
    pub read: bool,
    /// Writes of data, write-back included.
    pub write: bool,
    /// `fsync` and related operations.
    pub sync: bool,
    /// Operations on names, directories and attributes.
    pub meta: bool,
}

impl Ops {
    /// The names of the kinds, each with its set.
    pub const NAMES: [(&'static str, Ops); 4] = [
        ("read", Ops { read: true, write: false, sync: false, meta: false }),
        ("write", Ops { read: false, write: true, sync: false, meta: false }),
        ("sync", Ops { read: false, write: false, sync: true, meta: false }),
        ("meta", Ops { read: false, write: false, sync: false, meta: true }),
    ];

    /// Returns true if the sets have a kind in common.
    pub fn has(self, other: Ops) -> bool {
        (self.read && other.read)
            || (self.write && other.write)
            || (self.sync && other.sync)
            || (self.meta && other.meta)
    }

    /// Returns the union of the sets.
    #[must_use]
    pub fn and(self, other: Ops) -> Ops {
        Ops {
            read: self.read || other.read,
            write: self.write || other.write,
            sync: self.sync || other.sync,
            meta: self.meta || other.meta,
        }
    }
}

impl MountRule {
    /// Returns true if the rule tests the request and not only its process.
    pub fn tests_request(&self) -> bool {
        matches!(self, MountRule::Path(_) | MountRule::Op(_))
    }
}

/// A consistent configuration of a mount and its warnings.
#[derive(Clone, Debug)]
pub struct CheckedMount {
    /// The checked configuration.
    pub config: MountConfig,
    /// Values that are allowed but are likely mistakes.
    pub warnings: Vec<Problem>,
}

impl Draft {
    /// Reads a mount's configuration from a file.
    ///
    /// # Errors
    /// [`ConfigError::Read`] if the file is missing, too long, or not UTF-8. [`Draft::check_mount`]
    /// reports errors in its contents.
    pub fn load_mount(path: &std::path::Path) -> Result<Draft, ConfigError> {
        let text =
            crate::environment::read_text(path).map_err(|cause| ConfigError::Read { path: path.to_owned(), cause })?;
        Ok(Draft::mount_from_toml(&text, &path.display().to_string()))
    }

    /// Reads a mount's configuration from a text. [`Draft::check_mount`] reports all errors in it
    /// together.
    pub fn mount_from_toml(text: &str, file: &str) -> Draft {
        Draft::read_as(&Section::MOUNT, text, file)
    }
}
