//! Which tenant a client is.

use crate::config::{Config, Rule, TenantConfig};
use crate::engine::{Address, Peer};

/// What is known of a client that asks for an export.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client<'a> {
    /// The export's name.
    pub(super) export: &'a str,
    /// Where it comes from.
    pub(super) peer: &'a Peer,
    /// The names in its certificate.
    pub(super) names: &'a [String],
}

/// The tenants and their rules, tried in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Tenants {
    tenants: Vec<TenantConfig>,
}

impl Tenants {
    /// Those of a configuration.
    pub(super) fn new(config: &Config) -> Tenants {
        Tenants { tenants: config.tenants.clone() }
    }

    /// The tenant that a client is; none: it stands for itself.
    pub(super) fn of(&self, client: &Client<'_>) -> Option<&str> {
        let found = self.tenants.iter().find(|tenant| tenant.rules.iter().all(|rule| holds(rule, client)));
        found.map(|tenant| tenant.name.as_str())
    }
}

fn holds(rule: &Rule, client: &Client<'_>) -> bool {
    let process = client.peer.process.as_ref();
    match rule {
        Rule::Export(pattern) => pattern == client.export,
        Rule::Uid(uid) => process.is_some_and(|process| process.uid == *uid),
        Rule::Pid(pid) => process.is_some_and(|process| process.pid == *pid),
        Rule::Cgroup(path) => process.is_some_and(|process| process.cgroup == *path),
        Rule::Comm(pattern) => process.is_some_and(|process| process.comm == *pattern),
        Rule::Certificate(pattern) => client.names.iter().any(|name| name == pattern),
        Rule::Address { .. } => !matches!(client.peer.address, Address::Unix),
    }
}
