//! What is exported, and what of it a client may see.

use std::collections::BTreeMap;

use hoistway_nbd::server::Catalogue;

use crate::engine::Peer;
use crate::server::tenants::{Client, Tenants};

/// An export as it is served.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// What the protocol tells of it.
    pub(super) export: hoistway_nbd::Export,
    /// The place of its device.
    pub(super) device: usize,
    /// Its first byte on the device.
    pub(super) offset: u64,
    /// The tenants that may see it; none: all.
    pub(super) tenants: Vec<String>,
}

/// All exports, in the order of the configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Exports {
    served: Vec<Served>,
    by_name: BTreeMap<String, usize>,
}

impl Exports {
    /// Adds one; a name that was there is served differently from now on.
    pub(super) fn add(&mut self, served: Served) {
        self.by_name.insert(served.export.name.clone(), self.served.len());
        self.served.push(served);
    }

    /// The export of a name.
    pub(super) fn get(&self, name: &str) -> Option<&Served> {
        self.served.get(*self.by_name.get(name)?)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Served> {
        self.served.iter()
    }
}

/// What one client may see.
pub(super) struct View<'a> {
    pub(super) exports: &'a Exports,
    pub(super) tenants: &'a Tenants,
    pub(super) peer: &'a Peer,
    /// The names in its certificate.
    pub(super) names: &'a [String],
}

impl View<'_> {
    /// The export and the tenant that a client of it is: none where it may not see it.
    pub(super) fn admit(&self, name: &str) -> Option<(&Served, Option<&str>)> {
        let served = self.exports.get(name)?;
        let tenant = self.tenants.of(&Client { export: name, peer: self.peer, names: self.names });
        let visible = served.tenants.is_empty() || served.tenants.iter().any(|name| Some(name.as_str()) == tenant);
        visible.then_some((served, tenant))
    }
}

impl Catalogue for View<'_> {
    fn list(&self) -> Vec<(String, String)> {
        self.exports
            .iter()
            .filter(|served| self.admit(&served.export.name).is_some())
            .map(|served| (served.export.name.clone(), served.export.description.clone()))
            .collect()
    }

    fn find(&self, name: &str) -> Option<hoistway_nbd::Export> {
        self.admit(name).map(|(served, _)| served.export.clone())
    }
}
