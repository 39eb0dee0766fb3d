//! Parses `[[tenant]]` sections: the rules that assign clients, and the terms.

use super::terms::terms;
use crate::builder::ConfigBuilder;
use crate::draft::{Entry, Value};
use crate::model::{Rule, TenantConfig};
use crate::value::{self, Fields, ParseResult};

/// The longest command name that the kernel keeps, in bytes.
const COMM_MAX: usize = 15;

impl ConfigBuilder<'_> {
    pub(super) fn tenant(&mut self, entry: &Entry) {
        let mut fields = self.fields(entry);
        let rules = rules(&mut fields);
        let name = tenant_name(&mut fields, &rules);
        let terms = terms(&mut fields);
        self.config.tenants.push(TenantConfig { name, rules, terms });
    }
}

/// Parses the rules of a tenant, in the order of the reference.
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

/// Parses a pattern, in which `*` stands for any characters.
pub(crate) fn pattern(value: &Value) -> ParseResult<String> {
    match value::text(value)? {
        text if text.len() > value::TEXT_MAX => Err(format!("it takes at most {} bytes", value::TEXT_MAX)),
        text => Ok(text),
    }
}

/// Parses a numeric id such as a user id.
pub(crate) fn number(value: &Value, min: u32, max: u32) -> ParseResult<u32> {
    let number = value::whole(value, min.into(), max.into())?;
    u32::try_from(number).map_err(|_| format!("it takes {min} to {max}"))
}

/// Parses a command name; the kernel keeps its first 15 bytes.
pub(crate) fn comm(value: &Value) -> ParseResult<String> {
    match value::text(value)? {
        text if text.is_empty() => Err("it takes a command's name".into()),
        text if text.len() > COMM_MAX && !text.contains('*') => {
            let kept = text.char_indices().take_while(|(at, c)| at + c.len_utf8() <= COMM_MAX).map(|(_, c)| c);
            Err(format!("the kernel keeps {COMM_MAX} bytes of a command's name: write {:?}", kept.collect::<String>()))
        }
        text => Ok(text),
    }
}

/// Parses the path of a control group.
pub(crate) fn cgroup(value: &Value) -> ParseResult<String> {
    match value::text(value)? {
        text if text.starts_with('/') && !text.split('/').any(|part| matches!(part, "." | "..")) => Ok(text),
        _ => Err("it takes a path from the root, such as /system.slice/backup.service".into()),
    }
}

/// Returns the configured name, or the name that follows from the only rule.
pub(crate) fn tenant_name(fields: &mut Fields<'_>, rules: &[Rule]) -> String {
    let location = fields.location("name");
    let given = match fields.entry.get("name") {
        Some(_) => fields.read("name", value::name),
        None => {
            let problem_lines = match rules {
                [rule] => name_from_rule(rule).filter(|name| value::is_name(name)),
                _ => None,
            };
            if problem_lines.is_none() {
                fields.missing("name", "no name follows from its rules; letters, digits, `-`, `_` and `.` make one");
            }
            problem_lines
        }
    };
    if given.as_deref() == Some("default") {
        fields.problem(&location, "the name `default` is reserved for clients that no rule matches".into());
    }
    if given.as_deref() == Some("other") {
        fields.problem(
            &location,
            "the name `other` is reserved: metrics use it for tenants beyond their maximum number".into(),
        );
    }
    given.unwrap_or_default()
}

fn name_from_rule(rule: &Rule) -> Option<String> {
    Some(match rule {
        Rule::Export(text) | Rule::Comm(text) | Rule::Certificate(text) => text.clone(),
        Rule::Uid(uid) => format!("uid-{uid}"),
        Rule::Pid(pid) => format!("pid-{pid}"),
        Rule::Cgroup(path) => path.trim_end_matches('/').rsplit('/').next()?.to_owned(),
        Rule::Address { network, bits } => format!("{network}-{bits}"),
    })
}
