//! The measured drives against the sets that they were imported from: `testdata/sets`, which holds
//! the figures of DiskSim's model files.
//!
//! Every figure of a profile is that of its set, or is listed here with the reason.

use std::collections::BTreeMap;

use hoistway_drive::Profile;
use serde_json::Value;
use toml::Table;

/// The measured drives.
const NAMES: [&str; 13] = [
    "atlas10k",
    "atlas_III",
    "barracuda_st32171w",
    "cheetah15k5_146",
    "cheetah4LP",
    "cheetah9LP",
    "dec_rz26",
    "hp_c2490a",
    "hp_c3323a",
    "ibm18es",
    "maxtor_atlas10kV_300",
    "st41601n",
    "wd_4tb_7200",
];

/// Reason for a moved border of two zones.
const SMALL: &str = "the zone of the set is smaller than the sectors mapped to it";
/// Figures that differ from the set: drive, key, value of the profile, value of the set, reason.
const DIFFERENCES: [(&str, &str, &str, &str, &str); 26] = [
    ("hp_c2490a", "interface.sector_ms", "0.14841", "0", "the bus of the validation set"),
    ("dec_rz26", "interface.sector_ms", "0.07069", "0", "the bus of the validation set"),
    ("st41601n", "interface.sector_ms", "0.09552", "0", "the bus of the validation set"),
    ("hp_c3323a", "interface.sector_ms", "0.147", "0", "fitted to the recording"),
    ("hp_c3323a", "overhead.read_hit_after_read_ms", "0.573", "0.348", "fitted to the recording"),
    ("cheetah4LP", "overhead.read_hit_after_read_ms", "0.255", "0.068", "fitted to the recording"),
    ("cheetah4LP", "overhead.write_hit_after_write_ms", "0.46", "0.095", "fitted to the recording"),
    ("cheetah15k5_146", "interface.sector_ms", "0.00256", "-0.015", "Fibre Channel; the sign is unexplained"),
    ("wd_4tb_7200", "interface.sector_ms", "0.001707", "-0.015", "SATA; the sign is unexplained"),
    ("cheetah15k5_146", "disk.rpm", "15017.4771", "15020", "fitted to the recording"),
    ("cheetah15k5_146", "overhead.read_miss_after_write_ms", "0", "0.105657", "the recording, with the buffer off"),
    ("cheetah15k5_146", "overhead.write_miss_after_read_ms", "0.35", "0.62867", "the recording, with the buffer off"),
    ("cheetah15k5_146", "overhead.write_miss_after_write_ms", "0.35", "0.22798", "the recording, with the buffer off"),
    ("wd_4tb_7200", "disk.capacity_sectors", "7652829920", "7725673570", "the zones of the set hold fewer"),
    ("wd_4tb_7200", "disk.track_skew_revolutions", "0.225", "0.141667", "copied there from another drive"),
    ("hp_c2490a", "zone.10.last_cylinder", "2628", "2629", "the drive ends at 2628"),
    ("maxtor_atlas10kV_300", "zone.3.last_cylinder", "11836", "11864", SMALL),
    ("maxtor_atlas10kV_300", "zone.4.first_cylinder", "11837", "11865", SMALL),
    ("maxtor_atlas10kV_300", "zone.4.last_cylinder", "15347", "15344", SMALL),
    ("maxtor_atlas10kV_300", "zone.5.first_cylinder", "15348", "15345", SMALL),
    ("maxtor_atlas10kV_300", "zone.11.last_cylinder", "44885", "44896", SMALL),
    ("maxtor_atlas10kV_300", "zone.12.first_cylinder", "44886", "44897", SMALL),
    ("maxtor_atlas10kV_300", "zone.17.last_cylinder", "65657", "65664", SMALL),
    ("maxtor_atlas10kV_300", "zone.18.first_cylinder", "65658", "65665", SMALL),
    ("maxtor_atlas10kV_300", "zone.19.last_cylinder", "69735", "69744", SMALL),
    ("maxtor_atlas10kV_300", "zone.20.first_cylinder", "69736", "69745", SMALL),
];

