//! A server from a configuration: devices are opened, exports checked, tenants made.

use std::collections::VecDeque;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::admin::{AdminState, Places};
use crate::budget::Bounds;
use crate::drain::Drain;
use crate::exports::Served;
use crate::protocol::abilities_of;
use crate::server::Server;
use crate::state::ServerState;
use crate::table::Table;
use hoistway_blockdev::{Device, DeviceError};
use hoistway_config::{Config, ExportConfig, TenantConfig};
use hoistway_control::Watch;
use hoistway_control::metrics::Metrics;
use hoistway_qos::Terms;
use hoistway_qos::TermsError;
use hoistway_reactor::Engine;

/// The most bytes of data in one request: 32 MiB, what clients take for granted.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// What a server is made with beyond its configuration.
#[derive(Clone, Default)]
pub struct Settings {
    /// How much may be under way.
    pub bounds: Bounds,
    /// Certificates, read and checked; none: no TLS. Whether it is required is said by the
    /// configuration.
    pub tls: Option<Arc<ServerConfig>>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A device could not be made.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A tenant could not be made.
    #[error("device {device}: tenant or group {name}: {source}")]
    Terms {
        /// On which device.
        device: String,
        /// Which.
        name: String,
        /// Why.
        source: TermsError,
    },
    /// An export could not be made.
    #[error("export `{export}`: {reason}")]
    Export {
        /// Which.
        export: String,
        /// Why.
        reason: String,
    },
}

impl<E: Engine> Server<E> {
    /// A server that nobody can reach yet: see [`Server::listen`].
    ///
    /// # Errors
    /// When a device cannot be opened, or what is configured does not fit it. Everything opened so
    /// far is closed again.
    pub fn new(engine: E, config: &Config, settings: Settings) -> Result<Server<E>, StartError> {
        let mut state = ServerState::new(engine, settings.bounds);
        state.tls = settings.tls;
        state.tls_required = config.tls.as_ref().is_some_and(|tls| tls.required);
        for (index, config) in config.devices.iter().enumerate() {
            let device = Device::new(index as u32, config, &mut state.engine, state.now_ns)?;
            tell(&device);
            state.devices.push(device);
        }
        state.config = config.clone();
        let mut problems = Vec::new();
        for warning in state.set_terms(&mut problems) {
            tracing::warn!("{warning}");
        }
        if let Some(problem) = problems.into_iter().next() {
            return Err(problem);
        }
        for export in &config.exports {
            let served = state.serve(export)?;
            tracing::info!(
                export = export.name,
                device = export.device,
                bytes = served.export.size,
                read_only = served.export.abilities.read_only,
                "exported"
            );
            state.exports.push(served);
        }
        state.config = config.clone();
        let (stall_check_ns, admin) = (state.now_ns, AdminState::new(state.now_ns, Places::of(config)));
        Ok(Server {
            state,
            table: Table::new(),
            listeners: Vec::new(),
            events: Vec::new(),
            turns: VecDeque::new(),
            dones: Vec::new(),
            came: 0,
            crowded: false,
            drain: Drain::No,
            signalled: false,
            stall_check_ns,
            alarm: None,
            admin,
            texts: Table::new(),
            watch: Watch::default(),
            metrics: Metrics::default(),
            reloaded: "never".into(),
            gone: Vec::new(),
        })
    }
}

