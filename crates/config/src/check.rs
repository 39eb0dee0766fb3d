//! What has to fit together: names, references, sizes, promises, ways in.

mod promises;

use std::collections::BTreeMap;

use crate::building::Building;
use crate::draft::{Draft, Entry, Place, Problem, Said};
use crate::listen_policy::{self, ListenPolicy};
use crate::model::{BackendConfig, Listen, Rule};
use crate::names::{did_you_mean, list};

/// Looks at everything that more than one entry says.
pub(crate) fn together(draft: &Draft, building: &mut Building<'_>) {
    let mut check = Check::new(draft, building);
    check.something_is_served();
    check.names_are_unique();
    check.references();
    check.parents_do_not_loop();
    check.devices_are_different();
    check.exports_fit();
    check.ways_in();
    check.rules_can_match();
    check.weights_count();
    check.promises();
    check.layers_count();
}

pub(crate) struct Check<'a, 'b> {
    draft: &'a Draft,
    building: &'a mut Building<'b>,
}

impl<'a, 'b> Check<'a, 'b> {
    pub fn new(draft: &'a Draft, building: &'a mut Building<'b>) -> Check<'a, 'b> {
        Check { draft, building }
    }
}

impl Check<'_, '_> {
    fn problem(&mut self, place: Place, text: String) {
        self.building.problems.push(Problem { place, text });
    }

    fn warning(&mut self, place: Place, text: String) {
        self.building.warnings.push(Problem { place, text });
    }

