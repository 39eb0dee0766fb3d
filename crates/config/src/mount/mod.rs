//! How the disk below a mount is shared: a file of its own kind, read by the same reader, with the
//! same devices, tenants, groups and limits.

mod build;
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
    /// What holds for the mount as a whole.
    pub mount: MountTerms,
    /// Devices of which something was said.
    pub devices: Vec<MountDevice>,
    /// Groups that tenants can be part of.
    pub groups: Vec<GroupConfig>,
    /// Tenants, in the order in which their rules are tried.
    pub tenants: Vec<MountTenant>,
    /// Where the control socket is.
    pub control: Option<PathBuf>,
    /// Where metrics are told over HTTP.
    pub metrics: Option<SocketAddr>,
}

/// What holds for the mount as a whole; what is not told is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountTerms {
    /// The elevator of devices of which nothing else was said.
    pub elevator: Option<Kind>,
    /// The device that everything lies on, whatever the system says; none: the one that each file
    /// system is on.
    pub device: Option<String>,
    /// How many requests such devices are given at once.
    pub depth: Option<u32>,
    /// Who writes back what was written.
    pub write_back: WriteBackChoice,
    /// Bytes that wait to be written back before that begins at once, whatever their age.
    pub dirty_background: Option<u64>,
    /// Bytes that wait to be written back before writers have to wait.
    pub dirty_limit: Option<u64>,
    /// How old data become before they are written back, in ns.
    pub dirty_age_ns: Option<u64>,
    /// What processes are that no rule holds for.
    pub groups: GroupsChoice,
    /// Everybody may use the mount, not only who made it.
    pub allow_other: Option<bool>,
    /// Threads of the session.
    pub threads: Option<u32>,
    /// Tunables that were set on the command line, of the devices that have the elevator.
    pub settings: Vec<(Kind, String, i64)>,
}

/// Who writes back what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBackChoice {
    /// The mount itself: as requests of whoever wrote it.
    #[default]
    Ours,
    /// The kernel, when it sees fit: as requests of who opened the file.
    Kernel,
}

/// What processes are that no rule holds for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupsChoice {
    /// Each is for itself.
    #[default]
    None,
    /// Those of a control group are one, with its `io.weight`.
    Cgroup,
}

/// A device below the mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountDevice {
    /// The kernel's name of it (`sda`), or the path of its node.
    pub name: String,
    /// The elevator; none: the mount's.
    pub elevator: Option<Kind>,
    /// Requests that it is given at once; none: the mount's.
    pub depth: Option<u32>,
    /// Tunables of the elevator, by the kernel's names.
    pub tunables: Vec<(String, i64)>,
    /// Whether neighbouring requests are merged.
    pub merge: bool,
    /// What it sustains, in bytes a second, for the admission of reservations.
    pub bandwidth: Option<u64>,
    /// What positioning costs a request, in ns, for the same.
    pub position_ns: Option<u64>,
    /// Whether an arm moves in it; none: as the system says.
    pub rotational: Option<bool>,
}

/// A tenant and the rules by which its requests are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountTenant {
    /// Its name.
    pub name: String,
    /// All of these must hold; none at all: everything.
    pub rules: Vec<MountRule>,
    /// Its terms.
    pub terms: Terms,
    /// What it opens needs no scheduling: the kernel reads and writes such files itself, past the
    /// mount, where it can.
    pub pass: bool,
}

/// What is asked of a request and of who makes it. In texts `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountRule {
    /// Its process is in this control group, or in one below.
    Cgroup(String),
    /// Its process's command is called so.
    Comm(String),
    /// Its process's command line, with blanks between the words, is so.
    Command(String),
    /// It is this user's.
    Uid(u32),
    /// It is this group's.
    Gid(u32),
    /// The path below the mount, without a slash at its beginning, is so.
    Path(String),
    /// It is one of these.
    Op(Ops),
}

/// Kinds of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ops {
    /// Reads of data.
    pub read: bool,
    /// Writes of data, and what is written back.
    pub write: bool,
    /// `fsync` and its kin.
    pub sync: bool,
    /// Names, directories and attributes.
    pub meta: bool,
}

impl Ops {
    /// The names of kinds, and how they are set.
    pub const NAMES: [(&'static str, Ops); 4] = [
        ("read", Ops { read: true, write: false, sync: false, meta: false }),
        ("write", Ops { read: false, write: true, sync: false, meta: false }),
        ("sync", Ops { read: false, write: false, sync: true, meta: false }),
        ("meta", Ops { read: false, write: false, sync: false, meta: true }),
    ];

    /// Whether one of `other` is among them.
    pub fn has(self, other: Ops) -> bool {
        (self.read && other.read)
            || (self.write && other.write)
            || (self.sync && other.sync)
            || (self.meta && other.meta)
    }

    /// Both.
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
    /// Whether it asks for the request, and not for its process alone.
    pub fn is_of_request(&self) -> bool {
        matches!(self, MountRule::Path(_) | MountRule::Op(_))
    }
}

/// A configuration that fits together.
#[derive(Clone, Debug)]
pub struct CheckedMount {
    /// It.
    pub config: MountConfig,
    /// What is worth a warning.
    pub warnings: Vec<Problem>,
}

impl Draft {
    /// Reads a mount's configuration.
    ///
    /// # Errors
    /// [`ConfigError::Read`] when it is not there, no text, or too long. What is wrong in it is
    /// told by [`Draft::check_mount`].
    pub fn load_mount(path: &std::path::Path) -> Result<Draft, ConfigError> {
        let text =
            crate::surroundings::text_of(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Ok(Draft::mount_from_toml(&text, &path.display().to_string()))
    }

    /// Reads the text of a mount's configuration. What is wrong with it is told by
    /// [`Draft::check_mount`], all at once.
    pub fn mount_from_toml(text: &str, file: &str) -> Draft {
        Draft::read_as(&Section::MOUNT, text, file)
    }
}
