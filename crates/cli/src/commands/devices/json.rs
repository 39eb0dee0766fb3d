//! Devices as JSON: docs/devices.md describes the fields.

use anyhow::Result;
use hoistway_machine::{BlockDevice, Root, Row, directly_below, openers, queues_below, setting};
use serde_json::{Map, Value, json};

use super::rows::rows;

/// All of them.
pub fn all(root: &Root, devices: &[BlockDevice]) -> Result<Value> {
    let told: Result<Vec<Value>> = devices.iter().map(|device| entry(root, devices, device)).collect();
    Ok(json!({ "schema": 1, "devices": told? }))
}

/// One alone, with the processes that have it open.
pub fn one(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> Result<Value> {
    let mut entry = entry(root, devices, device)?;
    entry["open_by"] = serde_json::to_value(openers(root, device))?;
    Ok(json!({ "schema": 1, "devices": [entry] }))
}

fn entry(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> Result<Value> {
    let mut entry = serde_json::to_value(device)?;
    let names = |of: Vec<&BlockDevice>| of.into_iter().map(|device| device.name.clone()).collect::<Vec<_>>();
    entry["lies_on"] = json!(names(directly_below(root, devices, device)));
    entry["queued_at"] = json!(names(queues_below(root, devices, device)));
    let Some(queue) = &device.queue else { return Ok(entry) };
    entry["queue"]["depth"] = json!(queue.depth());
    let known = rows(queue.scheduler.as_deref().unwrap_or("none"));
    for tunable in entry["queue"]["tunables"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        let row = known.iter().find(|row| tunable["name"] == row.name);
        explain(tunable, row);
    }
    for attribute in entry["queue"]["settings"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        let row = attribute["name"].as_str().and_then(setting);
        explain(attribute, row);
    }
    Ok(entry)
}

/// What is known of a value besides what the kernel says.
fn explain(attribute: &mut Map<String, Value>, row: Option<&Row>) {
    let Some(row) = row else { return };
    if !row.unit.is_empty() {
        attribute.insert("unit".to_owned(), json!(row.unit));
    }
    if let Some(default) = row.default {
        attribute.insert("default".to_owned(), json!(default));
    }
    if !row.words.is_empty() {
        attribute.insert("words".to_owned(), json!(row.words));
    } else if row.max > row.min {
        attribute.insert("min".to_owned(), json!(row.min));
        attribute.insert("max".to_owned(), json!(row.max));
    }
    attribute.insert("meaning".to_owned(), json!(row.meaning));
    if !row.trade_off.is_empty() {
        attribute.insert("trade_off".to_owned(), json!(row.trade_off));
    }
}
