//! The creation of a server from a configuration: opens devices, creates tenants, checks exports.

use std::collections::VecDeque;
use std::sync::Arc;

use hoistway_blockdev::{Device, DeviceError, DeviceId};
use hoistway_config::{Config, ExportConfig, GroupConfig, TenantConfig};
use hoistway_control::metrics::Metrics;
use hoistway_control::{ConfigReadings, Watch};
use hoistway_qos::{Terms, TermsError};
use hoistway_reactor::Engine;
use rustls::ServerConfig;

use crate::admin::state::{AdminState, NameIndices};
use crate::budget::Bounds;
use crate::exports::ServedExport;
use crate::server::Server;
use crate::state::ServerState;
use crate::table::ConnectionTable;

/// The maximum number of bytes of data in one request: 32 MiB, which clients may assume without
/// negotiation.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;

/// The settings of a server beyond its configuration.
#[derive(Clone, Default)]
pub struct Settings {
    /// The bounds on connections and requests in progress.
    pub bounds: Bounds,
    /// The certificates; `None` disables TLS. The configuration decides whether clients must use
    /// TLS.
    pub tls: Option<Arc<ServerConfig>>,
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A device cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A tenant or group cannot be created on a device.
    #[error("device {device}: tenant or group {name}: {cause}")]
    Terms {
        /// The name of the device.
        device: String,
        /// The name of the tenant or group.
        name: String,
        /// The error of the device's queue.
        cause: TermsError,
    },
    /// An export does not fit its device.
    #[error("export `{export}`: {reason}")]
    Export {
        /// The name of the export.
        export: String,
        /// The reason as text.
        reason: String,
    },
}

impl<E: Engine> Server<E> {
    /// Creates a server without listening sockets: see [`Server::listen`].
    ///
    /// # Errors
    /// When a device cannot be opened, or a tenant or an export does not fit its device. The
    /// devices that were opened are closed again.
    pub fn new(engine: E, config: &Config, settings: Settings) -> Result<Server<E>, StartError> {
        let mut state = ServerState::new(engine, settings.bounds);
        state.tls = settings.tls;
        state.tls_required = config.tls.as_ref().is_some_and(|tls| tls.required);
        for (id, config) in (0..).map(DeviceId).zip(&config.devices) {
            let device = Device::new(id, config, &mut state.engine, state.now_ns)?;
            log_device(&device);
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
            let served = state.create_export(export)?;
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
        let (stall_check_ns, admin) = (state.now_ns, AdminState::new(state.now_ns, NameIndices::of(config)));
        Ok(Server {
            state,
            connections: ConnectionTable::new(),
            listeners: Vec::new(),
            events: Vec::new(),
            pending_turns: VecDeque::new(),
            completions: Vec::new(),
            accepted_total: 0,
            limit_logged: false,
            terminate_received: false,
            stall_check_ns,
            alarm: None,
            admin,
            admin_connections: ConnectionTable::new(),
            watch: Watch::default(),
            metrics: Metrics::default(),
            reload_status: "never".into(),
            readings: ConfigReadings::default(),
            retired: Vec::new(),
        })
    }
}

impl<E: Engine> ServerState<E> {
    /// Creates or changes the groups and tenants of the configuration on all devices. Returns
    /// warnings about terms without effect, and adds errors to `problems`.
    pub(crate) fn set_terms(&mut self, problems: &mut Vec<StartError>) -> Vec<String> {
        let ServerState { devices, config, now_ns, .. } = self;
        let mut warnings = Vec::new();
        for device in devices {
            let name = device.name().to_owned();
            let failed = |term: &str, cause| StartError::Terms { device: name.clone(), name: term.to_owned(), cause };
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
            // Larger reservations come last: they may need the rate that other tenants give up.
            let rate = |terms: Option<&Terms>| {
                terms.and_then(|terms| terms.reserve).map_or(0, |reserve| reserve.bytes_per_second)
            };
            let rises =
                |tenant: &&TenantConfig| rate(Some(&tenant.terms)) > rate(device.scheduler().terms(&tenant.name));
            let (rising, others): (Vec<_>, Vec<_>) = config.tenants.iter().partition(rises);
            for tenant in others.into_iter().chain(rising) {
                let terms = config.terms_on(&name, tenant, &tenant.terms);
                match device.scheduler_mut().set_tenant(&tenant.name, &terms, *now_ns) {
                    Ok(new) => warnings.extend(new.into_iter().map(|warning| format!("device {name}: {warning}"))),
                    Err(error) => problems.push(failed(&tenant.name, error)),
                }
            }
            warnings.append(&mut device.scheduler_mut().recheck_reservations());
        }
        warnings
    }

    /// Creates an export on its device.
    pub(crate) fn create_export(&self, config: &ExportConfig) -> Result<ServedExport, StartError> {
        let refuse = |reason: String| StartError::Export { export: config.name.clone(), reason };
        let id = self.device_named(&config.device);
        let Some((id, device)) = id.and_then(|id| Some((id, self.device(id)?))) else {
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
        let mut abilities = device.abilities();
        abilities.read_only |= config.read_only;
        if abilities.read_only {
            (abilities.trim, abilities.write_zeroes, abilities.fast_zero) = (false, false, false);
        }
        // All connections share one queue, so that a flush of one covers the completed writes of
        // all.
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
        Ok(ServedExport { export, device: id, offset: config.offset })
    }
}

/// Logs the properties of a new device.
pub(crate) fn log_device(device: &Device) {
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

/// Returns the groups, each after its parent. A valid configuration has no cycles; the groups of a
/// cycle would come last, where their creation fails.
fn parents_first(config: &Config) -> Vec<&GroupConfig> {
    let mut left: Vec<_> = config.groups.iter().collect();
    let mut sorted: Vec<&GroupConfig> = Vec::with_capacity(left.len());
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
