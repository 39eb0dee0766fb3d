//! Exports and groups.

use super::tenant::limits;
use crate::building::Building;
use crate::draft::{Draft, Entry, Value};
use crate::model::{ExportConfig, GroupConfig};
use crate::value;

impl Building<'_> {
    pub(super) fn export(&mut self, entry: &Entry, draft: &Draft) {
        let only = draft.only_device().map(str::to_owned);
        let mut fields = self.fields(entry);
        if entry.get("name").is_none() {
            fields.missing("name", "clients ask for it; \"\" is the export of clients that name none");
        }
        let name = fields.read("name", value::export_name).unwrap_or_default();
        let device = fields.read("device", value::text);
        if entry.get("device").is_none() && draft.devices.len() > 1 && only.is_none() {
            fields.missing("device", "with more than one device it says where the export lies");
        }
        let export = ExportConfig {
            name,
            description: fields.read("description", value::description).unwrap_or_default(),
            device: device.or(only).unwrap_or_default(),
            offset: fields.read("offset", value::sectors).unwrap_or(0),
            size: fields.read("size", |value| match value::sectors(value)? {
                0 => Err("an export has at least one sector".into()),
                bytes => Ok(bytes),
            }),
            read_only: fields.read("read_only", value::switch).unwrap_or(false),
            tenants: fields.read_each("tenants", value::text).into_iter().map(|(name, _)| name).collect(),
        };
        self.config.exports.push(export);
    }

    pub fn group(&mut self, entry: &Entry) {
        let mut fields = self.fields(entry);
        if entry.get("name").is_none() {
            fields.missing("name", "tenants say by it which group they are part of");
        }
        let name = fields.read("name", value::name);
        if name.as_deref() == Some("root") {
            let place = fields.place("name");
            fields.problem(&place, "`name` is \"root\": the group that all are part of is called so".into());
        }
        let group = GroupConfig {
            name: name.unwrap_or_default(),
            weight: fields.read("weight", weight).unwrap_or(100),
            limits: limits(&mut fields),
            parent: fields.read("parent", value::name),
        };
        self.config.groups.push(group);
    }
}

/// A share among siblings.
pub(crate) fn weight(value: &Value) -> value::Understood<u16> {
    let weight = value::whole(value, 1, 1000)?;
    u16::try_from(weight).map_err(|_| "it takes 1 to 1000".into())
}
