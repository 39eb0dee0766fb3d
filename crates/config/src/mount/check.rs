//! What has to fit together in the configuration of a mount.

use hoistway_core::{Class, Kind};

use super::build::MountBuilding;
use super::{MountRule, MountTenant, Ops};
use crate::check::{Check, place_of};
use crate::draft::{Draft, Entry, Problem};
use crate::rules::{is_within, matches};

/// Looks at everything that more than one entry says.
pub(super) fn together(draft: &Draft, building: &mut MountBuilding<'_>) {
    let mut check = Check::new(draft, &mut building.common);
    check.names_are_unique();
    check.references();
    check.parents_do_not_loop();
    check.weights_count();
    let (problems, warnings) = (bounds(draft, building), rules_can_match(draft, &building.mount.tenants));
    building.common.problems.extend(problems);
    building.common.warnings.extend(warnings);
    building.common.warnings.extend(terms_count(draft, building));
}

/// What cannot be so.
fn bounds(draft: &Draft, building: &MountBuilding<'_>) -> Vec<Problem> {
    let terms = &building.mount.mount;
    let mut problems = Vec::new();
    if let (Some(background), Some(limit)) = (terms.dirty_background, terms.dirty_limit)
        && background > limit
    {
        let text = format!(
            "writers wait at `dirty_limit` ({limit} bytes), which comes before `dirty_background` ({background} bytes)"
        );
        problems.push(Problem { place: place_of(&draft.mount, "dirty_background"), text });
    }
    for (entry, tenant) in draft.tenants.iter().zip(&building.mount.tenants) {
        let told = ["class", "level", "weight", "reserve", "limit", "limit_iops"];
        if let (true, Some(key)) = (tenant.pass, told.iter().find(|key| entry.get(key).is_some())) {
            let text = format!("`{key}` is given, and `schedule` is false: nothing of the tenant is scheduled");
            problems.push(Problem { place: place_of(entry, key), text });
        }
        let reads = tenant.rules.iter().any(|rule| matches!(rule, MountRule::Op(ops) if !ops.read));
        if tenant.pass && reads {
            let text =
                "whether a file is scheduled is known when it is opened: with `schedule` false, `op` has no \"read\""
                    .to_owned();
            problems.push(Problem { place: place_of(entry, "op"), text });
        }
    }
    problems
}

/// Tenants that nothing can be.
fn rules_can_match(draft: &Draft, tenants: &[MountTenant]) -> Vec<Problem> {
    let mut warnings = Vec::new();
    for (at, (entry, tenant)) in draft.tenants.iter().zip(tenants).enumerate() {
        let earlier = tenants.iter().take(at).find(|earlier| has_all_of(earlier, tenant));
        if let Some(earlier) = earlier {
            let why = if earlier.rules.is_empty() { "has no rule" } else { "has all that it asks for" };
            let text = format!("nothing is the tenant `{}`: `{}` comes before it and {why}", tenant.name, earlier.name);
            warnings.push(Problem { place: entry.place.clone(), text });
        }
    }
    warnings
}

/// Whether all that a tenant's rules hold for, another's hold for as well.
fn has_all_of(earlier: &MountTenant, tenant: &MountTenant) -> bool {
    earlier.rules.iter().all(|wide| tenant.rules.iter().any(|narrow| implies(narrow, wide)))
}

fn implies(narrow: &MountRule, wide: &MountRule) -> bool {
    match (narrow, wide) {
        (MountRule::Cgroup(narrow), MountRule::Cgroup(wide)) => is_within(narrow, wide),
        // A star in the narrow one is a character like others here: what the wide one has for it
        // holds for all that it stands for.
        (MountRule::Comm(narrow), MountRule::Comm(wide))
        | (MountRule::Command(narrow), MountRule::Command(wide))
        | (MountRule::Path(narrow), MountRule::Path(wide)) => matches(wide, narrow),
        (MountRule::Op(narrow), MountRule::Op(wide)) => {
            Ops::NAMES.iter().all(|(_, one)| !narrow.has(*one) || wide.has(*one))
        }
        (narrow, wide) => narrow == wide,
    }
}

/// Terms that have no effect.
fn terms_count(draft: &Draft, building: &MountBuilding<'_>) -> Vec<Problem> {
    let mut warnings = Vec::new();
    let kind = building.mount.mount.elevator;
    let warn = |entry: &Entry, key: &str, text: String| Problem { place: place_of(entry, key), text };
    for (entry, tenant) in draft.tenants.iter().zip(&building.mount.tenants) {
        let class = tenant.terms.priority.class();
        if let (Some(kind), true) = (kind.filter(|kind| !heeds_classes(*kind)), entry.get("class").is_some()) {
            let text = format!("{} knows no priorities: no `class` counts under it", kind.info().name);
            warnings.push(warn(entry, "class", text));
        }
        if class == Class::Idle && tenant.terms.reserve.is_some() {
            let text = format!(
                "the tenant `{}` is of the class idle and reserves bandwidth: it has that all the same",
                tenant.name
            );
            warnings.push(warn(entry, "reserve", text));
        }
        let limit = tenant.terms.limits.bytes.map(|limit| limit.per_second);
        if let (Some(reserve), Some(limit)) = (tenant.terms.reserve, limit)
            && reserve.bytes_per_second > limit
        {
            let text = format!(
                "{} bytes a second are reserved, and the tenant may have no more than {limit}",
                reserve.bytes_per_second
            );
            warnings.push(warn(entry, "reserve", text));
        }
    }
    let weighed = draft.tenants.iter().chain(&draft.groups).find(|entry| entry.get("weight").is_some());
    if let (Some(kind), Some(entry), true) =
        (kind.filter(|kind| !kind.info().groups), weighed, building.mount.devices.is_empty())
    {
        let text = format!("{} knows no groups: no weight counts under it", kind.info().name);
        warnings.push(warn(entry, "weight", text));
    }
    warnings
}

/// Whether an elevator serves classes and levels differently.
fn heeds_classes(kind: Kind) -> bool {
    !matches!(
        kind,
        Kind::Noop | Kind::Linus | Kind::Deadline | Kind::Anticipatory | Kind::Sfq | Kind::CfqV1 | Kind::Kyber
    )
}
