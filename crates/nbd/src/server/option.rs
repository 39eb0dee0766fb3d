//! Parses the data of options and writes replies to them.

use crate::wire::{OPTION_REPLY_MAGIC, Reader, info, option, rep};

/// Checks the name of an export: UTF-8 without NUL, at most `bytes_max` bytes.
pub(super) fn name(bytes: &[u8], bytes_max: u32) -> Result<&str, Refusal> {
    if bytes.len() > bytes_max as usize {
        return Err((rep::ERR_TOO_BIG, "the export's name is too long"));
    }
    match str::from_utf8(bytes) {
        Ok(name) if !name.contains('\0') => Ok(name),
        Ok(_) => Err((rep::ERR_INVALID, "the export's name has a NUL in it")),
        Err(_) => Err((rep::ERR_INVALID, "the export's name is not UTF-8")),
    }
}

/// An error reply to an option: its type and its text.
pub(super) type Refusal = (u32, &'static str);

/// The data of INFO and GO.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InfoRequest<'a> {
    pub name: &'a str,
    pub wants_name: bool,
    pub wants_description: bool,
    pub wants_block_size: bool,
}

impl<'a> InfoRequest<'a> {
    pub fn read(data: &'a [u8], name_bytes_max: u32) -> Result<InfoRequest<'a>, Refusal> {
        let (bytes, items) =
            info_parts(data).ok_or((rep::ERR_INVALID, "the option's lengths do not add up to its data"))?;
        let mut request = InfoRequest {
            name: name(bytes, name_bytes_max)?,
            wants_name: false,
            wants_description: false,
            wants_block_size: false,
        };
        for item in items {
            match u16::from_be_bytes(*item) {
                info::NAME => request.wants_name = true,
                info::DESCRIPTION => request.wants_description = true,
                info::BLOCK_SIZE => request.wants_block_size = true,
                // EXPORT is sent in any case; unknown items must be ignored.
                _ => {}
            }
        }
        Ok(request)
    }
}

fn info_parts(data: &[u8]) -> Option<(&[u8], &[[u8; 2]])> {
    let mut reader = Reader(data);
    let name = reader.counted()?;
    let count = reader.u16()?;
    let (items, odd) = reader.0.as_chunks();
    (items.len() == usize::from(count) && odd.is_empty()).then_some((name, items))
}

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MetaRequest<'a> {
    pub name: &'a str,
    /// True if the queries include `base:allocation`.
    pub base_allocation: bool,
}

impl<'a> MetaRequest<'a> {
    pub fn read(option: u32, data: &'a [u8], name_bytes_max: u32) -> Result<MetaRequest<'a>, Refusal> {
        let lengths = (rep::ERR_INVALID, "the option's lengths do not add up to its data");
        let mut reader = Reader(data);
        let name = name(reader.counted().ok_or(lengths)?, name_bytes_max)?;
        let count = reader.u32().ok_or(lengths)?;
        let listing = option == option::LIST_META_CONTEXT;
        let mut base_allocation = listing && count == 0;
        for _ in 0..count {
            base_allocation |= match query(reader.counted().ok_or(lengths)?)? {
                // The wildcard is for listing; it selects nothing.
                ("base", "") => listing,
                ("base", "allocation") => true,
                _ => false,
            };
        }
        if reader.0.is_empty() { Ok(MetaRequest { name, base_allocation }) } else { Err(lengths) }
    }
}

/// Splits a query into namespace and leaf.
fn query(bytes: &[u8]) -> Result<(&str, &str), Refusal> {
    let invalid = |text| Err((rep::ERR_INVALID, text));
    if bytes.len() > crate::wire::STRING_BYTES_MAX {
        return invalid("a metadata context's name is too long");
    }
    match str::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => invalid("a metadata context's name has a NUL in it"),
        Ok(text) => match text.split_once(':') {
            Some((namespace, leaf)) if !namespace.is_empty() => Ok((namespace, leaf)),
            _ => invalid("a metadata context's name has no namespace"),
        },
        Err(_) => invalid("a metadata context's name is not UTF-8"),
    }
}

/// Appends a reply to an option.
pub(super) fn reply(option: u32, kind: u32, parts: &[&[u8]], out: &mut Vec<u8>) {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&option.to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(bytes as u32).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}
