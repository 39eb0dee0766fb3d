//! Parses the values of a draft one by one into the configuration of a mount.

use super::builder::MountBuilder;
use super::{
    CheckedMount, GroupsChoice, MountConfig, MountDevice, MountRule, MountTenant, MountTerms, Ops, WriteBackChoice,
};
use crate::build::tenant::{cgroup, comm, number, pattern, tenant_name};
use crate::build::terms::terms;
use crate::builder::ConfigBuilder;
use crate::draft::{Draft, Entry, Value};
use crate::environment::Environment;
use crate::error::ConfigError;
use crate::model::{BackendConfig, Config, DeviceConfig, Rule, TenantConfig};
use crate::value::{self, ParseResult};
use hoistway_qos::DiskQueueConfig;

/// The largest number of session threads.
const THREADS_MAX: u64 = 64;
/// The smallest dirty limit in bytes: writers need room for at least one request.
const DIRTY_MIN: u64 = 1 << 20;

impl Draft {
    /// Parses and checks the draft of a mount's configuration. No device or file is opened.
    ///
    /// # Errors
    /// All problems, each with its location, the value, and what is allowed.
    pub fn check_mount(&self, environment: &dyn Environment) -> Result<CheckedMount, ConfigError> {
        let mut common = ConfigBuilder::new(environment, Config::default());
        common.problems.clone_from(&self.problems);
        let mut builder = MountBuilder { common, mount: MountConfig::default() };
        builder.terms(&self.mount);
        for entry in &self.devices {
            builder.device(entry);
        }
        for entry in &self.groups {
            builder.common.group(entry);
        }
        for entry in &self.tenants {
            builder.tenant(entry);
        }
        let off = self.control.get("socket").and_then(|located| located.text()) == Some("none");
        builder.mount.control = if off { None } else { builder.common.path(&self.control, "socket") };
        builder.mount.metrics = builder.common.fields(&self.metrics).read("address", value::address);
        super::check::check_consistency(self, &mut builder);
        let MountBuilder { common, mount } = builder;
        let ConfigBuilder { config, problems, warnings, .. } = common;
        let config = MountConfig { groups: config.groups, ..mount };
        if problems.is_empty() { Ok(CheckedMount { config, warnings }) } else { Err(ConfigError::Wrong { problems }) }
    }
}

impl MountBuilder<'_> {
    fn terms(&mut self, entry: &Entry) {
        let mut fields = self.common.fields(entry);
        let size = |value: &Value| value::bytes(value);
        self.mount.mount = MountTerms {
            elevator: fields.read("elevator", value::elevator),
            device: fields.read("device", value::text).filter(|device| device != "auto"),
            depth: fields.read("depth", depth),
            write_back: fields.read("write_back", write_back).unwrap_or_default(),
            dirty_background: fields.read("dirty_background", size),
            dirty_limit: fields.read("dirty_limit", |value| match value::bytes(value)? {
                bytes if bytes < DIRTY_MIN => Err("it takes 1M or more".into()),
                bytes => Ok(bytes),
            }),
            dirty_age_ns: fields.read("dirty_age", value::time_ns),
            groups: fields.read("groups", groups).unwrap_or_default(),
            allow_other: fields.read("allow_other", value::switch),
            threads: fields.read("threads", |value| within(value, 1, THREADS_MAX)),
            settings: Vec::new(),
        };
    }

    fn device(&mut self, entry: &Entry) {
        let mut fields = self.common.fields(entry);
        if entry.get("name").is_none() {
            fields.missing("name", "it is the kernel's name of the device, such as sdb");
        }
        let name = fields.read("name", value::path).unwrap_or_default();
        let elevator = fields.read("elevator", value::elevator);
        let device = MountDevice {
            name,
            elevator,
            depth: fields.read("depth", depth),
            tunables: Vec::new(),
            merge: fields.read("merge", value::switch).unwrap_or(true),
            bandwidth: fields.read("bandwidth", value::rate),
            position_ns: fields.read("position", value::time_ns),
            log_slow_ns: fields.read("log_slow", value::log_slow_ns),
            rotational: fields.read("rotational", value::switch),
        };
        // The tunables may belong to the elevator of the whole mount.
        let tunables = self.common.tunables(entry, elevator.or(self.mount.mount.elevator));
        // Checks that server and mount share look at the common configuration.
        self.common.config.devices.push(DeviceConfig {
            queue: DiskQueueConfig {
                name: device.name.clone(),
                elevator: elevator.or(self.mount.mount.elevator),
                depth: device.depth,
                tunables: tunables.clone(),
                merge: device.merge,
                request_bytes_max: DiskQueueConfig::REQUEST_BYTES_DEFAULT,
                bandwidth: device.bandwidth,
                position_ns: device.position_ns,
                log_slow_ns: device.log_slow_ns.unwrap_or(DiskQueueConfig::LOG_SLOW_NS_DEFAULT),
            },
            backend: BackendConfig::Null { bytes: 512 },
            drive: None,
        });
        self.mount.devices.push(MountDevice { tunables, ..device });
    }

    fn tenant(&mut self, entry: &Entry) {
        let mut fields = self.common.fields(entry);
        let user = |value: &Value| number(value, 0, u32::MAX - 1);
        let rules: Vec<MountRule> = [
            fields.read("cgroup", cgroup).map(MountRule::Cgroup),
            fields.read("comm", comm).map(MountRule::Comm),
            fields.read("command", pattern).map(MountRule::Command),
            fields.read("uid", user).map(MountRule::Uid),
            fields.read("gid", user).map(MountRule::Gid),
            fields.read("path", path).map(MountRule::Path),
            fields.read("op", ops).map(MountRule::Op),
        ]
        .into_iter()
        .flatten()
        .collect();
        // The default name follows from a rule as it does for a server.
        let server_rule: Vec<Rule> = rules.iter().map(server_rule).collect();
        let name = tenant_name(&mut fields, &server_rule);
        let terms = terms(&mut fields);
        let pass = !fields.read("schedule", value::switch).unwrap_or(true);
        self.common.config.tenants.push(TenantConfig { name: name.clone(), rules: server_rule, terms: terms.clone() });
        self.mount.tenants.push(MountTenant { name, rules, terms, pass });
    }
}

