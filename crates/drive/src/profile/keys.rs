//! What the reference of drive files says of a key.

/// A table of a drive file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTable {
    /// The name of the table, in brackets if it can occur many times; empty for the file itself.
    pub heading: &'static str,
    /// The description of the table.
    pub about: &'static str,
    /// The keys of the table.
    pub keys: &'static [Key],
}

/// A key of a drive file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name of the key.
    pub name: &'static str,
    /// The values that the key takes.
    pub takes: &'static str,
    /// The default.
    pub default: &'static str,
    /// The meaning of the key.
    pub meaning: &'static str,
}
