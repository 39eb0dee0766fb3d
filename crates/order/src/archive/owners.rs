//! User and group names.

use nix::unistd::{Gid, Group, Uid, User};
use rustc_hash::FxHashMap;

/// Cache of user and group names.
#[derive(Debug, Default)]
pub(super) struct OwnerNames {
    users: FxHashMap<u32, Box<[u8]>>,
    groups: FxHashMap<u32, Box<[u8]>>,
}

impl OwnerNames {
    /// Returns the names of a user and a group; empty if the system has no name.
    pub fn both(&mut self, uid: u32, gid: u32) -> (&[u8], &[u8]) {
        self.user(uid);
        self.group(gid);
        (known(&self.users, uid), known(&self.groups, gid))
    }

    /// Returns the name of a user; empty if the system has no name.
    pub fn user(&mut self, uid: u32) -> &[u8] {
        self.users.entry(uid).or_insert_with(|| {
            let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
            user.map(|user| user.name.into_bytes()).unwrap_or_default().into()
        })
    }

    /// Returns the name of a group; empty if the system has no name.
    pub fn group(&mut self, gid: u32) -> &[u8] {
        self.groups.entry(gid).or_insert_with(|| {
            let group = Group::from_gid(Gid::from_raw(gid)).ok().flatten();
            group.map(|group| group.name.into_bytes()).unwrap_or_default().into()
        })
    }
}

fn known(names: &FxHashMap<u32, Box<[u8]>>, id: u32) -> &[u8] {
    names.get(&id).map_or(&[], |name| name)
}
