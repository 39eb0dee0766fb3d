//! Parses `[[export]]` and `[[group]]` sections.

use super::terms::{limits, weight};
use crate::builder::ConfigBuilder;
use crate::draft::{Draft, Entry};
use crate::model::{ExportConfig, GroupConfig};
use crate::value;

impl ConfigBuilder<'_> {
    pub(super) fn export(&mut self, entry: &Entry, draft: &Draft) {
        let only = draft.only_device().map(str::to_owned);
        let mut fields = self.fields(entry);
        if entry.get("name").is_none() {
            fields.missing("name", "clients request an export by its name; \"\" is the default export");
        }
        let name = fields.read("name", value::export_name).unwrap_or_default();
        let device = fields.read("device", value::text);
        if entry.get("device").is_none() && draft.devices.len() > 1 && only.is_none() {
            fields.missing("device", "with more than one device, an export names the device that it is on");
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
            fields.missing("name", "tenants refer to the group by its name");
        }
        let name = fields.read("name", value::name);
        if name.as_deref() == Some("root") {
            let location = fields.location("name");
            fields.problem(&location, "`name` is \"root\": this name is reserved for the root of all groups".into());
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