fn depth(value: &Value) -> ParseResult<u32> {
    within(value, 1, 4096)
}

fn within(value: &Value, min: u64, max: u64) -> ParseResult<u32> {
    value::whole(value, min, max).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn write_back(value: &Value) -> ParseResult<WriteBackChoice> {
    match value::text(value)?.as_str() {
        "ours" => Ok(WriteBackChoice::Ours),
        "kernel" => Ok(WriteBackChoice::Kernel),
        _ => Err("it takes \"ours\" or \"kernel\"".into()),
    }
}

fn groups(value: &Value) -> ParseResult<GroupsChoice> {
    match value::text(value)?.as_str() {
        "none" => Ok(GroupsChoice::None),
        "cgroup" => Ok(GroupsChoice::Cgroup),
        _ => Err("it takes \"none\" or \"cgroup\"".into()),
    }
}

/// Parses a pattern of paths below the mount.
fn path(value: &Value) -> ParseResult<String> {
    match pattern(value)? {
        text if text.starts_with('/') => Err(format!(
            "it takes a path below the mount, without a slash at its beginning: {:?}",
            text.trim_start_matches('/')
        )),
        text if text.is_empty() => Err("it takes a path below the mount, such as \"films/*\"".into()),
        text => Ok(text),
    }
}

fn ops(value: &Value) -> ParseResult<Ops> {
    let one = |value: &Value| {
        let name = value::text(value)?;
        let known = Ops::NAMES.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, ops)| *ops)
            .ok_or_else(|| "it takes \"read\", \"write\", \"sync\", \"meta\", or a list of them".into())
    };
    match value {
        Value::List(each) if each.is_empty() => Err("the list is empty: the rule would match no request".into()),
        Value::List(each) => each.iter().try_fold(Ops::default(), |ops, located| Ok(ops.and(one(&located.value)?))),
        one_alone => one(one_alone),
    }
}

/// Returns the server rule from which the default tenant name follows.
fn server_rule(rule: &MountRule) -> Rule {
    match rule {
        MountRule::Cgroup(path) => Rule::Cgroup(path.clone()),
        MountRule::Comm(text) | MountRule::Command(text) | MountRule::Path(text) => Rule::Comm(text.clone()),
        MountRule::Uid(uid) => Rule::Uid(*uid),
        MountRule::Gid(gid) => Rule::Comm(format!("gid-{gid}")),
        MountRule::Op(ops) => {
            let names = Ops::NAMES.iter().filter(|(_, one)| ops.has(*one)).map(|(name, _)| *name);
            Rule::Comm(names.collect::<Vec<_>>().join("-"))
        }
    }
}
