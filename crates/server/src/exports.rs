//! The exports of the server, and the part of them that one client may use.

use hoistway_blockdev::DeviceId;
use hoistway_config::{Client, ClientProcess, Config};
use hoistway_nbd::server::Catalogue;
use hoistway_reactor::{Address, Peer};

/// An export with its device.
#[derive(Clone, Debug)]
pub(crate) struct ServedExport {
    /// The export as the NBD handshake describes it.
    pub(crate) export: hoistway_nbd::Export,
    /// The device.
    pub(crate) device: DeviceId,
    /// The offset of the export's first byte on the device, in bytes.
    pub(crate) offset: u64,
}

/// The exports that the rules of the configuration allow to one client.
pub(crate) struct AllowedExports<'a> {
    config: &'a Config,
    /// All exports, in the order of the configuration.
    exports: &'a [ServedExport],
    client: Client<'a>,
}

impl<'a> AllowedExports<'a> {
    /// Applies the rules to the client at the other end of a connection, which may have a
    /// certificate with the given names.
    pub(crate) fn new(
        config: &'a Config,
        exports: &'a [ServedExport],
        peer: &'a Peer,
        certificate_names: &'a [String],
    ) -> AllowedExports<'a> {
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
        AllowedExports { config, exports, client: Client { address, process, certificate: certificate_names } }
    }

    /// Returns an export and the client's tenant on it; the tenant is `None` if no rule names one.
    /// Returns `None` if the client may not use the export.
    pub(crate) fn admit(&self, name: &str) -> Option<(&ServedExport, Option<&str>)> {
        let (export, tenant) = self.config.export_for(&self.client, name)?;
        let tenant = tenant.and_then(|tenant| self.config.tenants.get(tenant)).map(|tenant| tenant.name.as_str());
        self.exports.get(export).map(|served| (served, tenant))
    }
}

impl Catalogue for AllowedExports<'_> {
    fn list(&self) -> Vec<(String, String)> {
        let allowed = self.config.exports_for(&self.client).filter_map(|export| self.exports.get(export));
        allowed.map(|served| (served.export.name.clone(), served.export.description.clone())).collect()
    }

    fn find(&self, name: &str) -> Option<hoistway_nbd::Export> {
        self.admit(name).map(|(served, _)| served.export.clone())
    }
}