impl<E: Engine> ServerState<E> {
    /// Makes groups and tenants on all devices as the configuration says, or changes them. Answers
    /// terms that have no effect; what could not be done is added to `problems`.
    pub(crate) fn set_terms(&mut self, problems: &mut Vec<StartError>) -> Vec<String> {
        let ServerState { devices, config, now_ns, .. } = self;
        let mut warnings = Vec::new();
        for device in devices {
            let name = device.name().to_owned();
            let failed = |who: &str, source| StartError::Terms { device: name.clone(), name: who.to_owned(), source };
            for group in parents_first(config) {
                let set = device.scheduler_mut().set_group(
                    &group.name,
                    group.parent.as_deref(),
                    group.weight,
                    &group.limits,
                    *now_ns,
                );
                problems.extend(set.err().map(|error| failed(&group.name, error)));
            }
            // Who reserves more comes last: what the others give back may be what it needs.
            let rate = |terms: Option<&Terms>| {
                terms.and_then(|terms| terms.reserve).map_or(0, |reserve| reserve.bytes_per_second)
            };
            let rises =
                |tenant: &&TenantConfig| rate(Some(&tenant.terms)) > rate(device.scheduler().terms(&tenant.name));
            let (rising, others): (Vec<_>, Vec<_>) = config.tenants.iter().partition(rises);
            for tenant in others.into_iter().chain(rising) {
                let terms = config.terms_on(&name, tenant, &tenant.terms);
                match device.scheduler_mut().set_tenant(&tenant.name, &terms, *now_ns) {
                    Ok(told) => warnings.extend(told.into_iter().map(|told| format!("device {name}: {told}"))),
                    Err(error) => problems.push(failed(&tenant.name, error)),
                }
            }
            warnings.append(&mut device.scheduler_mut().recheck_reservations());
        }
        warnings
    }

    /// An export as the protocol tells of it.
    pub(crate) fn serve(&self, config: &ExportConfig) -> Result<Served, StartError> {
        let refuse = |reason: String| StartError::Export { export: config.name.clone(), reason };
        let place = self.place_of(&config.device);
        let Some((place, device)) = place.and_then(|place| Some((place, self.devices.get(place)?))) else {
            return Err(refuse(format!("there is no device `{}`", config.device)));
        };
        let bytes = device.size();
        let Some(rest) = bytes.checked_sub(config.offset) else {
            return Err(refuse(format!(
                "it begins at {} and device {} has {bytes} bytes",
                config.offset, config.device
            )));
        };
        let size = config.size.unwrap_or(rest);
        if size > rest {
            return Err(refuse(format!(
                "it ends at {} and device {} has {bytes} bytes",
                config.offset.saturating_add(size),
                config.device
            )));
        }
        let mut abilities = abilities_of(device.capabilities());
        abilities.read_only |= config.read_only;
        if abilities.read_only {
            (abilities.trim, abilities.write_zeroes, abilities.fast_zero) = (false, false, false);
        }
        // One queue under all connections: what one has been answered, the flush of another covers.
        abilities.multi_conn = true;
        let export = hoistway_nbd::Export {
            name: config.name.clone(),
            description: config.description.clone(),
            size,
            abilities,
            // Backends widen unaligned requests, so every offset and length is accepted.
            block_min: 1,
            block_preferred: device.backend().block_preferred(),
            payload_max: PAYLOAD_BYTES_MAX,
            tls_only: false,
        };
        export.check().map_err(|error| refuse(error.to_string()))?;
        Ok(Served { export, device: place, offset: config.offset })
    }
}

/// Says what a device is.
pub(crate) fn tell(device: &Device) {
    tracing::info!(
        device = device.name(),
        backend = device.backend().describe(),
        bytes = device.size(),
        drive = device.drive(),
        elevator = device.scheduler().elevator().info().name,
        because = device.scheduler().elevator_reason(),
        depth = device.scheduler().depth(),
        "opened"
    );
    if let Some(warning) = device.scheduler().elevator_warning() {
        tracing::warn!("{warning}");
    }
    for notice in device.notices() {
        tracing::info!(device = device.name(), "{notice}");
    }
}

/// The groups, each after the one that it is part of. The configuration has no loops; if it had,
/// their groups would be left to fail.
fn parents_first(config: &Config) -> Vec<&hoistway_config::GroupConfig> {
    let mut left: Vec<_> = config.groups.iter().collect();
    let mut sorted: Vec<&hoistway_config::GroupConfig> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let before = sorted.len();
        left.retain(|group| {
            let ready = group.parent.as_ref().is_none_or(|parent| sorted.iter().any(|done| done.name == *parent));
            if ready {
                sorted.push(group);
            }
            !ready
        });
        if sorted.len() == before {
            sorted.append(&mut left);
        }
    }
    sorted
}
