//! The reference of drive files says what the parser does: every key is known, every range is
//! enforced, and every default is the behaviour without the key.

use hoistway_drive::Profile;
use hoistway_drive::reference::{Key, KeyTable, key_tables, markdown};
use toml::{Table, Value};

/// A disk with all of its tables and only the required keys, but for `hangs`.
const DISK: &str = r#"
disk = { rpm = 7200, surfaces = 2, cylinders = 100, capacity_sectors = 2000, mapping = "cylinder", head_switch_ms = 1 }
seek = { form = "lee-katz", single_ms = 1, average_ms = 5, full_ms = 10 }
zone = [{ first_cylinder = 0, last_cylinder = 99, sectors_per_track = 10 }]
overhead = {}
interface = {}
buffer = { segments = 2, segment_sectors = 64, read_ahead_until = "segment", write_cache = true }
queue = { depth = 8, policy = "satf" }
faults = { hangs = [{ at_ms = 5, for_ms = 10 }] }
"#;

/// A disk with the keys of the other mapping and of the other computed seek curve.
const OTHER_DISK: &str = r#"
disk = { rpm = 7200, surfaces = 2, cylinders = 100, capacity_sectors = 2000, mapping = "serpentine", run_cylinders = 10, head_switch_ms = 1 }
seek = { form = "ruemmler-wilkes", knee_cylinders = 50, a_ms = 1, b_ms = 0.1, c_ms = 1, e_ms = 0.02 }
zone = [{ first_cylinder = 0, last_cylinder = 99, sectors_per_track = 10 }]
"#;

/// A disk with a measured seek curve.
const TABLE_DISK: &str = r#"
disk = { rpm = 7200, surfaces = 2, cylinders = 100, capacity_sectors = 2000, mapping = "cylinder", head_switch_ms = 1 }
seek = { form = "table", points_ms = [[1, 1], [99, 5]] }
zone = [{ first_cylinder = 0, last_cylinder = 99, sectors_per_track = 10 }]
"#;

const FLASH: &str = r#"
[flash]
depth = 32
capacity_sectors = 16000
command_us = 5
link_mb_s = 500
channels = 1
channel_mb_s = 200
dies = 1
blocks_per_plane = 64
pages_per_block = 64
page_bytes = 4096
page_read_us = [50]
program_us = 500
erase_us = 3000
spare_factor = 0.2
precondition = "fresh"
buffer_kib = 64
"#;

const CLOUD: &str = r#"
[cloud]
capacity_sectors = 16000
depth = 64
unit_bytes = 262144
operations = { rate_per_s = 3000 }
bytes = { rate_per_s = 131072000 }
latency = { floor_us = 500 }
"#;

const ARRAY: &str = r#"
[array]
depth = 64
command_us = 10
link_sector_ns = 100
chunk_sectors = 128
cache = { sectors = 1024, battery = true, high_part = 0.8, low_part = 0.2, idle_ms = 10, order = "sweep" }
member = [{ drive = "sata-7200-2006" }, { drive = "sata-7200-2006" }]
"#;

const NULL: &str = "null = { service_ns = 1000, depth = 8, capacity_sectors = 2000 }";

const SAMPLES: [&str; 7] = [DISK, OTHER_DISK, TABLE_DISK, FLASH, CLOUD, ARRAY, NULL];

/// A sample as a table of TOML, with the keys that all files need.
fn sample(text: &str) -> Table {
    let mut table: Table = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
    for key in ["name", "what", "source"] {
        table.insert(key.to_owned(), Value::from("x"));
    }
    table
}

/// The named table of a file, the first one of a list.
fn part<'a>(file: &'a mut Table, heading: &str) -> Option<&'a mut Table> {
    let mut at = file;
    for name in heading.trim_matches(['[', ']']).split('.').filter(|name| !name.is_empty()) {
        at = match at.get_mut(name)? {
            Value::Table(table) => table,
            Value::Array(list) => list.first_mut()?.as_table_mut()?,
            _ => return None,
        };
    }
    Some(at)
}

fn read(file: &Table) -> Result<Profile, String> {
    Profile::from_toml(&file.to_string(), "x.toml").map_err(|error| error.to_string())
}

/// The samples that have the table, changed there.
fn changed(table: &KeyTable, change: impl Fn(&mut Table)) -> Vec<Table> {
    let files = SAMPLES.iter().filter_map(|text| {
        let mut file = sample(text);
        change(part(&mut file, table.heading)?);
        Some(file)
    });
    files.collect()
}

/// The lowest and the highest value of a range such as `1 to 255` or `0 to 1000 revolutions`.
fn range(takes: &str) -> Option<(f64, f64)> {
    let (low, high) = takes.trim_end_matches(" revolutions").split_once(" to ")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

/// A number of TOML: an integer if it is whole, as only some keys take fractions.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 { Value::from(value as i64) } else { Value::from(value) }
}

