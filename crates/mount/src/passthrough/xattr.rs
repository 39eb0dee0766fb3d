//! Extended attributes, access control lists among them.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fuser::{ReplyEmpty, ReplyXattr};
use rustix::fs::{XattrFlags, getxattr, getxattr_query, listxattr, listxattr_query, removexattr, setxattr};
use rustix::io::Errno;

use super::identity::{Mask, Rights};
use super::{Through, errno};
use crate::backing::Backing;
use crate::gate::{Asker, Gate, Operation};

/// The attribute that a file's access control list is in. Who sets it may change the file's mode by that.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";

impl<G: Gate> Through<G> {
    pub(super) fn get_attribute(
        self: &Arc<Self>,
        asker: Asker,
        number: u64,
        name: OsString,
        room: u32,
        reply: ReplyXattr,
    ) {
        self.look(asker, number, reply, ReplyXattr::error, move |through, known, reply| {
            let path = through.nodes.descriptors.path(&known);
            answer(
                room,
                reply,
                || getxattr_query(path.as_c_str(), name.as_os_str()),
                |into| getxattr(path.as_c_str(), name.as_os_str(), into),
            );
        });
    }

    pub(super) fn list_attributes(self: &Arc<Self>, asker: Asker, number: u64, room: u32, reply: ReplyXattr) {
        self.look(asker, number, reply, ReplyXattr::error, move |through, known, reply| {
            let path = through.nodes.descriptors.path(&known);
            if asker.uid == 0 {
                return answer(
                    room,
                    reply,
                    || listxattr_query(path.as_c_str()),
                    |into| listxattr(path.as_c_str(), into),
                );
            }
            match names_for_all(&path) {
                Ok(names) if room == 0 => reply.size(names.len() as u32),
                Ok(names) if names.len() > room as usize => reply.error(fuser::Errno::ERANGE),
                Ok(names) => reply.data(&names),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub(super) fn set_attribute(
        self: &Arc<Self>,
        asker: Asker,
        number: u64,
        (name, value): (OsString, Vec<u8>),
        flags: i32,
        reply: ReplyEmpty,
    ) {
        self.change_attribute(asker, number, reply, move |through, known| {
            let path = through.nodes.descriptors.path(known);
            // Of who is not in a file's group the list takes the set-group-id bit.
            let _mask =
                if name.as_bytes() == ACCESS_LIST { Some(Mask::with_groups(&asker, Rights::NotSetId)?) } else { None };
            Ok(setxattr(path.as_c_str(), name.as_os_str(), &value, XattrFlags::from_bits_retain(flags as u32))?)
        });
    }

    pub(super) fn remove_attribute(self: &Arc<Self>, asker: Asker, number: u64, name: OsString, reply: ReplyEmpty) {
        self.change_attribute(asker, number, reply, move |through, known| {
            Ok(removexattr(through.nodes.descriptors.path(known).as_c_str(), name.as_os_str())?)
        });
    }

    fn change_attribute(
        self: &Arc<Self>,
        asker: Asker,
        number: u64,
        reply: ReplyEmpty,
        work: impl FnOnce(&Self, &Backing) -> io::Result<()> + Send + 'static,
    ) {
        let work = move |through: &Arc<Self>, _, known: Arc<Backing>, reply: ReplyEmpty| match work(through, &known) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        };
        self.on_node(asker, (Operation::Change, 0), number, reply, ReplyEmpty::error, work);
    }
}

/// The names of a file's attributes without those that root alone is told: we may be root, and who asks is not.
fn names_for_all(path: &CStr) -> rustix::io::Result<Vec<u8>> {
    let mut names = vec![0; listxattr_query(path)?];
    while !names.is_empty() {
        match listxattr(path, &mut names[..]) {
            Ok(length) => {
                names.truncate(length);
                break;
            }
            // There are more by now.
            Err(Errno::RANGE) => names.resize(2 * names.len().max(listxattr_query(path)?), 0),
            Err(error) => return Err(error),
        }
    }
    let kept = names.split_inclusive(|byte| *byte == 0).filter(|name| !name.starts_with(b"trusted."));
    Ok(kept.flatten().copied().collect())
}

/// Answers with what there is, or with its length where nobody has room for it yet.
fn answer(
    room: u32,
    reply: ReplyXattr,
    length: impl FnOnce() -> rustix::io::Result<usize>,
    get: impl FnOnce(&mut [u8]) -> rustix::io::Result<usize>,
) {
    if room == 0 {
        return match length() {
            Ok(length) => reply.size(length as u32),
            Err(error) => reply.error(errno(error)),
        };
    }
    let mut value = vec![0; room as usize];
    match get(&mut value) {
        Ok(length) => reply.data(&value[..length]),
        Err(error) => reply.error(errno(error)),
    }
}
