//! JSON objects whose keys are data: options, percentiles, bins. They keep the order of their
//! entries.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};
use std::{collections::BTreeMap, fmt, marker::PhantomData};

/// Options and their values, in the form of a job file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(pub Vec<(String, String)>);

impl Options {
    /// The options of a job that fio prints: all but flags without a value.
    pub fn printed(options: &[(String, String)]) -> Options {
        Options(options.iter().filter(|(_, value)| !value.is_empty()).cloned().collect())
    }
}

impl Serialize for Options {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Pairs { expected: "options and their values", value: PhantomData }).map(Options)
    }
}

/// Percentiles in percent, each with the latency in nanoseconds that this share of requests does
/// not exceed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentiles(pub Vec<(f64, u64)>);

impl Serialize for Percentiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (percentile, latency_ns) in &self.0 {
            map.serialize_entry(&format!("{percentile:.6}"), latency_ns)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Percentiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pairs: Vec<(String, u64)> =
            deserializer.deserialize_map(Pairs { expected: "percentiles and latencies", value: PhantomData })?;
        let number =
            |text: String| text.parse::<f64>().map_err(|_| D::Error::custom(format!("`{text}` is not a percentile")));
        pairs.into_iter().map(|(key, value)| Ok((number(key)?, value))).collect::<Result<_, _>>().map(Percentiles)
    }
}

/// Number of requests in each bin, by the latency in nanoseconds that stands for the bin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bins(pub BTreeMap<u64, u64>);

impl Serialize for Bins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Bins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Bins)
    }
}

/// Reads an object into pairs, in the order of the object.
struct Pairs<V> {
    /// Description of the object, for error messages.
    expected: &'static str,
    value: PhantomData<V>,
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for Pairs<V> {
    type Value = Vec<(String, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs)
    }
}
