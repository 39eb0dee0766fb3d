//! The JSON fields of a decision file. Their meaning and validity are checked in `scenario`.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::decision::{Domain, MergeKind, PlugEvent};

/// A line of a decision file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenario {
    pub name: String,
    pub source: String,
    #[serde(rename = "scheduler")]
    pub _scheduler: String,
    pub hz: u32,
    pub rotational: bool,
    pub depth: u32,
    #[serde(rename = "disk_sectors")]
    pub _disk_sectors: u64,
    pub tunables: RawTunables,
    pub processes: Vec<RawProcess>,
    pub requests: Vec<RawRequest>,
    #[serde(default)]
    pub exits: Vec<RawExit>,
    #[serde(default)]
    pub ioprio_changes: Vec<RawPriorityChange>,
    #[serde(default)]
    pub groups: Vec<RawGroup>,
    #[serde(default)]
    pub group_changes: Vec<RawGroupChange>,
    #[serde(default)]
    pub nomerge: bool,
    pub dispatch: Vec<(u32, u64)>,
    pub complete: Option<Vec<(u32, u64)>>,
    pub merge: Option<Vec<(u32, u32, MergeKind, u64)>>,
    pub plug: Option<Vec<(PlugEvent, u64)>>,
    pub sleeps: Option<Vec<(u32, u64)>>,
    pub late: Option<Vec<(u32, u64, u64)>>,
    pub token_depth: Option<Vec<(Domain, u32, u64)>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProcess {
    pub pid: u32,
    pub class: RawClass,
    pub level: u8,
    #[serde(default)]
    pub group: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawClass {
    Rt,
    Be,
    Idle,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawOp {
    Read,
    Write,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRequest {
    pub id: u32,
    pub pid: u32,
    pub op: RawOp,
    pub sync: bool,
    pub sector: u64,
    pub sectors: u32,
    pub at_ns: Option<u64>,
    pub after: Option<u32>,
    pub think_ns: Option<u64>,
    pub service_ns: Option<u64>,
    #[serde(default)]
    pub idle: bool,
    #[serde(default)]
    pub prio: bool,
    #[serde(default)]
    pub unplug: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawExit {
    pub pid: u32,
    pub after: u32,
    pub think_ns: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPriorityChange {
    pub pid: u32,
    pub class: RawClass,
    pub level: u8,
    pub at_ns: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGroup {
    pub id: u32,
    pub parent: u32,
    pub weight: u32,
    pub leaf_weight: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawGroupChange {
    pub pid: u32,
    pub group: u32,
    pub at_ns: u64,
}

/// Tunables in the order of the file, in which they are set.
#[derive(Debug, Default)]
pub(super) struct RawTunables(pub Vec<(String, i64)>);

impl<'de> Deserialize<'de> for RawTunables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = RawTunables;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tunables and their whole values")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RawTunables, M::Error> {
                let mut tunables = Vec::new();
                while let Some(tunable) = map.next_entry()? {
                    tunables.push(tunable);
                }
                Ok(RawTunables(tunables))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