/// The value of a default that the reference writes out: a number, or a value in back-quotes.
fn literal(default: &str) -> Option<Value> {
    let quoted = default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
    let text = quoted.or_else(|| default.parse::<f64>().ok().map(|_| default))?;
    format!("x = {text}").parse::<Table>().ok()?.remove("x")
}

fn all_keys() -> impl Iterator<Item = (&'static KeyTable, &'static Key)> {
    key_tables().iter().flat_map(|table| table.keys.iter().map(move |key| (table, key)))
}

#[test]
fn the_samples_are_drives() {
    for text in SAMPLES {
        read(&sample(text)).unwrap_or_else(|error| panic!("{error}: {text}"));
    }
}

#[test]
fn an_unknown_key_gets_the_keys_of_its_table_as_the_reference_lists_them() {
    for table in key_tables() {
        let files = changed(table, |keys| drop(keys.insert("nonsense".to_owned(), Value::from(1))));
        assert!(!files.is_empty(), "no sample has {}", table.heading);
        let error = read(&files[0]).expect_err("no table has this key");
        let listed = error.rsplit_once("expected ").map(|(_, rest)| rest).unwrap_or_default();
        let mut listed: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
        let mut keys: Vec<&str> = table.keys.iter().map(|key| key.name).collect();
        listed.sort_unstable();
        keys.sort_unstable();
        assert_eq!(listed, keys, "{}: {error}", table.heading);
    }
}

#[test]
fn every_range_of_the_reference_is_the_parsers() {
    let mut ranges = 0;
    for (table, key) in all_keys() {
        let Some((low, high)) = range(key.takes) else { continue };
        // -1 is refused by the types of most keys, with an error that does not name the range.
        // Not high + 1, which is no other number of this type for the largest ranges.
        let beyond = (high * 1.01).ceil().max(high + 1.0);
        for value in [Some(beyond), (low != 0.0).then_some(low - 1.0)].into_iter().flatten() {
            let files = changed(table, |keys| {
                if let Some(other) = key.default.strip_prefix("this or ") {
                    keys.remove(other.trim_matches('`'));
                }
                keys.insert(key.name.to_owned(), number(value));
            });
            let errors: Vec<String> = files.iter().filter_map(|file| read(file).err()).collect();
            let refused = |error: &String| {
                error.contains(&format!("{}` is ", key.name)) && error.ends_with(&format!(": {}", key.takes))
            };
            // The begin of a hang is named by the error of the whole hang.
            let hang = |error: &String| table.heading == "[faults.hangs]" && error.contains(key.takes);
            assert!(errors.iter().any(|error| refused(error) || hang(error)), "{key:?} = {value}: {errors:?}");
            ranges += 1;
        }
    }
    assert!(ranges > 100, "{ranges} ranges were tried");
}

#[test]
fn every_value_that_the_reference_lists_is_taken_and_another_one_is_not() {
    let mut tried = 0;
    for (table, key) in all_keys().filter(|(_, key)| key.takes.starts_with("`\"")) {
        let listed = key.takes.split(", ").map(|value| value.trim_matches(['`', '"']));
        for value in listed.chain(["nonsense"]) {
            let files = changed(table, |keys| drop(keys.insert(key.name.to_owned(), Value::from(value))));
            let unknown = |error: &String| error.contains(&format!("unknown variant `{value}`"));
            let errors: Vec<String> = files.iter().filter_map(|file| read(file).err()).collect();
            assert_eq!(errors.iter().any(unknown), value == "nonsense", "{key:?} = {value}: {errors:?}");
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried} values were tried");
}

#[test]
fn every_default_of_the_reference_is_the_parsers() {
    let mut defaults = 0;
    for (table, key) in all_keys() {
        let Some(value) = literal(key.default) else { continue };
        for (without, with) in changed(table, |keys| drop(keys.remove(key.name))).iter().zip(&changed(table, |keys| {
            keys.insert(key.name.to_owned(), value.clone());
        })) {
            let Ok(profile) = read(without) else { continue };
            assert_eq!(read(with), Ok(profile), "{key:?}");
            defaults += 1;
        }
    }
    assert!(defaults > 50, "{defaults} defaults were tried");
}

#[test]
fn a_required_key_cannot_be_left_out() {
    for (table, key) in all_keys().filter(|(_, key)| key.default == "required") {
        for file in changed(table, |keys| drop(keys.remove(key.name))) {
            let error = read(&file).expect_err(key.name);
            assert!(error.contains(key.name), "{key:?}: {error}");
        }
    }
}

#[test]
fn the_markdown_has_a_row_for_every_key() {
    let text = markdown();
    for (_, key) in all_keys() {
        assert!(text.contains(&format!("| `{}` | {} | {} |", key.name, key.takes, key.default)), "{key:?}");
    }
}
