//! A drive file before its checks, with the position of every value that can be invalid.

mod array;
mod cloud;
mod disk;
mod faults;
mod flash;

use serde::Deserialize;
use toml::Spanned;

pub(super) use array::{RawArray, RawArrayCache, RawMember};
pub(super) use cloud::{RawBucket, RawCloud, RawLatency};
pub(super) use disk::{RawBuffer, RawDisk, RawForm, RawInterface, RawMapping, RawOverhead, RawQueue, RawSeek, RawZone};
pub(super) use faults::RawFaults;
pub(super) use flash::RawFlash;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawProfile {
    pub(super) name: Spanned<String>,
    pub(super) what: String,
    pub(super) source: String,
    pub(super) licence: Option<String>,
    #[serde(default)]
    pub(super) inputs: Vec<String>,
    pub(super) base: Option<Spanned<String>>,
    pub(super) null: Option<Spanned<RawNull>>,
    pub(super) array: Option<Spanned<RawArray>>,
    pub(super) cloud: Option<Spanned<RawCloud>>,
    pub(super) flash: Option<Spanned<RawFlash>>,
    pub(super) disk: Option<Spanned<RawDisk>>,
    pub(super) seek: Option<Spanned<RawSeek>>,
    pub(super) overhead: Option<RawOverhead>,
    pub(super) interface: Option<RawInterface>,
    pub(super) buffer: Option<RawBuffer>,
    pub(super) queue: Option<Spanned<RawQueue>>,
    pub(super) faults: Option<Spanned<RawFaults>>,
    #[serde(default)]
    pub(super) zone: Vec<Spanned<RawZone>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNull {
    pub(super) service_ns: Spanned<u64>,
    pub(super) depth: Spanned<u32>,
    pub(super) capacity_sectors: Spanned<u64>,
}
