//! The configuration of a mount under construction.

use super::MountConfig;
use crate::builder::ConfigBuilder;

/// The partly parsed configuration of a mount.
pub(super) struct MountBuilder<'a> {
    /// The parts that a server's configuration has too, and the problems found so far.
    pub common: ConfigBuilder<'a>,
    /// The parts that only a mount has.
    pub mount: MountConfig,
}
