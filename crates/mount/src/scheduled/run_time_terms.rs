//! Terms of tenants and weights of groups that were set at run time, for queues that are created
//! later.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hoistway_qos::Terms;
use rustc_hash::FxHashMap;

/// The terms set at run time, shared by all queues of a gate.
#[derive(Debug, Default)]
pub(super) struct RunTimeTerms {
    set: Mutex<Set>,
}

#[derive(Debug, Default)]
struct Set {
    tenants: FxHashMap<String, Terms>,
    groups: FxHashMap<String, u16>,
}

impl RunTimeTerms {
    /// Stores the terms of a tenant.
    pub fn set_terms(&self, tenant: &str, terms: &Terms) {
        self.lock().tenants.insert(tenant.to_owned(), terms.clone());
    }

    /// Returns the terms of a tenant, if they were set at run time.
    pub fn terms(&self, tenant: &str) -> Option<Terms> {
        self.lock().tenants.get(tenant).cloned()
    }

    /// Stores the weight of a group.
    pub fn set_group_weight(&self, group: &str, weight: u16) {
        self.lock().groups.insert(group.to_owned(), weight);
    }

    /// Returns the weight of a group, if it was set at run time.
    pub fn group_weight(&self, group: &str) -> Option<u16> {
        self.lock().groups.get(group).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
