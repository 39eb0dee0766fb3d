//! The host's record of the bios that it has submitted.

use std::collections::BTreeMap;

use hoistway_core::{Bio, ContextId, Flags, GroupId, Op, Request};

/// All bios that the queue has accepted and not completed.
#[derive(Debug, Default)]
pub struct BioTracker {
    bios: BTreeMap<u64, Entry>,
    submissions: u64,
}

#[derive(Clone, Debug)]
struct Entry {
    bio: Bio,
    /// The groups of its process since its submission.
    groups: Vec<GroupId>,
    /// Its position in the order of acceptance.
    order: u64,
}

impl BioTracker {
    /// Records a bio of a process in this group.
    pub fn take(&mut self, bio: Bio, group: GroupId) {
        self.bios.insert(bio.token, Entry { bio, groups: vec![group], order: self.submissions });
        self.submissions += 1;
    }

    /// Records the move of a process to another group.
    pub fn moved(&mut self, context: ContextId, group: GroupId) {
        for entry in self.bios.values_mut().filter(|entry| entry.bio.context == context) {
            entry.groups.push(group);
        }
    }

    /// Returns true if a request may count to this group.
    pub fn may_belong_to(&self, group: GroupId) -> bool {
        self.bios.values().any(|entry| entry.groups.contains(&group))
    }

    /// The number of pending bios.
    pub fn len(&self) -> usize {
        self.bios.len()
    }

    /// Returns true if the bio of this token is a barrier; `None` if there is no such bio.
    pub fn is_barrier(&self, token: u64) -> Option<bool> {
        self.bios.get(&token).map(|entry| entry.bio.flags.has(Flags::BARRIER))
    }

    /// The sectors of all bios that are no barriers.
    pub fn plain_sectors(&self) -> u128 {
        let plain = self.bios.values().filter(|entry| !entry.bio.flags.has(Flags::BARRIER));
        plain.map(|entry| u128::from(entry.bio.sectors)).sum()
    }

    /// The tokens of all barriers.
    pub fn barriers(&self) -> impl Iterator<Item = u64> + '_ {
        self.bios.values().filter(|entry| entry.bio.flags.has(Flags::BARRIER)).map(|entry| entry.bio.token)
    }

    /// Checks the order of a request issued for this token on a device that is drained around
    /// barriers: a barrier comes after all earlier bios, and no bio precedes an earlier barrier.
    pub fn check_order(&self, token: u64) -> Result<(), String> {
        let Some(entry) = self.bios.get(&token) else {
            return Err(format!("token {token} was issued but never accepted"));
        };
        let barrier = entry.bio.flags.has(Flags::BARRIER);
        let early = self
            .bios
            .values()
            .find(|other| other.order < entry.order && (barrier || other.bio.flags.has(Flags::BARRIER)));
        match early {
            Some(other) => Err(format!(
                "token {token} (barrier: {barrier}) was issued before token {} completed, which a barrier forbids",
                other.bio.token
            )),
            None => Ok(()),
        }
    }

    /// Handles the completion of a request that is no barrier step: the bios of `tokens` must cover
    /// it exactly.
    pub fn complete(&mut self, request: &Request, tokens: &[u64]) -> Result<(), String> {
        let mut parts = Vec::new();
        for token in tokens {
            let Some(entry) = self.bios.remove(token) else {
                return Err(format!("token {token} completed twice or was never accepted"));
            };
            parts.push(entry.bio);
        }
        if tokens.first() != Some(&request.token()) {
            return Err(format!("tokens {tokens:?} do not begin with the request's own, {}", request.token()));
        }
        parts.sort_by_key(|bio| bio.sector);
        let mut at = request.sector();
        for bio in &parts {
            if bio.sector != at || bio.op != request.op() {
                return Err(format!(
                    "{:?} {at}: the next bio of the request is {:?} {}",
                    request.op(),
                    bio.op,
                    bio.sector
                ));
            }
            at = bio.end();
        }
        if at == request.end() {
            Ok(())
        } else {
            Err(format!("the bios end at {at} and the request at {}", request.end()))
        }
    }

    /// Handles the completion of a barrier step: only the last one completes the barrier, and no
    /// other bio.
    pub fn complete_step(&mut self, barrier: u64, tokens: &[u64]) -> Result<(), String> {
        match tokens {
            [] => Ok(()),
            [token] if *token == barrier && self.bios.remove(token).is_some() => Ok(()),
            _ => Err(format!("a step of barrier {barrier} completes {tokens:?}")),
        }
    }

    /// Returns true for a flush without sectors, as issued around barriers.
    pub fn is_flush(request: &Request) -> bool {
        request.op() == Op::Flush && request.sectors() == 0
    }
}
