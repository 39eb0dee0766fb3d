//! The properties of an export in the client's view.

/// Properties of an export as reported by a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportInfo {
    /// Size in bytes.
    pub size: u64,
    /// [Transmission flags](crate::wire::transmission_flags).
    pub flags: u16,
    /// Canonical name.
    pub name: Option<String>,
    /// Description for humans.
    pub description: Option<String>,
    /// Minimum, preferred and maximum block sizes in bytes.
    pub block_sizes: Option<(u32, u32, u32)>,
}
