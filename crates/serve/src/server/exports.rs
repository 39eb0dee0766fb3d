//! What is exported, and what of it a client may see.

use hoistway_nbd::server::Catalogue;

use crate::config::Config;
use crate::engine::Peer;
use crate::rules::Client;

/// An export as it is served.
#[derive(Clone, Debug)]
pub(super) struct Served {
    /// What the protocol tells of it.
    pub(super) export: hoistway_nbd::Export,
    /// The place of its device.
    pub(super) device: usize,
    /// Its first byte on the device.
    pub(super) offset: u64,
}

/// What one client may see.
pub(super) struct View<'a> {
    pub(super) config: &'a Config,
    /// The exports, in the order of the configuration.
    pub(super) exports: &'a [Served],
    pub(super) client: Client<'a>,
}

impl View<'_> {
    /// The export and the name of the tenant that a client of it is, none if it stands for itself: nothing where it may not see it.
    pub(super) fn admit(&self, name: &str) -> Option<(&Served, Option<&str>)> {
        let (export, tenant) = self.config.export_for(&self.client, name)?;
        let tenant = tenant.and_then(|tenant| self.config.tenants.get(tenant)).map(|tenant| tenant.name.as_str());
        self.exports.get(export).map(|served| (served, tenant))
    }
}

impl<'a> View<'a> {
    /// As seen by a client at the other end of a connection.
    pub(super) fn new(config: &'a Config, exports: &'a [Served], peer: &'a Peer, names: &'a [String]) -> View<'a> {
        View { config, exports, client: Client { peer, certificate: names } }
    }
}

impl Catalogue for View<'_> {
    fn list(&self) -> Vec<(String, String)> {
        let seen = self.config.exports_for(&self.client).filter_map(|export| self.exports.get(export));
        seen.map(|served| (served.export.name.clone(), served.export.description.clone())).collect()
    }

    fn find(&self, name: &str) -> Option<hoistway_nbd::Export> {
        self.admit(name).map(|(served, _)| served.export.clone())
    }
}
