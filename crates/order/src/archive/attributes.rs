//! Extended attributes, access control lists and SELinux labels as PAX records.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{fgetxattr, flistxattr, getxattr, listxattr};
use rustix::io::Errno;

use super::owners::OwnerNames;
use super::pax;

/// Which attributes an archive contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeSelection {
    /// All extended attributes except the following two, as `SCHILY.xattr.`.
    pub xattrs: bool,
    /// Access control lists, as `SCHILY.acl.`.
    pub acls: bool,
    /// SELinux labels, as `RHT.security.selinux`.
    pub selinux: bool,
}

impl AttributeSelection {
    /// Returns true if any kind of attribute is selected.
    pub fn any(self) -> bool {
        self.xattrs || self.acls || self.selinux
    }
}

/// Which access control lists of a file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AclScope {
    /// The access ACL.
    Access,
    /// The access ACL and the default ACL of a directory.
    AccessAndDefault,
    /// The default ACL only.
    Default,
}

/// How the attributes of a file are read.
#[derive(Clone, Debug)]
pub(super) enum AttributeSource<'a> {
    /// By a descriptor that is open for reading.
    Open(BorrowedFd<'a>),
    /// By the path of an `O_PATH` descriptor in /proc.
    Path(CString),
}

impl<'a> AttributeSource<'a> {
    /// Creates a source from a descriptor that is open for reading.
    pub fn open(file: BorrowedFd<'a>) -> AttributeSource<'a> {
        AttributeSource::Open(file)
    }

    /// Creates a source from an `O_PATH` descriptor, for files that must not be opened for reading.
    pub fn path_only(file: BorrowedFd<'_>) -> AttributeSource<'static> {
        // A decimal number contains no zero byte.
        AttributeSource::Path(CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default())
    }

    fn list(&self) -> Result<Vec<u8>, Errno> {
        sized(|buffer| match self {
            AttributeSource::Open(file) => flistxattr(file, buffer),
            AttributeSource::Path(path) => listxattr(path, buffer),
        })
    }

    fn value(&self, name: &CStr) -> Result<Vec<u8>, Errno> {
        sized(|buffer| match self {
            AttributeSource::Open(file) => fgetxattr(file, name, buffer),
            AttributeSource::Path(path) => getxattr(path, name, buffer),
        })
    }

    /// Returns the value of an attribute; `None` if the file does not have it.
    fn value_if_any(&self, name: &CStr) -> Result<Option<Vec<u8>>, Errno> {
        match self.value(name) {
            Ok(value) => Ok(Some(value)),
            Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

const ACCESS: &CStr = c"system.posix_acl_access";
const DEFAULT: &CStr = c"system.posix_acl_default";
const SELINUX: &CStr = c"security.selinux";

/// Appends the records of all selected attributes. `numeric` omits user names from access control
/// lists.
pub(super) fn append(
    selection: AttributeSelection,
    source: &AttributeSource<'_>,
    lists: AclScope,
    numeric: bool,
    owners: &mut OwnerNames,
    records: &mut Vec<u8>,
) -> Result<(), Errno> {
    if selection.acls {
        let (access, default) = (lists != AclScope::Default, lists != AclScope::Access);
        for (name, key, is_selected) in
            [(ACCESS, &b"SCHILY.acl.access"[..], access), (DEFAULT, b"SCHILY.acl.default", default)]
        {
            if is_selected && let Some(list) = source.value_if_any(name)? {
                let text = acl_text(&list, numeric, owners).ok_or(Errno::INVAL)?;
                pax::append(records, key, &text);
            }
        }
    }
    if selection.selinux
        && let Some(label) = source.value_if_any(SELINUX)?
    {
        pax::append(records, b"RHT.security.selinux", label.strip_suffix(b"\0").unwrap_or(&label));
    }
    if selection.xattrs {
        append_all(source, records)?;
    }
    Ok(())
}

/// Appends all attributes that have no record of their own.
fn append_all(source: &AttributeSource<'_>, records: &mut Vec<u8>) -> Result<(), Errno> {
    let list = match source.list() {
        Err(Errno::OPNOTSUPP) => return Ok(()),
        list => list?,
    };
    for name in list.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if name == ACCESS || name == DEFAULT || name == SELINUX {
            continue;
        }
        // `None` if the attribute was removed in the meantime.
        let Some(value) = source.value_if_any(name)? else { continue };
        let mut key = b"SCHILY.xattr.".to_vec();
        for byte in name.to_bytes() {
            match byte {
                // A key ends at the first equals sign.
                b'=' => key.extend_from_slice(b"%3D"),
                b'%' => key.extend_from_slice(b"%25"),
                byte => key.push(*byte),
            }
        }
        pax::append(records, &key, &value);
    }
    Ok(())
}

/// Calls `call` with a buffer that is large enough for the result.
fn sized(mut call: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 256];
    loop {
        match call(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            // The kernel limits values to 64 KiB.
            Err(Errno::RANGE) if buffer.len() < (1 << 20) => buffer.resize(buffer.len() * 4, 0),
            Err(error) => return Err(error),
        }
    }
}

/// Formats an access control list from its kernel form: a version, then 8 bytes per entry.
fn acl_text(list: &[u8], numeric: bool, owners: &mut OwnerNames) -> Option<Vec<u8>> {
    let entries = list.strip_prefix(&2u32.to_le_bytes())?;
    let mut text = Vec::new();
    for entry in entries.chunks(8) {
        let [tag, tag_high, may, _, id @ ..] = <[u8; 8]>::try_from(entry).ok()?;
        let id = u32::from_le_bytes(id);
        let (kind, name): (&[u8], Option<&[u8]>) = match u16::from_le_bytes([tag, tag_high]) {
            0x01 => (b"user:", None),
            0x02 => (b"user:", Some(owners.user(id))),
            0x04 => (b"group:", None),
            0x08 => (b"group:", Some(owners.group(id))),
            0x10 => (b"mask:", None),
            0x20 => (b"other:", None),
            _ => return None,
        };
        text.extend_from_slice(kind);
        let name = name.map(|name| if numeric { &[][..] } else { name });
        match name {
            Some(b"") => pax::append_number(&mut text, u64::from(id)),
            Some(name) => text.extend_from_slice(name),
            None => {}
        }
        text.push(b':');
        for (bit, letter) in [(4, b'r'), (2, b'w'), (1, b'x')] {
            text.push(if may & bit != 0 { letter } else { b'-' });
        }
        if name.is_some_and(|name| !name.is_empty()) {
            // The numeric id in a fourth field, as star writes it.
            text.push(b':');
            pax::append_number(&mut text, u64::from(id));
        }
        text.push(b'\n');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_control_list_is_formatted_as_text() {
        let mut list = 2u32.to_le_bytes().to_vec();
        for (tag, may, id) in [
            (1u16, 7u16, u32::MAX),
            (2, 5, 4_000_000_001),
            (2, 6, 0),
            (4, 4, u32::MAX),
            (16, 5, u32::MAX),
            (32, 0, u32::MAX),
        ] {
            list.extend_from_slice(&tag.to_le_bytes());
            list.extend_from_slice(&may.to_le_bytes());
            list.extend_from_slice(&id.to_le_bytes());
        }
        let text = acl_text(&list, false, &mut OwnerNames::default()).unwrap();
        assert_eq!(text, b"user::rwx\nuser:4000000001:r-x\nuser:root:rw-:0\ngroup::r--\nmask::r-x\nother::---\n");
        let numeric = acl_text(&list, true, &mut OwnerNames::default()).unwrap();
        assert_eq!(numeric, b"user::rwx\nuser:4000000001:r-x\nuser:0:rw-\ngroup::r--\nmask::r-x\nother::---\n");
        assert_eq!(acl_text(&list[..9], false, &mut OwnerNames::default()), None);
        assert_eq!(acl_text(&3u32.to_le_bytes(), false, &mut OwnerNames::default()), None);
    }
}
