//! Tenants: by what they are known, and their terms.

use hoistway_core::{Class, Priority, Reservation};

use hoistway_qos::{Limits, Rate, Reserve, Terms};

use super::export::weight;
use crate::building::Building;
use crate::draft::{Entry, Value};
use crate::model::{Rule, TenantConfig};
use crate::value::{self, Fields, Understood};

/// The longest name of a command that the kernel keeps, in bytes.
const COMM_MAX: usize = 15;

impl Building<'_> {
    pub(super) fn tenant(&mut self, entry: &Entry) {
        let mut fields = self.fields(entry);
        let rules = rules(&mut fields);
        let name = tenant_name(&mut fields, &rules);
        let terms = Terms {
            priority: priority(&mut fields),
            weight: fields.read("weight", weight).unwrap_or(100),
            reserve: fields.read("reserve", reserve),
            limits: limits(&mut fields),
            parent: fields.read("parent", value::name),
        };
        self.config.tenants.push(TenantConfig { name, rules, terms });
    }
}

/// What is asked of a client, in the order of the reference.
fn rules(fields: &mut Fields<'_>) -> Vec<Rule> {
    let rules = [
        fields.read("export", pattern).map(Rule::Export),
        fields.read("uid", |value| number(value, 0, u32::MAX - 1)).map(Rule::Uid),
        fields.read("pid", |value| number(value, 1, 4_194_304)).map(Rule::Pid),
        fields.read("cgroup", cgroup).map(Rule::Cgroup),
        fields.read("comm", comm).map(Rule::Comm),
        fields.read("certificate", pattern).map(Rule::Certificate),
        fields.read("address", value::network).map(|(network, bits)| Rule::Address { network, bits }),
    ];
    rules.into_iter().flatten().collect()
}

/// Text in which `*` stands for any characters.
pub(crate) fn pattern(value: &Value) -> Understood<String> {
    match value::text(value)? {
        text if text.len() > value::TEXT_MAX => Err(format!("it takes at most {} bytes", value::TEXT_MAX)),
        text => Ok(text),
    }
}

/// A number of the system's.
pub(crate) fn number(value: &Value, min: u32, max: u32) -> Understood<u32> {
    let number = value::whole(value, min.into(), max.into())?;
    u32::try_from(number).map_err(|_| format!("it takes {min} to {max}"))
}

/// A command's name, as the kernel keeps it.
pub(crate) fn comm(value: &Value) -> Understood<String> {
    match value::text(value)? {
        text if text.is_empty() => Err("it takes a command's name".into()),
        text if text.len() > COMM_MAX && !text.contains('*') => {
            let kept = text.char_indices().take_while(|(at, c)| at + c.len_utf8() <= COMM_MAX).map(|(_, c)| c);
            Err(format!("the kernel keeps {COMM_MAX} bytes of a command's name: write {:?}", kept.collect::<String>()))
        }
        text => Ok(text),
    }
}

/// The path of a control group.
pub(crate) fn cgroup(value: &Value) -> Understood<String> {
    match value::text(value)? {
        text if text.starts_with('/') && !text.split('/').any(|part| matches!(part, "." | "..")) => Ok(text),
        _ => Err("it takes a path from the root, such as /system.slice/backup.service".into()),
    }
}

/// The name that was given, or else the one that follows from the only rule.
pub(crate) fn tenant_name(fields: &mut Fields<'_>, rules: &[Rule]) -> String {
    let place = fields.place("name");
    let given = match fields.entry.get("name") {
        Some(_) => fields.read("name", value::name),
        None => {
            let told = match rules {
                [rule] => told_by(rule).filter(|name| value::is_name(name)),
                _ => None,
            };
            if told.is_none() {
                fields.missing("name", "no name follows from its rules; letters, digits, `-`, `_` and `.` make one");
            }
            told
        }
    };
    if given.as_deref() == Some("default") {
        fields.problem(&place, "the name `default` is taken: clients without a rule are called so".into());
    }
    if given.as_deref() == Some("other") {
        fields
            .problem(&place, "the name `other` is taken: metrics call so what is beyond their bound of tenants".into());
    }
    given.unwrap_or_default()
}

