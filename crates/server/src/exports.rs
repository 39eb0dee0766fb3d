//! What is exported, and what of it a client may see.

use hoistway_nbd::server::Catalogue;

use hoistway_config::Config;
use hoistway_config::{Client, ClientProcess};
use hoistway_reactor::{Address, Peer};

/// An export as it is served.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    /// What the protocol tells of it.
    pub(crate) export: hoistway_nbd::Export,
    /// The place of its device.
    pub(crate) device: usize,
    /// Its first byte on the device.
    pub(crate) offset: u64,
}

/// What one client may see.
pub(crate) struct View<'a> {
    pub(crate) config: &'a Config,
    /// The exports, in the order of the configuration.
    pub(crate) exports: &'a [Served],
    pub(crate) client: Client<'a>,
}

impl View<'_> {
    /// The export and the name of the tenant that a client of it is, none if it stands for itself:
    /// nothing where it may not see it.
    pub(crate) fn admit(&self, name: &str) -> Option<(&Served, Option<&str>)> {
        let (export, tenant) = self.config.export_for(&self.client, name)?;
        let tenant = tenant.and_then(|tenant| self.config.tenants.get(tenant)).map(|tenant| tenant.name.as_str());
        self.exports.get(export).map(|served| (served, tenant))
    }
}

impl<'a> View<'a> {
    /// As seen by a client at the other end of a connection.
    pub(crate) fn new(config: &'a Config, exports: &'a [Served], peer: &'a Peer, names: &'a [String]) -> View<'a> {
        let address = match peer.address {
            Address::Unix => None,
            Address::Tcp(address) => Some(address.ip()),
        };
        let process = peer.process.as_ref().map(|process| ClientProcess {
            pid: process.pid,
            uid: process.uid,
            comm: &process.comm,
            cgroup: &process.cgroup,
        });
        View { config, exports, client: Client { address, process, certificate: names } }
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
