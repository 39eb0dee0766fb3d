//! The state that the control tree needs beside that of the server.

use std::collections::{BTreeMap, HashMap};

use hoistway_config::Config;
use hoistway_control::admin::LogControl;
use hoistway_reactor::ConnId;

/// The state that the control tree needs beside that of the server.
pub(crate) struct AdminState {
    /// The start of the server, in ns of the engine's clock.
    pub(crate) started_ns: u64,
    /// True if an administrator requested a reload that has not begun.
    pub(crate) reload_requested: bool,
    /// The control of the log filter, if the process has one.
    pub(crate) log: Option<Box<dyn LogControl>>,
    /// The ids of the connections by the clients' numbers.
    pub(crate) ids_by_number: BTreeMap<u64, ConnId>,
    pub(crate) indices: NameIndices,
}

impl AdminState {
    /// Creates the state of a server that starts now.
    pub(crate) fn new(now_ns: u64, indices: NameIndices) -> AdminState {
        AdminState { started_ns: now_ns, reload_requested: false, log: None, ids_by_number: BTreeMap::new(), indices }
    }
}

/// The indices of tenants, groups and exports in the configuration, by their names. An index is a
/// hint: [`find_named`] compares the name and searches if it differs.
#[derive(Debug, Default)]
pub(crate) struct NameIndices {
    pub(crate) tenants: HashMap<String, usize>,
    pub(crate) groups: HashMap<String, usize>,
    pub(crate) exports: HashMap<String, usize>,
}

impl NameIndices {
    /// Returns the indices of a configuration.
    pub(crate) fn of(config: &Config) -> NameIndices {
        let indices = |names: &mut dyn Iterator<Item = &String>| names.cloned().zip(0..).collect();
        NameIndices {
            tenants: indices(&mut config.tenants.iter().map(|tenant| &tenant.name)),
            groups: indices(&mut config.groups.iter().map(|group| &group.name)),
            exports: indices(&mut config.exports.iter().map(|export| &export.name)),
        }
    }
}

/// Returns the item with a name: at its index if the hint is right, else by a search.
pub(crate) fn find_named<'a, T>(
    items: &'a [T],
    indices: &HashMap<String, usize>,
    name: &str,
    name_of: fn(&T) -> &str,
) -> Option<&'a T> {
    let hint = indices.get(name).and_then(|index| items.get(*index)).filter(|item| name_of(item) == name);
    hint.or_else(|| items.iter().find(|item| name_of(item) == name))
}
