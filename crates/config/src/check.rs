//! Checks across entries: names, references, sizes, reservations, listening addresses.

mod reservations;

use std::collections::BTreeMap;

use crate::builder::ConfigBuilder;
use crate::draft::{Draft, Entry, LocatedValue, Location, Problem};
use crate::listen_policy::{self, ListenPolicy};
use crate::model::{BackendConfig, Listen, Rule};
use crate::names::{did_you_mean, list};

/// Runs all checks that involve more than one value.
pub(crate) fn check_consistency(draft: &Draft, builder: &mut ConfigBuilder<'_>) {
    let mut check = Check::new(draft, builder);
    check.something_is_exported();
    check.names_are_unique();
    check.references();
    check.parents_do_not_loop();
    check.devices_are_different();
    check.exports_fit();
    check.listeners_are_allowed();
    check.rules_can_match();
    check.weights_have_effect();
    check.reservations_fit();
    check.reservation_tunables_have_effect();
}

pub(crate) struct Check<'a, 'b> {
    draft: &'a Draft,
    builder: &'a mut ConfigBuilder<'b>,
}

impl<'a, 'b> Check<'a, 'b> {
    pub fn new(draft: &'a Draft, builder: &'a mut ConfigBuilder<'b>) -> Check<'a, 'b> {
        Check { draft, builder }
    }
}

impl Check<'_, '_> {
    fn problem(&mut self, location: Location, text: String) {
        self.builder.problems.push(Problem { location, text });
    }

    fn warning(&mut self, location: Location, text: String) {
        self.builder.warnings.push(Problem { location, text });
    }

    fn something_is_exported(&mut self) {
        if self.draft.exports.is_empty() && self.draft.problems.is_empty() {
            let text = "nothing is exported: write an [[export]], or --export NAME=PATH".to_owned();
            self.problem(self.draft.top.location.clone(), text);
        }
        let unused =
            self.draft.devices.iter().zip(&self.builder.config.devices).filter(|(_, device)| {
                self.builder.config.exports.iter().all(|export| export.device != device.queue.name)
            });
        let unused: Vec<_> =
            unused.map(|(entry, device)| (entry.location.clone(), device.queue.name.clone())).collect();
        for (location, name) in unused.into_iter().filter(|_| !self.draft.exports.is_empty()) {
            self.warning(location, format!("no export is on the device `{name}`"));
        }
    }

    pub fn names_are_unique(&mut self) {
        let draft = self.draft;
        let kinds = [
            (&draft.devices, "device"),
            (&draft.exports, "export"),
            (&draft.groups, "group"),
            (&draft.tenants, "tenant"),
        ];
        for (entries, kind) in kinds {
            let names = self.names_of(kind);
            let mut first: BTreeMap<&str, &Entry> = BTreeMap::new();
            let mut twice = Vec::new();
            for (entry, name) in entries.iter().zip(&names) {
                let nameless = name.is_empty() && (kind != "export" || entry.get("name").is_none());
                match first.get(name.as_str()) {
                    _ if nameless => {}
                    Some(other) => {
                        twice.push((
                            location_of(entry, "name"),
                            format!("there is already {kind} `{name}`: {}", location_of(other, "name")),
                        ));
                    }
                    None => {
                        first.insert(name, entry);
                    }
                }
            }
            for (location, text) in twice {
                self.problem(location, text);
            }
        }
    }

    fn names_of(&self, kind: &str) -> Vec<String> {
        let config = &self.builder.config;
        match kind {
            "device" => config.devices.iter().map(|device| device.queue.name.clone()).collect(),
            "export" => config.exports.iter().map(|export| export.name.clone()).collect(),
            "group" => config.groups.iter().map(|group| group.name.clone()).collect(),
            _ => config.tenants.iter().map(|tenant| tenant.name.clone()).collect(),
        }
    }

