//! Which tenant a client is, and what it may see.
//!
//! Rules are tried in the order in which tenants stand in the configuration; the first tenant all of whose rules hold is it. Since a rule
//! can ask for the export, a client may be one tenant on one export and another on the next.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::{Config, ExportConfig, Rule};
use crate::engine::{Address, Peer};

/// A client as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// Where it comes from, and what process it is.
    pub peer: &'a Peer,
    /// The names in the certificate that it showed and that was verified; none without TLS.
    pub certificate: &'a [String],
}

impl Config {
    /// The place in [`Config::tenants`] of the tenant that a client is on an export. Without a rule that holds it is none of them: it
    /// is the default tenant's, a member of the root at its process's own priority.
    pub fn tenant_of(&self, client: &Client<'_>, export: &str) -> Option<usize> {
        self.tenants.iter().position(|tenant| tenant.rules.iter().all(|rule| holds(rule, client, export)))
    }

    /// The export of this name for this client: its place in [`Config::exports`], and the client's tenant on it. `None` if there is none
    /// or the client may not see it, which must look the same to it.
    pub fn export_for(&self, client: &Client<'_>, name: &str) -> Option<(usize, Option<usize>)> {
        let index = self.exports.iter().position(|export| export.name == name)?;
        let tenant = self.tenant_of(client, name);
        self.may_see(&self.exports[index], tenant).then_some((index, tenant))
    }

    /// The exports that a client may see, as places in [`Config::exports`].
    pub fn exports_for<'a>(&'a self, client: &'a Client<'a>) -> impl Iterator<Item = usize> + 'a {
        let seen = |export: &ExportConfig| self.may_see(export, self.tenant_of(client, &export.name));
        (0..self.exports.len()).filter(move |index| self.exports.get(*index).is_some_and(seen))
    }

    /// Whether clients of a tenant may see an export: it names no tenants, or this one.
    fn may_see(&self, export: &ExportConfig, tenant: Option<usize>) -> bool {
        let name = tenant.and_then(|tenant| self.tenants.get(tenant)).map(|tenant| &tenant.name);
        export.tenants.is_empty() || name.is_some_and(|name| export.tenants.contains(name))
    }
}

/// Whether a client is as a rule asks.
fn holds(rule: &Rule, client: &Client<'_>, export: &str) -> bool {
    let process = client.peer.process.as_ref();
    match rule {
        Rule::Export(pattern) => matches(pattern, export),
        Rule::Uid(uid) => process.is_some_and(|process| process.uid == *uid),
        Rule::Pid(pid) => process.is_some_and(|process| process.pid == *pid),
        Rule::Comm(pattern) => process.is_some_and(|process| matches(pattern, &process.comm)),
        Rule::Cgroup(path) => process.is_some_and(|process| lies_in(&process.cgroup, path)),
        Rule::Certificate(pattern) => client.certificate.iter().any(|name| matches(pattern, name)),
        Rule::Address { network, bits } => match client.peer.address {
            Address::Unix => false,
            Address::Tcp(address) => is_in(address.ip(), *network, *bits),
        },
    }
}

/// Whether a text is as a pattern says, in which `*` stands for any characters, none among them. There is no other sign, and no way to
/// ask for a `*` itself.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at_pattern, mut at_text) = (0, 0);
    // Where to go back to: behind the last star, and the end of what it stands for, which then grows by one. A shorter choice of an
    // earlier star never helps, so that the work is at most the product of the lengths.
    let mut last_star: Option<(usize, usize)> = None;
    while at_text < text.len() {
        if pattern.get(at_pattern) == Some(&b'*') {
            at_pattern += 1;
            last_star = Some((at_pattern, at_text));
        } else if pattern.get(at_pattern) == text.get(at_text) {
            at_pattern += 1;
            at_text += 1;
        } else if let Some((behind, end)) = last_star {
            at_pattern = behind;
            at_text = end + 1;
            last_star = Some((behind, at_text));
        } else {
            return false;
        }
    }
    pattern.get(at_pattern..).is_some_and(|rest| rest.iter().all(|sign| *sign == b'*'))
}

/// Whether a control group is this one or one below: `/a/b` lies in `/a`, `/ab` does not.
fn lies_in(cgroup: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    cgroup.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether an address belongs to a network. An IPv4 client of an IPv6 socket is what it is behind its IPv6 form.
fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let address = address.to_canonical();
    address.is_ipv4() == network.is_ipv4() && first_bits(address, bits) == network
}

/// The address whose first `bits` bits are this one's and whose others are 0.
pub(crate) fn first_bits(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32u32.saturating_sub(bits.into())).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128u32.saturating_sub(bits.into())).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}
