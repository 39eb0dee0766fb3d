//! Combines the configuration file of `hoistway serve` with the options of its command line, which
//! override the file.

use hoistway_config::{CheckedConfig, ConfigError, Draft, Environment, Section};

use crate::cli::ServeArgs;

/// Builds and checks the configuration; called again with the same arguments for a reload.
///
/// # Errors
/// All errors of file and command line.
pub fn config(args: &ServeArgs, environment: &dyn Environment) -> Result<CheckedConfig, ConfigError> {
    let mut draft = match &args.config {
        Some(path) => Draft::load(path)?,
        None => Draft::default(),
    };
    for export in &args.exports {
        draft.export(export, environment);
    }
    if let Some(kind) = args.elevator {
        draft.set(Section::Device, "elevator", "--elevator", kind.info().name);
    }
    if let Some(drive) = &args.drive {
        draft.set(Section::Device, "drive", "--drive", drive);
    }
    for setting in &args.settings {
        draft.set_tunable(setting.elevator, setting.tunable, setting.value);
    }
    draft.listen(&args.sockets, &args.addresses);
    let paths = [
        (Section::Tls, "certificate", "--tls-cert", &args.tls_cert),
        (Section::Tls, "key", "--tls-key", &args.tls_key),
        (Section::Tls, "client_authority", "--tls-ca", &args.tls_ca),
        (Section::Control, "socket", "--control", &args.control),
        (Section::Top, "record", "--record", &args.monitoring.record),
    ];
    for (section, key, option, path) in paths {
        if let Some(path) = path {
            draft.set(section, key, option, &path.to_string_lossy());
        }
    }
    if let Some(address) = &args.monitoring.metrics {
        draft.set(Section::Metrics, "address", "--metrics", address);
    }
    for (given, section, key, option) in [
        (args.insecure, Section::Listen, "insecure", "--insecure"),
        (args.force_in_use, Section::Device, "force_in_use", "--force-in-use"),
        (args.tls_required, Section::Tls, "required", "--tls-required"),
    ] {
        if given {
            draft.switch_on(section, key, option);
        }
    }
    if args.calibrate {
        // Reservations rest on the figures that calibration measures.
        draft.without_reservations();
    }
    draft.check(environment)
}

/// Returns the option or table that names addresses for clients; it conflicts with sockets of
/// systemd.
pub fn listen_given(args: &ServeArgs, checked: &CheckedConfig) -> Option<&'static str> {
    match (args.sockets.is_empty(), args.addresses.is_empty(), checked.config.listen.is_empty()) {
        (false, ..) => Some("--socket"),
        (_, false, _) => Some("--listen"),
        (.., false) => Some("[listen]"),
        _ => None,
    }
}
