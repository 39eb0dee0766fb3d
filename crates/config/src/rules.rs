//! Assignment of clients to tenants, and the exports that a client may use.
//!
//! Rules are tried in the order of the tenants in the configuration. A client belongs to the first
//! tenant all of whose rules match. Since a rule can test the export, a client may belong to
//! different tenants on different exports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hoistway_qos::Terms;

use crate::model::{Config, ExportConfig, Rule, TenantConfig};

/// The properties of a client that rules test.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// The client's IP address; `None` on a Unix socket.
    pub address: Option<IpAddr>,
    /// The client's process, on a Unix socket.
    pub process: Option<ClientProcess<'a>>,
    /// The names in the client's verified certificate; empty without TLS.
    pub certificate: &'a [String],
}

/// The process of a client on a Unix socket.
#[derive(Clone, Copy, Debug)]
pub struct ClientProcess<'a> {
    /// The process id.
    pub pid: u32,
    /// The user id.
    pub uid: u32,
    /// The name of the command, at most 15 bytes.
    pub comm: &'a str,
    /// The path of the control group.
    pub cgroup: &'a str,
}

impl Config {
    /// Returns the index in [`Config::tenants`] of the client's tenant on an export. `None` is the
    /// default tenant: a member of the root with the priority of the client's process.
    pub fn tenant_of(&self, client: &Client<'_>, export: &str) -> Option<usize> {
        self.tenants.iter().position(|tenant| tenant.rules.iter().all(|rule| holds(rule, client, export)))
    }

    /// Finds the export of this name for this client. Returns its index in [`Config::exports`] and
    /// the client's tenant on it. `None` covers both an unknown export and one that the client may
    /// not use: clients cannot tell the two apart.
    pub fn export_for(&self, client: &Client<'_>, name: &str) -> Option<(usize, Option<usize>)> {
        let index = self.exports.iter().position(|export| export.name == name)?;
        let tenant = self.tenant_of(client, name);
        self.may_see(&self.exports[index], tenant).then_some((index, tenant))
    }

    /// Iterates over the exports that a client may use, as indices in [`Config::exports`].
    pub fn exports_for<'a>(&'a self, client: &'a Client<'a>) -> impl Iterator<Item = usize> + 'a {
        let seen = |export: &ExportConfig| self.may_see(export, self.tenant_of(client, &export.name));
        (0..self.exports.len()).filter(move |index| self.exports.get(*index).is_some_and(seen))
    }

    /// Returns true if a client of the tenant can reach the device at all: if the device has an
    /// export that the tenant may use and that its `export` rules match. On other devices its
    /// reservation does not count.
    pub fn can_reach(&self, tenant: &TenantConfig, device: &str) -> bool {
        let fits = |rule: &Rule, export: &ExportConfig| match rule {
            Rule::Export(pattern) => matches(pattern, &export.name),
            _ => true,
        };
        self.exports.iter().filter(|export| export.device == device).any(|export| {
            admits_tenant(export, Some(&tenant.name)) && tenant.rules.iter().all(|rule| fits(rule, export))
        })
    }

    /// Returns the terms of a tenant on a device. A device that no client of the tenant can reach
    /// reserves nothing.
    pub fn terms_on(&self, device: &str, tenant: &TenantConfig, terms: &Terms) -> Terms {
        let reserve = terms.reserve.filter(|_| self.can_reach(tenant, device));
        Terms { reserve, ..terms.clone() }
    }

    fn may_see(&self, export: &ExportConfig, tenant: Option<usize>) -> bool {
        admits_tenant(export, tenant.and_then(|tenant| self.tenants.get(tenant)).map(|tenant| tenant.name.as_str()))
    }
}

/// Returns true if clients of a tenant may use an export: it lists no tenants, or this one.
fn admits_tenant(export: &ExportConfig, tenant: Option<&str>) -> bool {
    export.tenants.is_empty() || tenant.is_some_and(|tenant| export.tenants.iter().any(|known| known == tenant))
}

/// Returns true if a client on an export matches a rule.
fn holds(rule: &Rule, client: &Client<'_>, export: &str) -> bool {
    let process = client.process;
    match rule {
        Rule::Export(pattern) => matches(pattern, export),
        Rule::Uid(uid) => process.is_some_and(|process| process.uid == *uid),
        Rule::Pid(pid) => process.is_some_and(|process| process.pid == *pid),
        Rule::Comm(pattern) => process.is_some_and(|process| matches(pattern, process.comm)),
        Rule::Cgroup(path) => process.is_some_and(|process| is_within(process.cgroup, path)),
        Rule::Certificate(pattern) => client.certificate.iter().any(|name| matches(pattern, name)),
        Rule::Address { network, bits } => {
            client.address.is_some_and(|address| is_in_network(address, *network, *bits))
        }
    }
}

