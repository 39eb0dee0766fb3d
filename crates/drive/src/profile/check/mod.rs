//! Parses and checks the text of a drive file.
//!
//! Every error names file, line, column, key, the invalid value and the valid ones.

mod array;
mod base;
mod buffer;
mod cloud;
mod disk;
mod faults;
mod flash;
mod queue;

use std::fmt::Display;
use std::ops::Range;

use hoistway_units::position::line_and_column;
use toml::Spanned;

use super::raw::{RawNull, RawProfile};
use super::{Kind, MemberProfile, NullProfile, Profile, ProfileError, SingleKind};

/// One second in us.
const MAX_US: f64 = 1e6;
/// The largest drive in sectors: its bytes fit in 64 bits.
const MAX_CAPACITY_SECTORS: u64 = 1 << 55;

type Checked<T> = Result<T, ProfileError>;

/// Reads and checks a profile.
pub(super) fn profile(text: &str, file: &str) -> Checked<Profile> {
    Check { text, file, member: false }.text()
}

/// Reads and checks the profile of an array's member.
fn member(text: &str, file: &str) -> Checked<MemberProfile> {
    let check = Check { text, file, member: true };
    check.member_profile(&check.parse()?)
}

#[derive(Clone, Copy)]
struct Check<'a> {
    text: &'a str,
    file: &'a str,
    /// True if the profile is a member of an array.
    member: bool,
}

/// The tables that determine the kind of a drive.
const ONE_TABLE: &str = "one of the tables [disk], [flash], [cloud], [array] and [null]";

const NO_ARRAY_OF_ARRAYS: &str =
    "an array's members are single drives: list those of the inner array, with `copies` and `chunk_sectors`";

impl Check<'_> {
    fn text(&self) -> Checked<Profile> {
        self.whole(&self.parse()?)
    }

    fn parse(&self) -> Checked<RawProfile> {
        toml::from_str(self.text).map_err(|error| self.toml(&error))
    }

    /// The profile of an array's member, which cannot be an array.
    fn member_profile(&self, raw: &RawProfile) -> Checked<MemberProfile> {
        let Profile { name, kind, .. } = self.whole(raw)?;
        match kind {
            Kind::Single(kind) => Ok(MemberProfile { name, kind }),
            Kind::Array(_) => {
                let span = raw.array.as_ref().map_or(raw.name.span(), Spanned::span);
                Err(self.value(span, "array", "given in a member", NO_ARRAY_OF_ARRAYS))
            }
        }
    }

    fn whole(&self, raw: &RawProfile) -> Checked<Profile> {
        if raw.name.as_ref().is_empty() {
            return Err(self.value(raw.name.span(), "name", "empty", "a name of at least one letter"));
        }
        let kind = self.kind(raw)?;
        let disk_only = raw.faults.as_ref().map(|faults| (faults.span(), "faults"));
        let disk_only = disk_only.or_else(|| raw.queue.as_ref().map(|queue| (queue.span(), "queue")));
        if let (Some((span, key)), false) = (disk_only, matches!(kind, Kind::Single(SingleKind::Disk(_)))) {
            return Err(self.value(span, key, "given", "only disks, with a table [disk] or a `base`, have this table"));
        }
        Ok(Profile {
            kind,
            name: raw.name.as_ref().clone(),
            what: raw.what.clone(),
            source: raw.source.clone(),
            licence: raw.licence.clone(),
            inputs: raw.inputs.clone(),
            fua: raw.fua,
        })
    }

    /// The kind of drive, from the one table that determines it.
    fn kind(&self, raw: &RawProfile) -> Checked<Kind> {
        if raw.base.is_some() {
            return Ok(Kind::Single(SingleKind::Disk(Box::new(self.based(raw)?))));
        }
        let tables = [
            ("disk", raw.disk.as_ref().map(Spanned::span)),
            ("flash", raw.flash.as_ref().map(Spanned::span)),
            ("cloud", raw.cloud.as_ref().map(Spanned::span)),
            ("array", raw.array.as_ref().map(Spanned::span)),
            ("null", raw.null.as_ref().map(Spanned::span)),
        ];
        let mut given = tables.into_iter().filter_map(|(key, span)| span.map(|span| (key, span)));
        if let (Some((first, _)), Some((second, span))) = (given.next(), given.next()) {
            let value = format!("given beside `{first}`");
            return Err(self.value(span, second, value, &format!("a profile has {ONE_TABLE}")));
        }
        if let Some(disk) = &raw.disk {
            Ok(Kind::Single(SingleKind::Disk(Box::new(self.disk(disk, raw)?))))
        } else if let Some(flash) = &raw.flash {
            Ok(Kind::Single(SingleKind::Flash(Box::new(self.flash(flash.as_ref())?))))
        } else if let Some(cloud) = &raw.cloud {
            Ok(Kind::Single(SingleKind::Cloud(self.cloud(cloud.as_ref())?)))
        } else if let Some(array) = &raw.array {
            if self.member {
                return Err(self.value(array.span(), "array", "given in a member", NO_ARRAY_OF_ARRAYS));
            }
            Ok(Kind::Array(Box::new(self.array(array)?)))
        } else if let Some(null) = &raw.null {
            Ok(Kind::Single(SingleKind::Null(self.null(null.as_ref())?)))
        } else {
            Err(self.value(raw.name.span(), "disk", "missing", &format!("a profile has {ONE_TABLE}")))
        }
    }

    fn null(&self, raw: &RawNull) -> Checked<NullProfile> {
        self.within(&raw.depth, "null.depth", 1, 65_536)?;
        self.within(&raw.service_ns, "null.service_ns", 0, 1_000_000_000_000)?;
        self.within(&raw.capacity_sectors, "null.capacity_sectors", 1, MAX_CAPACITY_SECTORS)?;
        let (service_ns, depth) = (*raw.service_ns.as_ref(), *raw.depth.as_ref());
        Ok(NullProfile { service_ns, depth, capacity_sectors: *raw.capacity_sectors.as_ref() })
    }

    /// An optional fraction of a revolution: 0 or more and below 1.
    fn fraction(&self, value: &Option<Spanned<f64>>, key: &str) -> Checked<Option<f64>> {
        match value {
            Some(value) if (0.0..1.0).contains(value.as_ref()) => Ok(Some(*value.as_ref())),
            Some(value) => Err(self.value(value.span(), key, value.as_ref(), "0 or more and below 1 revolution")),
            None => Ok(None),
        }
    }

    fn within<T: PartialOrd + Display + Copy>(&self, value: &Spanned<T>, key: &str, low: T, high: T) -> Checked<T> {
        let number = *value.as_ref();
        if number >= low && number <= high {
            return Ok(number);
        }
        // Numbers are quoted as written: 1e-300 would have hundreds of digits otherwise.
        let written = number.to_string();
        let shorter = self.text.get(value.span()).filter(|text| written.len() > 24 && text.len() < written.len());
        let written = shorter.unwrap_or(&written);
        Err(self.value(value.span(), key, written, &format!("{low} to {high}")))
    }

    fn value(&self, span: Range<usize>, key: &str, value: impl Display, expected: &str) -> ProfileError {
        let (line, column) = line_and_column(self.text, span.start);
        ProfileError::Value {
            file: self.file.to_string(),
            line,
            column,
            key: key.to_string(),
            value: value.to_string(),
            expected: expected.to_string(),
        }
    }

    fn toml(&self, error: &toml::de::Error) -> ProfileError {
        let (line, column) = line_and_column(self.text, error.span().map_or(0, |span| span.start));
        ProfileError::Toml { file: self.file.to_string(), line, column, message: error.message().to_string() }
    }
}