    /// Checks that every reference names an existing entry.
    pub fn references(&mut self) {
        let draft = self.draft;
        let references: [(&[Entry], &str, &str); 4] = [
            (&draft.exports, "device", "device"),
            (&draft.exports, "tenants", "tenant"),
            (&draft.groups, "parent", "group"),
            (&draft.tenants, "parent", "group"),
        ];
        for (entries, key, kind) in references {
            let names = self.names_of(kind);
            for entry in entries {
                for (typed, location) in texts(entry.get(key)) {
                    if !names.iter().any(|name| name == typed) {
                        let known = names.iter().map(String::as_str).filter(|name| !name.is_empty());
                        let near = did_you_mean(typed, known.clone());
                        self.problem(
                            location,
                            format!("there is no {kind} `{typed}`{near}; there are {}", list(known)),
                        );
                    }
                }
            }
        }
    }

    pub fn parents_do_not_loop(&mut self) {
        let groups = &self.builder.config.groups;
        let parent_of: BTreeMap<&str, &str> =
            groups.iter().filter_map(|group| Some((group.name.as_str(), group.parent.as_deref()?))).collect();
        let mut loops = Vec::new();
        for (entry, group) in self.draft.groups.iter().zip(groups) {
            let (mut at, mut way) = (group.name.as_str(), vec![group.name.as_str()]);
            while let Some(parent) = parent_of.get(at).filter(|_| way.len() <= groups.len()) {
                at = parent;
                way.push(at);
                if at == group.name {
                    loops.push((
                        location_of(entry, "parent"),
                        format!("groups must not form a circle: {}", way.join(" < ")),
                    ));
                    break;
                }
            }
        }
        // Only the first circle is reported.
        if let Some((location, text)) = loops.into_iter().next() {
            self.problem(location, text);
        }
    }

    /// Checks that no two devices are the same file or remote export: their requests would bypass
    /// each other's queue.
    fn devices_are_different(&mut self) {
        let mut first: BTreeMap<_, &str> = BTreeMap::new();
        let mut twice = Vec::new();
        for (entry, device) in self.draft.devices.iter().zip(&self.builder.config.devices) {
            let identity = match &device.backend {
                BackendConfig::File { path, .. } => self.builder.environment.identity(path),
                BackendConfig::Remote(remote) => remote.uri.to_string().into(),
                BackendConfig::Memory { .. } | BackendConfig::Null { .. } => continue,
            };
            if let Some(other) = first.get(&identity) {
                let text = format!("the device `{other}` has the same storage: make two exports of one device");
                twice.push((location_of(entry, "backend"), text));
            } else {
                first.insert(identity, &device.queue.name);
            }
        }
        for (location, text) in twice {
            self.problem(location, text);
        }
    }

    fn exports_fit(&mut self) {
        let mut wrong = Vec::new();
        let builder = &*self.builder;
        for (entry, export) in self.draft.exports.iter().zip(&builder.config.exports) {
            let device = builder.config.devices.iter().position(|device| device.queue.name == export.device);
            let Some(bytes) = device.and_then(|device| builder.device_bytes.get(device).copied().flatten()) else {
                continue;
            };
            let end = export.offset.checked_add(export.size.unwrap_or(0));
            if export.offset >= bytes && export.offset > 0 {
                let text =
                    format!("the device `{}` ends at byte {bytes}, before `offset` {}", export.device, export.offset);
                wrong.push((location_of(entry, "offset"), text));
            } else if end.is_none_or(|end| end > bytes) {
                let end = end.map_or("beyond 2^64".to_owned(), |end| end.to_string());
                let text = format!("the device `{}` ends at byte {bytes}, the export at {end}", export.device);
                wrong.push((location_of(entry, "size"), text));
            }
        }
        for (location, text) in wrong {
            self.problem(location, text);
        }
    }