/// A set as the names and values of a profile.
fn of_set(name: &str) -> BTreeMap<String, f64> {
    let path = format!("{}/testdata/sets/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let set: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{path}: {value} is no number"));
    let mut figures = BTreeMap::new();
    for (key, from) in [
        ("disk.rpm", "rpm"),
        ("disk.surfaces", "surfaces"),
        ("disk.cylinders", "cylinders"),
        ("disk.capacity_sectors", "lbns"),
        ("disk.head_switch_ms", "head_switch_ms"),
        ("disk.write_settle_ms", "write_settle_add_ms"),
    ] {
        figures.insert(key.to_owned(), number(&set[from]));
    }
    if let Some(skew) = set["skew_rev_per_track"].as_f64() {
        figures.insert("disk.track_skew_revolutions".to_owned(), skew);
    }
    let drive = &set["drive"];
    for (key, from) in [
        ("interface.sector_ms", "Bulk sector transfer time"),
        ("buffer.segments", "Number of buffer segments"),
        ("buffer.segment_sectors", "Segment size (in blks)"),
        ("buffer.read_ahead_sectors", "Maximum read-ahead (blks)"),
        ("buffer.read_ahead_until", "Buffer continuous read"),
        ("buffer.immediate_read", "Immediate buffer read"),
    ] {
        figures.insert(key.to_owned(), number(&drive[from]));
    }
    let caches = number(&drive["Fast write level"]) > 0.0;
    figures.insert("buffer.write_cache".to_owned(), f64::from(u8::from(caches)));
    if caches {
        figures.insert("buffer.write_segments".to_owned(), number(&drive["Maximum number of write segments"]));
    }
    for (op, from) in [("read", "Read"), ("write", "Write")] {
        for kind in ["hit", "miss"] {
            for last in ["read", "write"] {
                let value = number(&drive[format!("{from} {kind} over. after {last}")]);
                figures.insert(format!("overhead.{op}_{kind}_after_{last}_ms"), value);
            }
        }
    }
    for (index, zone) in set["zones"].as_array().expect("zones").iter().enumerate() {
        for (key, from) in [
            ("first_cylinder", "first_cyl"),
            ("last_cylinder", "last_cyl"),
            ("sectors_per_track", "spt"),
            ("track_skew_sectors", "track_skew_sectors"),
            ("change_skew_sectors", "cyl_skew_sectors"),
            ("offset_sectors", "first_block_offset"),
            ("empty_front_sectors", "empty_front"),
        ] {
            if let Some(value) = zone.get(from) {
                figures.insert(format!("zone.{index}.{key}"), number(value));
            }
        }
    }
    for point in set["seek_ms"].as_array().expect("a seek table") {
        figures.insert(format!("seek.{}", number(&point[0])), number(&point[1]));
    }
    figures
}

/// A value of a profile as a number.
fn figure(value: &toml::Value) -> Option<f64> {
    match value {
        toml::Value::Float(number) => Some(*number),
        toml::Value::Integer(number) => Some(*number as f64),
        toml::Value::Boolean(yes) => Some(f64::from(u8::from(*yes))),
        // DiskSim's levels of "Buffer continuous read".
        toml::Value::String(until) => ["track", "cylinder", "segment", "next-track"]
            .iter()
            .position(|known| known == until)
            .map(|at| at as f64 + 1.0),
        _ => None,
    }
}

/// The text and the figures of a profile by the same names.
fn of_profile(name: &str) -> (&'static str, BTreeMap<String, f64>) {
    let text = Profile::builtin_toml(name).unwrap_or_else(|| panic!("{name} is built in"));
    let table: Table = text.parse().expect("TOML");
    let mut figures = BTreeMap::new();
    for section in ["disk", "overhead", "interface", "buffer"] {
        for (key, value) in table[section].as_table().expect("a table") {
            figures.extend(figure(value).map(|value| (format!("{section}.{key}"), value)));
        }
    }
    if let Some(revolution_ns) = figures.remove("disk.revolution_ns") {
        figures.insert("disk.rpm".to_owned(), 6e10 / revolution_ns);
    }
    let sector_ns = figures.remove("interface.sector_ns").expect("an interface");
    figures.insert("interface.sector_ms".to_owned(), sector_ns / 1e6);
    for (index, zone) in table["zone"].as_array().expect("zones").iter().enumerate() {
        for (key, value) in zone.as_table().expect("a zone") {
            figures.extend(figure(value).map(|value| (format!("zone.{index}.{key}"), value)));
        }
    }
    for point in table["seek"]["points_ms"].as_array().expect("a seek table") {
        let point: Vec<f64> = point.as_array().expect("a point").iter().filter_map(figure).collect();
        figures.insert(format!("seek.{}", point[0]), point[1]);
    }
    (text, figures)
}

/// Returns true if the comment of the profile has the value of the set at a distance of the seek
/// table: the import made the table rise.
fn is_noted(text: &str, distance: &str, value: f64) -> bool {
    let start = format!("[{distance}, ");
    let mut values = text.split(&start).skip(1).filter_map(|rest| rest.split(']').next()?.parse::<f64>().ok());
    values.any(|noted| (noted - value).abs() < 1e-9)
}

#[test]
fn every_figure_of_an_imported_drive_is_that_of_its_source_or_has_a_reason() {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    let mut unused: Vec<(&str, &str)> = DIFFERENCES.iter().map(|difference| (difference.0, difference.1)).collect();
    for name in NAMES {
        let (text, profile) = of_profile(name);
        for (key, expected) in of_set(name) {
            // A missing key has the value 0: an interface without time, no empty sectors.
            let found = profile.get(&key).copied().unwrap_or(0.0);
            compared += 1;
            if (found - expected).abs() <= 1e-6 * expected.abs().max(1.0) {
                continue;
            }
            if key.strip_prefix("seek.").is_some_and(|distance| is_noted(text, distance, expected)) {
                continue;
            }
            let listed = DIFFERENCES.iter().find(|difference| difference.0 == name && difference.1 == key);
            let near = |text: &str, value: f64| text.parse::<f64>().is_ok_and(|listed| (listed - value).abs() < 1e-4);
            if listed.is_some_and(|listed| near(listed.2, found) && near(listed.3, expected) && !listed.4.is_empty()) {
                unused.retain(|difference| *difference != (name, key.as_str()));
                continue;
            }
            wrong.push(format!("{name}: {key} is {found}, and {expected} in the set"));
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} figures differ without a reason:\n{}", wrong.len(), wrong.join("\n"));
    assert!(unused.is_empty(), "no longer different: {unused:?}");
    assert!(compared > 4000, "{compared} figures");
}