fn told_by(rule: &Rule) -> Option<String> {
    Some(match rule {
        Rule::Export(text) | Rule::Comm(text) | Rule::Certificate(text) => text.clone(),
        Rule::Uid(uid) => format!("uid-{uid}"),
        Rule::Pid(pid) => format!("pid-{pid}"),
        Rule::Cgroup(path) => path.trim_end_matches('/').rsplit('/').next()?.to_owned(),
        Rule::Address { network, bits } => format!("{network}-{bits}"),
    })
}

pub(crate) fn priority(fields: &mut Fields<'_>) -> Priority {
    let class = fields.read("class", |value| match value::text(value)?.as_str() {
        "realtime" => Ok(Class::RealTime),
        "best-effort" => Ok(Class::BestEffort),
        "idle" => Ok(Class::Idle),
        _ => Err("it takes \"realtime\", \"best-effort\" or \"idle\"".into()),
    });
    let level = fields.read("level", |value| value::whole(value, 0, 7));
    if let (Some(Class::Idle), Some(level)) = (class, level) {
        let place = fields.place("level");
        fields.problem(&place, format!("`level` is {level}: the class idle has no levels"));
    }
    if class.is_none() && level.is_none() {
        return Priority::UNSET;
    }
    let level = level.and_then(|level| u8::try_from(level).ok()).unwrap_or(4);
    Priority::new(class.unwrap_or(Class::BestEffort), level).unwrap_or(Priority::UNSET)
}

/// A rate, or a rate and the size of requests.
pub(crate) fn reserve(value: &Value) -> Understood<Reserve> {
    let rate = |value: &Value| match value::rate(value)? {
        rate if rate > Reservation::RATE_MAX => {
            Err(format!("at most {} bytes a second can be reserved", Reservation::RATE_MAX))
        }
        rate => Ok(rate),
    };
    let Value::Table(pairs) = value else {
        return Ok(Reserve { bytes_per_second: rate(value)?, request_bytes: Reservation::REQUEST_DEFAULT });
    };
    let (mut bytes_per_second, mut request_bytes) = (None, Reservation::REQUEST_DEFAULT);
    for (key, _, said) in pairs {
        let wrong = |right| format!("its `{key}` is {}: {right}", said.value);
        match key.as_str() {
            "rate" => bytes_per_second = Some(rate(&said.value).map_err(wrong)?),
            "request" => {
                request_bytes = value::bytes_within(&said.value, 512, Reservation::REQUEST_MAX).map_err(wrong)?;
            }
            _ => return Err(format!("it has no key `{key}`; there are `rate`, `request`")),
        }
    }
    let bytes_per_second = bytes_per_second.ok_or("it takes a rate, as { rate = \"20M\", request = \"64k\" }")?;
    Ok(Reserve { bytes_per_second, request_bytes })
}

/// Limits in bytes and operations a second.
pub(crate) fn limits(fields: &mut Fields<'_>) -> Limits {
    Limits {
        bytes: limit(fields, "limit", "burst", value::rate, value::bytes),
        operations: limit(fields, "limit_iops", "burst_iops", operations, operations),
    }
}

fn operations(value: &Value) -> Understood<u64> {
    value::whole(value, 1, u64::MAX)
}

/// A limit and its burst.
fn limit(
    fields: &mut Fields<'_>,
    limit: &str,
    burst: &str,
    rate: impl FnOnce(&Value) -> Understood<u64>,
    depth: impl FnOnce(&Value) -> Understood<u64>,
) -> Option<Rate> {
    let per_second = fields.read(limit, rate);
    let depth = fields.read(burst, |value| match depth(value)? {
        0 => Err("it takes 1 or more".into()),
        depth => Ok(depth),
    });
    if fields.entry.get(limit).is_none() && fields.entry.get(burst).is_some() {
        let place = fields.place(burst);
        fields.problem(&place, format!("`{burst}` is given without `{limit}`"));
    }
    let usual = per_second.map(Rate::new);
    usual.map(|usual| Rate { burst: depth.unwrap_or(usual.burst), ..usual })
}