    fn something_is_served(&mut self) {
        if self.draft.exports.is_empty() && self.draft.problems.is_empty() {
            let text = "nothing is exported: write an [[export]], or --export NAME=PATH".to_owned();
            self.problem(self.draft.top.place.clone(), text);
        }
        let unused =
            self.draft.devices.iter().zip(&self.building.config.devices).filter(|(_, device)| {
                self.building.config.exports.iter().all(|export| export.device != device.queue.name)
            });
        let unused: Vec<_> = unused.map(|(entry, device)| (entry.place.clone(), device.queue.name.clone())).collect();
        for (place, name) in unused.into_iter().filter(|_| !self.draft.exports.is_empty()) {
            self.warning(place, format!("no export lies on the device `{name}`"));
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
                            place_of(entry, "name"),
                            format!("there is already {kind} `{name}`: {}", place_of(other, "name")),
                        ));
                    }
                    None => {
                        first.insert(name, entry);
                    }
                }
            }
            for (place, text) in twice {
                self.problem(place, text);
            }
        }
    }

    fn names_of(&self, kind: &str) -> Vec<String> {
        let config = &self.building.config;
        match kind {
            "device" => config.devices.iter().map(|device| device.queue.name.clone()).collect(),
            "export" => config.exports.iter().map(|export| export.name.clone()).collect(),
            "group" => config.groups.iter().map(|group| group.name.clone()).collect(),
            _ => config.tenants.iter().map(|tenant| tenant.name.clone()).collect(),
        }
    }

    /// That what is referred to is there.
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
                for (typed, place) in texts(entry.get(key)) {
                    if !names.iter().any(|name| name == typed) {
                        let known = names.iter().map(String::as_str).filter(|name| !name.is_empty());
                        let near = did_you_mean(typed, known.clone());
                        self.problem(place, format!("there is no {kind} `{typed}`{near}; there are {}", list(known)));
                    }
                }
            }
        }
    }

    pub fn parents_do_not_loop(&mut self) {
        let groups = &self.building.config.groups;
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
                        place_of(entry, "parent"),
                        format!("groups cannot be part of each other in a circle: {}", way.join(" < ")),
                    ));
                    break;
                }
            }
        }
        // One circle is told once, where it is entered first.
        if let Some((place, text)) = loops.into_iter().next() {
            self.problem(place, text);
        }
    }

    /// That no two devices are the same file: their requests would not meet in one queue.
    fn devices_are_different(&mut self) {
        let mut first: BTreeMap<_, &str> = BTreeMap::new();
        let mut twice = Vec::new();
        for (entry, device) in self.draft.devices.iter().zip(&self.building.config.devices) {
            let BackendConfig::File { path, .. } = &device.backend else { continue };
            let identity = self.building.surroundings.identity(path);
            if let Some(other) = first.get(&identity) {
                let text = format!("the device `{other}` is the same file: make two exports of one device");
                twice.push((place_of(entry, "backend"), text));
            } else {
                first.insert(identity, &device.queue.name);
            }
        }
        for (place, text) in twice {
            self.problem(place, text);
        }
    }

    fn exports_fit(&mut self) {
        let mut wrong = Vec::new();
        let building = &*self.building;
        for (entry, export) in self.draft.exports.iter().zip(&building.config.exports) {
            let device = building.config.devices.iter().position(|device| device.queue.name == export.device);
            let Some(bytes) = device.and_then(|device| building.device_bytes.get(device).copied().flatten()) else {
                continue;
            };
            let end = export.offset.checked_add(export.size.unwrap_or(0));
            if export.offset >= bytes && export.offset > 0 {
                let text =
                    format!("the device `{}` ends at byte {bytes}, before `offset` {}", export.device, export.offset);
                wrong.push((place_of(entry, "offset"), text));
            } else if end.is_none_or(|end| end > bytes) {
                let end = end.map_or("beyond 2^64".to_owned(), |end| end.to_string());
                let text = format!("the device `{}` ends at byte {bytes}, the export at {end}", export.device);
                wrong.push((place_of(entry, "size"), text));
            }
        }
        for (place, text) in wrong {
            self.problem(place, text);
        }
    }

    /// That nobody but this machine is served in plain text unless that was written.
    fn ways_in(&mut self) {
        let config = &self.building.config;
        let required = config.tls.as_ref().is_some_and(|tls| tls.required);
        let listens: Vec<(Listen, Place)> =
            config.listen.iter().cloned().zip(self.building.listen_places.iter().cloned()).collect();
        for (index, (listen, place)) in listens.iter().enumerate() {
            if listens.iter().take(index).any(|(other, _)| same_way(other, listen)) {
                self.problem(place.clone(), "the same is listened to twice".into());
            }
            if let Listen::Tcp(address) = listen {
                match listen_policy::judge(*address, required, self.building.config.insecure) {
                    ListenPolicy::Accept => {}
                    ListenPolicy::Warn(text) => self.warning(place.clone(), text),
                    ListenPolicy::Refuse(text) => self.problem(place.clone(), text),
                }
            }
        }
        if let Some(address) = self.building.config.metrics {
            let place = place_of(&self.draft.metrics, "address");
            match listen_policy::judge_metrics(address, self.building.config.insecure) {
                ListenPolicy::Accept => {}
                ListenPolicy::Warn(text) => self.warning(place, text),
                ListenPolicy::Refuse(text) => self.problem(place, text),
            }
        }
        let control = self.building.config.control.clone();
        let is_control =
            |listen: &Listen| matches!(listen, Listen::Unix { path, .. } if Some(path) == control.as_ref());
        if listens.iter().any(|(listen, _)| is_control(listen)) {
            self.problem(
                place_of(&self.draft.control, "socket"),
                "clients and the control socket have the same path".into(),
            );
        }
    }

    /// Warns of tenants that nobody can be.
    fn rules_can_match(&mut self) {
        let config = &self.building.config;
        let authority = config.tls.as_ref().is_some_and(|tls| tls.client_authority.is_some());
        let mut everybody: Option<String> = None;
        let mut warnings = Vec::new();
        for (entry, tenant) in self.draft.tenants.iter().zip(&config.tenants) {
            if let Some(first) = &everybody {
                let text = format!("nobody is the tenant `{}`: `{first}` comes before it and has no rule", tenant.name);
                warnings.push((entry.place.clone(), text));
            }
            if tenant.rules.is_empty() && everybody.is_none() {
                everybody = Some(tenant.name.clone());
            }
            if !authority && tenant.rules.iter().any(|rule| matches!(rule, Rule::Certificate(_))) {
                let text = "no client shows a certificate: [tls] has no `client_authority`".to_owned();
                warnings.push((place_of(entry, "certificate"), text));
            }
        }
        for (place, text) in warnings {
            self.warning(place, text);
        }
    }

    /// Warns of weights that nothing heeds.
    pub fn weights_count(&mut self) {
        let weighed = self.draft.tenants.iter().chain(&self.draft.groups).find(|entry| entry.get("weight").is_some());
        let Some(weighed) = weighed else { return };
        let mut warnings = Vec::new();
        for (entry, device) in self.draft.devices.iter().zip(&self.building.config.devices) {
            if let Some(kind) = device.queue.elevator.filter(|kind| !kind.info().groups) {
                let knowing = hoistway_core::Kind::ALL.iter().map(|kind| kind.info()).filter(|info| info.groups);
                let text = format!(
                    "{} knows no groups, so that no weight counts on the device `{}` ({}); {} know them",
                    kind.info().name,
                    device.queue.name,
                    place_of(weighed, "weight"),
                    list(knowing.map(|info| info.name))
                );
                warnings.push((place_of(entry, "elevator"), text));
            }
        }
        for (place, text) in warnings {
            self.warning(place, text);
        }
    }
}

fn same_way(one: &Listen, other: &Listen) -> bool {
    match (one, other) {
        (Listen::Unix { path: one, .. }, Listen::Unix { path: other, .. }) => one == other,
        (Listen::Tcp(one), Listen::Tcp(other)) => one == other,
        _ => false,
    }
}

/// Where a key stands, or else its entry.
pub(crate) fn place_of(entry: &Entry, key: &str) -> Place {
    entry.get(key).map_or(&entry.place, |said| &said.place).clone()
}

/// The texts of a key's value, one or a list.
fn texts(said: Option<&Said>) -> Vec<(&str, Place)> {
    let Some(said) = said else { return Vec::new() };
    let each = match &said.value {
        crate::draft::Value::List(each) => each.as_slice(),
        _ => std::slice::from_ref(said),
    };
    each.iter().filter_map(|said| Some((said.text()?, said.place.clone()))).collect()
}