    /// Checks that plain text is offered beyond this machine only if the configuration allows it.
    fn listeners_are_allowed(&mut self) {
        let config = &self.builder.config;
        let required = config.tls.as_ref().is_some_and(|tls| tls.required);
        let listens: Vec<(Listen, Location)> =
            config.listen.iter().cloned().zip(self.builder.listen_locations.iter().cloned()).collect();
        for (index, (listen, location)) in listens.iter().enumerate() {
            if listens.iter().take(index).any(|(other, _)| same_listener(other, listen)) {
                self.problem(location.clone(), "this address is listed twice".into());
            }
            if let Listen::Tcp(address) = listen {
                match listen_policy::judge(*address, required, self.builder.config.insecure) {
                    ListenPolicy::Accept => {}
                    ListenPolicy::Warn(text) => self.warning(location.clone(), text),
                    ListenPolicy::Refuse(text) => self.problem(location.clone(), text),
                }
            }
        }
        if let Some(address) = self.builder.config.metrics {
            let location = location_of(&self.draft.metrics, "address");
            match listen_policy::judge_metrics(address, self.builder.config.insecure) {
                ListenPolicy::Accept => {}
                ListenPolicy::Warn(text) => self.warning(location, text),
                ListenPolicy::Refuse(text) => self.problem(location, text),
            }
        }
        let control = self.builder.config.control.clone();
        let is_control =
            |listen: &Listen| matches!(listen, Listen::Unix { path, .. } if Some(path) == control.as_ref());
        if listens.iter().any(|(listen, _)| is_control(listen)) {
            self.problem(
                location_of(&self.draft.control, "socket"),
                "the control socket has the path of a client socket".into(),
            );
        }
    }

    /// Warns of tenants that no client can match.
    fn rules_can_match(&mut self) {
        let config = &self.builder.config;
        let authority = config.tls.as_ref().is_some_and(|tls| tls.client_authority.is_some());
        let mut unconditional: Option<String> = None;
        let mut warnings = Vec::new();
        for (entry, tenant) in self.draft.tenants.iter().zip(&config.tenants) {
            if let Some(first) = &unconditional {
                let text =
                    format!("no client can be the tenant `{}`: `{first}` precedes it and has no rule", tenant.name);
                warnings.push((entry.location.clone(), text));
            }
            if tenant.rules.is_empty() && unconditional.is_none() {
                unconditional = Some(tenant.name.clone());
            }
            if !authority && tenant.rules.iter().any(|rule| matches!(rule, Rule::Certificate(_))) {
                let text = "no client presents a certificate: [tls] has no `client_authority`".to_owned();
                warnings.push((location_of(entry, "certificate"), text));
            }
        }
        for (location, text) in warnings {
            self.warning(location, text);
        }
    }

    /// Warns of weights that have no effect under the device's elevator.
    pub fn weights_have_effect(&mut self) {
        let weighed = self.draft.tenants.iter().chain(&self.draft.groups).find(|entry| entry.get("weight").is_some());
        let Some(weighed) = weighed else { return };
        let mut warnings = Vec::new();
        for (entry, device) in self.draft.devices.iter().zip(&self.builder.config.devices) {
            if let Some(kind) = device.queue.elevator.filter(|kind| !kind.info().groups) {
                let supporting = hoistway_core::Kind::ALL.iter().map(|kind| kind.info()).filter(|info| info.groups);
                let text = format!(
                    "{} does not support groups: on the device `{}`, `weight` ({}) has no effect; these elevators support groups: {}",
                    kind.info().name,
                    device.queue.name,
                    location_of(weighed, "weight"),
                    list(supporting.map(|info| info.name))
                );
                warnings.push((location_of(entry, "elevator"), text));
            }
        }
        for (location, text) in warnings {
            self.warning(location, text);
        }
    }
}

fn same_listener(one: &Listen, other: &Listen) -> bool {
    match (one, other) {
        (Listen::Unix { path: one, .. }, Listen::Unix { path: other, .. }) => one == other,
        (Listen::Tcp(one), Listen::Tcp(other)) => one == other,
        _ => false,
    }
}

/// Returns the location of a key's value, or that of its entry if the key is absent.
pub(crate) fn location_of(entry: &Entry, key: &str) -> Location {
    entry.get(key).map_or(&entry.location, |located| &located.location).clone()
}

/// Returns the texts of a key's value, which is one text or a list.
fn texts(located: Option<&LocatedValue>) -> Vec<(&str, Location)> {
    let Some(located) = located else { return Vec::new() };
    let each = match &located.value {
        crate::draft::Value::List(each) => each.as_slice(),
        _ => std::slice::from_ref(located),
    };
    each.iter().filter_map(|located| Some((located.text()?, located.location.clone()))).collect()
}