/// Returns true if a text matches a pattern, in which `*` stands for any number of characters.
/// There is no other wildcard and no escape for `*`.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at_pattern, mut at_text) = (0, 0);
    // The point to return to: the position after the last star, and the end of the text that the
    // star stands for, which then grows by one. A shorter match of an earlier star never helps, so
    // the work is bounded by the product of the lengths.
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

/// Returns true if a control group is `path` or below it: `/a/b` is below `/a`, `/ab` is not.
pub fn is_within(cgroup: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    cgroup.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if an address belongs to a network. An IPv4-mapped IPv6 address counts as the IPv4
/// address.
fn is_in_network(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let address = address.to_canonical();
    address.is_ipv4() == network.is_ipv4() && first_bits(address, bits) == network
}

/// Returns the address with all bits after the first `bits` bits cleared.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unix<'a>(uid: u32, pid: u32, comm: &'a str, cgroup: &'a str) -> Client<'a> {
        let process = ClientProcess { uid, pid, comm, cgroup };
        Client { address: None, process: Some(process), certificate: &[] }
    }

    fn tcp(address: &str) -> Client<'static> {
        let address: IpAddr = address.parse().expect("an address");
        Client { address: Some(address), process: None, certificate: &[] }
    }

    /// A configuration with these tenants, in order, and the exports `open`, `a` (for tenant `t`)
    /// and `b` (for `t` and `u`).
    fn config(tenants: Vec<(&str, Vec<Rule>)>) -> Config {
        let export = |name: &str, tenants: &[&str]| ExportConfig {
            name: name.into(),
            description: String::new(),
            device: "d".into(),
            offset: 0,
            size: None,
            read_only: false,
            tenants: tenants.iter().map(|name| (*name).to_owned()).collect(),
        };
        Config {
            exports: vec![export("open", &[]), export("a", &["t"]), export("b", &["t", "u"])],
            tenants: tenants
                .into_iter()
                .map(|(name, rules)| TenantConfig { name: name.into(), rules, terms: Terms::default() })
                .collect(),
            ..Config::default()
        }
    }

    fn held(rule: Rule, client: &Client<'_>, certificate: &[&str], export: &str) -> bool {
        let certificate: Vec<String> = certificate.iter().map(|name| (*name).to_owned()).collect();
        let client = Client { certificate: &certificate, ..*client };
        config(vec![("t", vec![rule])]).tenant_of(&client, export).is_some()
    }

    fn network(text: &str, bits: u8) -> Rule {
        Rule::Address { network: text.parse().expect("an address"), bits }
    }

    #[test]
    fn each_rule_matches_its_clients_only() {
        let fio = unix(1000, 7, "fio", "/user.slice/a.scope");
        let far = tcp("10.1.2.3");
        let text = |text: &str| text.to_owned();
        let table = [
            (Rule::Export(text("db-*")), &fio, "db-1", true),
            (Rule::Export(text("db-*")), &fio, "web", false),
            (Rule::Uid(1000), &fio, "", true),
            (Rule::Uid(0), &fio, "", false),
            (Rule::Uid(0), &far, "", false),
            (Rule::Pid(7), &fio, "", true),
            (Rule::Pid(8), &fio, "", false),
            (Rule::Comm(text("f*")), &fio, "", true),
            (Rule::Comm(text("fi")), &fio, "", false),
            (Rule::Comm(text("*")), &far, "", false),
            (Rule::Cgroup(text("/user.slice")), &fio, "", true),
            (Rule::Cgroup(text("/user.slice/")), &fio, "", true),
            (Rule::Cgroup(text("/user.slice/a.scope")), &fio, "", true),
            (Rule::Cgroup(text("/user")), &fio, "", false),
            (Rule::Cgroup(text("/user.slice/a.scope/b")), &fio, "", false),
            (Rule::Cgroup(text("/")), &fio, "", true),
            (Rule::Cgroup(text("/")), &far, "", false),
            (network("10.0.0.0", 8), &far, "", true),
            (network("10.1.2.3", 32), &far, "", true),
            (network("10.1.2.2", 32), &far, "", false),
            (network("0.0.0.0", 0), &far, "", true),
            (network("::", 0), &far, "", false),
            (network("0.0.0.0", 0), &fio, "", false),
        ];
        for (rule, client, export, holds) in table {
            assert_eq!(held(rule.clone(), client, &[], export), holds, "{rule:?} of {client:?} on {export:?}");
        }
        assert!(held(Rule::Certificate(text("*.example.org")), &far, &["alice", "db.example.org"], ""));
        assert!(!held(Rule::Certificate(text("*")), &far, &[], ""), "no certificate is no name");
    }

    #[test]
    fn an_ipv4_mapped_client_belongs_to_its_ipv4_network() {
        assert!(held(network("10.0.0.0", 8), &tcp("::ffff:10.1.2.3"), &[], ""));
        assert!(!held(network("::", 0), &tcp("::ffff:10.1.2.3"), &[], ""));
        assert!(held(network("fd00::", 8), &tcp("fd12::1"), &[], ""));
        assert!(!held(network("fd00::", 8), &tcp("fe80::1"), &[], ""));
        assert!(held(network("::", 0), &tcp("::1"), &[], ""));
    }

    #[test]
    fn the_first_tenant_all_of_whose_rules_match_is_chosen() {
        let both = vec![Rule::Uid(1), Rule::Comm("fio".into())];
        let config = config(vec![("both", both), ("one", vec![Rule::Uid(1)]), ("rest", vec![])]);
        let of = |client: &Client<'_>| config.tenant_of(client, "open");
        assert_eq!(of(&unix(1, 7, "fio", "/")), Some(0));
        assert_eq!(of(&unix(1, 7, "dd", "/")), Some(1));
        assert_eq!(of(&unix(2, 7, "fio", "/")), Some(2));
        assert_eq!(of(&tcp("10.0.0.1")), Some(2));
    }

    #[test]
    fn an_export_is_hidden_from_other_tenants() {
        let config = config(vec![("t", vec![Rule::Uid(1)]), ("u", vec![Rule::Export("b".into())])]);
        let (first, other) = (unix(1, 7, "fio", "/"), unix(2, 7, "fio", "/"));
        assert_eq!(config.exports_for(&first).collect::<Vec<_>>(), [0, 1, 2]);
        // On `b` the other client is the tenant `u`; on `a` it has no tenant.
        assert_eq!(config.exports_for(&other).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(config.export_for(&first, "a"), Some((1, Some(0))));
        assert_eq!(config.export_for(&other, "a"), None);
        assert_eq!(config.export_for(&other, "none"), None);
        assert_eq!(config.export_for(&other, "b"), Some((2, Some(1))));
        assert_eq!(config.export_for(&other, "open"), Some((0, None)), "the default tenant's");
    }

    #[test]
    fn a_tenant_reaches_the_devices_of_its_exports() {
        let mut config = config(vec![("t", vec![]), ("u", vec![Rule::Export("a".into())]), ("v", vec![])]);
        for (export, device) in config.exports.iter_mut().zip(["d", "e", "f"]) {
            device.clone_into(&mut export.device);
        }
        let reached = |tenant: usize| -> Vec<&str> {
            ["d", "e", "f"].into_iter().filter(|device| config.can_reach(&config.tenants[tenant], device)).collect()
        };
        assert_eq!(reached(0), ["d", "e", "f"]);
        // The tenant asks for `a` alone, which is not for it; no export lists the third tenant.
        assert_eq!((reached(1), reached(2)), (vec![], vec!["d"]));
    }

    /// Matches a pattern by trying all possibilities: the reference for `matches`.
    fn matches_slowly(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|end| matches_slowly(rest, &text[end..])),
            Some((sign, rest)) => {
                text.split_first().is_some_and(|(first, after)| first == sign && matches_slowly(rest, after))
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

        #[test]
        fn a_pattern_matches_like_the_reference(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            prop_assert_eq!(matches(&pattern, &text), matches_slowly(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn an_address_is_within_each_network_of_its_own_first_bits(address: u128, four: bool, bits in 0u8..=128) {
            let address: IpAddr = if four { Ipv4Addr::from_bits(address as u32).into() } else { Ipv6Addr::from_bits(address).into() };
            prop_assume!(address.to_canonical() == address);
            let bits = if four { bits / 4 } else { bits };
            let network = first_bits(address, bits);
            prop_assert!(is_in_network(address, network, bits));
            prop_assert_eq!(first_bits(network, bits), network);
            let differs = match address {
                IpAddr::V4(address) if bits > 0 => Some(Ipv4Addr::from_bits(address.to_bits() ^ (1 << (32 - bits))).into()),
                IpAddr::V6(address) if bits > 0 => Some(Ipv6Addr::from_bits(address.to_bits() ^ (1 << (128 - bits))).into()),
                _ => None,
            };
            if let Some(differs) = differs {
                prop_assert!(!is_in_network(differs, network, bits), "{differs} differs in the last bit that counts");
            }
        }
    }
}
