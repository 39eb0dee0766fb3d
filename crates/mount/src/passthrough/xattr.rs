//! Extended attributes, including POSIX access control lists.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use fuser::{ReplyEmpty, ReplyXattr};
use rustix::fs::{XattrFlags, getxattr, getxattr_query, listxattr, listxattr_query, removexattr, setxattr};
use rustix::io::Errno;

use super::identity::{CallerIdentity, Rights};
use super::{FsState, errno};
use crate::backing::Backing;
use crate::gate::{Caller, Gate, Operation};

/// The attribute that stores the access control list. Setting it may change the mode bits.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";

impl<G: Gate> FsState<G> {
    pub(super) fn get_attribute(
        self: &Arc<Self>,
        caller: Caller,
        number: u64,
        name: OsString,
        size: u32,
        reply: ReplyXattr,
    ) {
        self.read_metadata(caller, number, reply, ReplyXattr::error, move |fs, backing, reply| {
            let path = fs.nodes.descriptors.path(&backing);
            reply_value(
                size,
                reply,
                || getxattr_query(path.as_c_str(), name.as_os_str()),
                |into| getxattr(path.as_c_str(), name.as_os_str(), into),
            );
        });
    }

    pub(super) fn list_attributes(self: &Arc<Self>, caller: Caller, number: u64, size: u32, reply: ReplyXattr) {
        self.read_metadata(caller, number, reply, ReplyXattr::error, move |fs, backing, reply| {
            let path = fs.nodes.descriptors.path(&backing);
            if caller.uid == 0 {
                return reply_value(
                    size,
                    reply,
                    || listxattr_query(path.as_c_str()),
                    |into| listxattr(path.as_c_str(), into),
                );
            }
            match visible_names(&path) {
                Ok(names) if size == 0 => reply.size(names.len() as u32),
                Ok(names) if names.len() > size as usize => reply.error(fuser::Errno::ERANGE),
                Ok(names) => reply.data(&names),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    pub(super) fn set_attribute(
        self: &Arc<Self>,
        caller: Caller,
        number: u64,
        (name, value): (OsString, Vec<u8>),
        flags: i32,
        reply: ReplyEmpty,
    ) {
        self.change_attribute(caller, number, reply, move |fs, backing| {
            let path = fs.nodes.descriptors.path(backing);
            // If the caller is not in the file's group, setting the list clears the set-group-ID
            // bit.
            let _identity = if name.as_bytes() == ACCESS_LIST {
                Some(CallerIdentity::assume_with_groups(&caller, Rights::WithoutFsetid)?)
            } else {
                None
            };
            Ok(setxattr(path.as_c_str(), name.as_os_str(), &value, XattrFlags::from_bits_retain(flags as u32))?)
        });
    }

    pub(super) fn remove_attribute(self: &Arc<Self>, caller: Caller, number: u64, name: OsString, reply: ReplyEmpty) {
        self.change_attribute(caller, number, reply, move |fs, backing| {
            Ok(removexattr(fs.nodes.descriptors.path(backing).as_c_str(), name.as_os_str())?)
        });
    }

    fn change_attribute(
        self: &Arc<Self>,
        caller: Caller,
        number: u64,
        reply: ReplyEmpty,
        work: impl FnOnce(&Self, &Backing) -> io::Result<()> + Send + 'static,
    ) {
        let work = move |fs: &Arc<Self>, _, backing: Arc<Backing>, reply: ReplyEmpty| match work(fs, &backing) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        };
        self.run_on_node(caller, (Operation::MetadataWrite, 0), number, reply, ReplyEmpty::error, work);
    }
}

/// Lists attribute names without the `trusted.` namespace, which only root may see: this process
/// may be root while the caller is not.
fn visible_names(path: &CStr) -> rustix::io::Result<Vec<u8>> {
    let mut names = vec![0; listxattr_query(path)?];
    while !names.is_empty() {
        match listxattr(path, &mut names[..]) {
            Ok(length) => {
                names.truncate(length);
                break;
            }
            // Names were added since the length was queried.
            Err(Errno::RANGE) => names.resize(2 * names.len().max(listxattr_query(path)?), 0),
            Err(error) => return Err(error),
        }
    }
    let kept = names.split_inclusive(|byte| *byte == 0).filter(|name| !name.starts_with(b"trusted."));
    Ok(kept.flatten().copied().collect())
}

/// Replies with the value, or with its length if the caller passed a buffer of size 0.
fn reply_value(
    size: u32,
    reply: ReplyXattr,
    length: impl FnOnce() -> rustix::io::Result<usize>,
    get: impl FnOnce(&mut [u8]) -> rustix::io::Result<usize>,
) {
    if size == 0 {
        return match length() {
            Ok(length) => reply.size(length as u32),
            Err(error) => reply.error(errno(error)),
        };
    }
    let mut value = vec![0; size as usize];
    match get(&mut value) {
        Ok(length) => reply.data(&value[..length]),
        Err(error) => reply.error(errno(error)),
    }
}
