//! The profile as the file has it, with the place of every value that can be wrong.

mod cloud;
mod disk;
mod flash;

use serde::Deserialize;
use toml::Spanned;

pub(super) use cloud::{RawBucket, RawCloud, RawLatency};
pub(super) use disk::{RawBuffer, RawDisk, RawForm, RawInterface, RawMapping, RawOverhead, RawSeek, RawZone};
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
    pub(super) null: Option<Spanned<RawNull>>,
    pub(super) cloud: Option<Spanned<RawCloud>>,
    pub(super) flash: Option<Spanned<RawFlash>>,
    pub(super) disk: Option<Spanned<RawDisk>>,
    pub(super) seek: Option<Spanned<RawSeek>>,
    #[serde(default)]
    pub(super) overhead: RawOverhead,
    #[serde(default)]
    pub(super) interface: RawInterface,
    pub(super) buffer: Option<RawBuffer>,
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
