//! Changes of running queues: one implementation for every host.
//!
//! A host implements [`Registry`] over its devices; [`change`] applies a [`Change`] to them. A
//! change to several devices is applied to all of them or to none.

use hoistway_qos::{DiskQueueConfig, DiskScheduler, Limits, Terms};

use crate::log_filter;
use crate::target::{Change, Refused};

/// A scheduler, the configuration that it was set up with, and the time in ns.
pub struct DeviceAdmin<'a> {
    /// The scheduler.
    pub scheduler: &'a mut DiskScheduler,
    /// The configuration, which records run-time changes for a later reload.
    pub config: &'a mut DiskQueueConfig,
    /// The time in ns.
    pub now_ns: u64,
}

/// The terms of a group of tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTerms {
    /// The weight among its siblings, 1 to 1000.
    pub weight: u16,
    /// The parent group; `None` is the root.
    pub parent: Option<String>,
    /// The limits that its members share.
    pub limits: Limits,
}

/// A change of a device; returns a warning.
pub type DeviceChange<'a> = &'a mut dyn FnMut(DeviceAdmin<'_>) -> Result<Option<String>, Refused>;

/// The devices, tenants and groups of a host.
pub trait Registry {
    /// Returns the names of all devices.
    fn device_names(&self) -> Vec<String>;

    /// Applies a change to a device, and runs its queue afterwards.
    ///
    /// # Errors
    /// [`Refused::Gone`] if there is no such device, or the error of the change.
    fn on_device(&mut self, name: &str, change: DeviceChange<'_>) -> Result<Option<String>, Refused>;

    /// Returns the current terms of a tenant.
    ///
    /// # Errors
    /// When there is no such tenant, or it has no terms of its own.
    fn tenant_terms(&self, tenant: &str) -> Result<Terms, Refused>;

    /// Returns the part of a tenant's terms that applies to a device.
    fn terms_on(&self, _device: &str, _tenant: &str, terms: &Terms) -> Terms {
        terms.clone()
    }

    /// Stores the terms of a tenant, for devices that are added later and for reloads.
    fn store_terms(&mut self, tenant: &str, terms: &Terms);

    /// Returns the current terms of a group.
    fn group_terms(&self, group: &str) -> Option<GroupTerms>;

    /// Returns true if a group may exist on some devices only, as those of control groups do.
    fn groups_are_per_device(&self) -> bool {
        false
    }

    /// Stores the weight of a group, for devices that are added later and for reloads.
    fn store_group_weight(&mut self, group: &str, weight: u16);

    /// Returns why the size of the largest request cannot be set on this host, if so.
    fn fixed_request_size(&self) -> Option<&'static str> {
        None
    }

    /// Closes a client's connection.
    ///
    /// # Errors
    /// When there is no such client, or the host has no connections.
    fn disconnect(&mut self, client: u64) -> Result<Option<String>, Refused>;

    /// Reads the configuration again.
    ///
    /// # Errors
    /// When the host cannot reload its configuration.
    fn reload(&mut self) -> Result<Option<String>, Refused>;

    /// Sets the log filter, in the syntax of `RUST_LOG`.
    ///
    /// # Errors
    /// When the filter is invalid or cannot be set.
    fn set_log(&mut self, filter: &str) -> Result<Option<String>, Refused>;
}

/// Sets what a process logs while it runs.
pub trait LogControl {
    /// Returns the current log filter, in the syntax of `RUST_LOG`.
    fn filter(&self) -> String;
    /// Sets the log filter.
    ///
    /// # Errors
    /// The reason why the filter is invalid.
    fn set(&mut self, filter: &str) -> Result<(), String>;
}

/// Sets a log filter through a host's log control, if it has one. Returns a warning about targets
/// that no message has.
///
/// # Errors
/// When there is no log control, or the filter is invalid.
pub fn set_log_filter<L: LogControl + ?Sized>(log: Option<&mut L>, filter: &str) -> Result<Option<String>, Refused> {
    match log {
        Some(log) => {
            let warning = log_filter::check(filter).map_err(|error| Refused::No(error.to_string()))?;
            log.set(filter).map(|()| warning).map_err(Refused::No)
        }
        None => Err(Refused::No("the log filter cannot be set here".to_owned())),
    }
}

/// Applies a change. Returns a warning.
///
/// # Errors
/// Why the change was refused; then nothing has changed.
pub fn change<R: Registry + ?Sized>(registry: &mut R, change: Change) -> Result<Option<String>, Refused> {
    tracing::info!(?change, "change requested");
    match change {
        Change::Terms { tenant, terms } => set_terms(registry, &tenant, &terms),
        Change::GroupWeight { group, weight } => set_group_weight(registry, &group, weight),
        Change::Disconnect { client } => registry.disconnect(client),
        Change::Reload => registry.reload(),
        Change::Log(filter) => registry.set_log(&filter),
        Change::Elevator { device, kind } => registry.on_device(&device, &mut |admin| {
            let DeviceAdmin { scheduler, config, now_ns } = admin;
            let old = scheduler.elevator().info().name;
            scheduler.switch(kind, now_ns).map_err(|error| Refused::Busy(error.to_string()))?;
            config.tunables = scheduler.tunables_set().to_vec();
            config.elevator = Some(kind);
            let mut warnings: Vec<String> = scheduler.elevator_warning().into_iter().collect();
            if scheduler.is_switching() {
                let new = kind.info().name;
                warnings.push(format!("{new} takes over when the requests that {old} dispatched have completed"));
            }
            Ok(joined(warnings))
        }),
        Change::Tunable { device, name, value } => registry.on_device(&device, &mut |admin| {
            let set = admin.scheduler.set_tunable(name, value);
            let warnings = set.map_err(|error| Refused::No(error.to_string()))?;
            admin.config.tunables = admin.scheduler.tunables_set().to_vec();
            Ok(joined(warnings))
        }),
        Change::Depth { device, depth } => registry.on_device(&device, &mut |admin| {
            admin.scheduler.set_depth(depth);
            admin.config.depth = Some(depth);
            let real = admin.scheduler.depth();
            Ok((real != depth).then(|| format!("the emulated drive's queue depth is {real}")))
        }),
        Change::Merge { device, merge } => registry.on_device(&device, &mut |admin| {
            let set = admin.scheduler.set_requests(merge, admin.config.request_bytes_max);
            set.map_err(|error| Refused::No(error.to_string()))?;
            admin.config.merge = merge;
            Ok(None)
        }),
        Change::RequestBytesMax { device, bytes } => {
            if let Some(why) = registry.fixed_request_size() {
                return Err(Refused::No(why.to_owned()));
            }
            registry.on_device(&device, &mut |admin| {
                let set = admin.scheduler.set_requests(admin.config.merge, bytes);
                set.map_err(|error| Refused::No(error.to_string()))?;
                admin.config.request_bytes_max = bytes;
                Ok(None)
            })
        }
    }
}

/// Sets a tenant's terms on all devices.
fn set_terms<R: Registry + ?Sized>(registry: &mut R, tenant: &str, terms: &Terms) -> Result<Option<String>, Refused> {
    let old = registry.tenant_terms(tenant)?;
    let set = |registry: &mut R, device: &str, terms: &Terms| {
        let terms = registry.terms_on(device, tenant, terms);
        registry.on_device(device, &mut |admin| {
            let set = admin.scheduler.set_tenant(tenant, &terms, admin.now_ns);
            // A reservation that can be kept again deserves no warning.
            let _ = admin.scheduler.recheck_reservations();
            set.map(joined).map_err(|error| Refused::No(error.to_string()))
        })
    };
    let warnings = on_all_devices(
        registry,
        |registry, device| set(registry, device, terms),
        |registry, device| {
            if let Err(error) = set(registry, device, &old) {
                tracing::error!(device, tenant, "the old terms were refused: {error}");
            }
        },
    )?;
    registry.store_terms(tenant, terms);
    Ok(warnings)
}

/// Sets a group's weight on all devices.
fn set_group_weight<R: Registry + ?Sized>(
    registry: &mut R,
    group: &str,
    weight: u16,
) -> Result<Option<String>, Refused> {
    let old = registry.group_terms(group).ok_or(Refused::Gone)?;
    let per_device = registry.groups_are_per_device();
    let set = |registry: &mut R, device: &str, weight: u16| {
        registry.on_device(device, &mut |admin| {
            if per_device && admin.scheduler.group_terms(group).is_none() {
                return Ok(None);
            }
            let set = admin.scheduler.set_group(group, old.parent.as_deref(), weight, &old.limits, admin.now_ns);
            set.map(|()| None).map_err(|error| Refused::No(error.to_string()))
        })
    };
    on_all_devices(
        registry,
        |registry, device| set(registry, device, weight),
        |registry, device| {
            if let Err(error) = set(registry, device, old.weight) {
                tracing::error!(device, group, "the old weight was refused: {error}");
            }
        },
    )?;
    registry.store_group_weight(group, weight);
    Ok(None)
}

/// Applies a change to all devices. If one refuses it, reverts that device and those before it.
fn on_all_devices<R: Registry + ?Sized>(
    registry: &mut R,
    apply: impl Fn(&mut R, &str) -> Result<Option<String>, Refused>,
    revert: impl Fn(&mut R, &str),
) -> Result<Option<String>, Refused> {
    let devices = registry.device_names();
    let mut warnings = Vec::new();
    for (at, device) in devices.iter().enumerate() {
        match apply(registry, device) {
            Ok(warning) => warnings.extend(warning),
            // The device was removed meanwhile.
            Err(Refused::Gone) => {}
            Err(error) => {
                // The device itself may have taken a part of the change.
                for device in devices.iter().take(at + 1) {
                    revert(registry, device);
                }
                return Err(Refused::No(format!("device {device}: {error}")));
            }
        }
    }
    warnings.sort();
    warnings.dedup();
    Ok(joined(warnings))
}

/// Joins warnings to one text.
pub fn joined(warnings: Vec<String>) -> Option<String> {
    (!warnings.is_empty()).then(|| warnings.join("; "))
}
