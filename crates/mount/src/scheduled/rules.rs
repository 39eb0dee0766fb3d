//! Attribution of requests to tenants: the first tenant whose rules all match.

use hoistway_config::mount::{GroupsChoice, MountConfig, MountRule, MountTenant, Ops};
use hoistway_config::rules::{is_within, matches};
use hoistway_reactor::Process;

use crate::Operation;

/// Facts about a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Thread ID, user, group, command name, control group and I/O priority.
    pub process: Process,
    /// The command line, with spaces between the words.
    pub command: String,
    /// Distinguishes the thread from earlier ones with the same ID; 0 after its exit.
    pub start_id: u64,
}

impl Facts {
    /// Returns true if the thread has exited, so that nothing could be read.
    pub fn is_exited(&self) -> bool {
        self.start_id == 0
    }
}

/// The account to which a request is attributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Attribution {
    /// The tenant with this index in the configuration.
    Tenant(u32),
    /// The tenant of the control group.
    Cgroup,
    /// A tenant of the issuer's own.
    Own,
}

/// The rules of a configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// The tenants in the order of the configuration.
    pub tenants: Vec<MountTenant>,
    /// Processes that match no tenant share one with their control group.
    by_cgroup: bool,
    /// A rule matches paths.
    has_paths: bool,
    /// A rule matches command lines.
    has_commands: bool,
}

impl Rules {
    /// Copies the rules of a configuration.
    pub fn new(config: &MountConfig) -> Rules {
        let rules = || config.tenants.iter().flat_map(|tenant| &tenant.rules);
        Rules {
            tenants: config.tenants.clone(),
            by_cgroup: config.mount.groups == GroupsChoice::Cgroup,
            has_paths: rules().any(|rule| matches!(rule, MountRule::Path(_))),
            has_commands: rules().any(|rule| matches!(rule, MountRule::Command(_))),
        }
    }

    /// Returns true if command lines are needed. Reading one blocks while the process changes its
    /// mappings, which may itself wait for this mount.
    pub fn has_commands(&self) -> bool {
        self.has_commands
    }

    /// Returns true if a tenant's files bypass the gate.
    pub fn has_bypass(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.pass)
    }

    /// Returns true if paths are needed.
    pub fn has_paths(&self) -> bool {
        self.has_paths
    }

    /// Returns the attribution of all requests of a thread, if it does not depend on the request.
    pub fn attribute_thread(&self, facts: &Facts) -> Option<Attribution> {
        for (index, tenant) in (0..).zip(&self.tenants) {
            let (request_rules, process_rules): (Vec<_>, Vec<_>) =
                tenant.rules.iter().partition(|rule| rule.tests_request());
            if !process_rules.iter().all(|rule| holds_for(rule, facts)) {
                continue;
            }
            return request_rules.is_empty().then_some(Attribution::Tenant(index));
        }
        Some(self.fallback(facts))
    }

    /// Returns the attribution of one request. `path` is called only if a rule matches paths.
    pub fn attribute_request(
        &self,
        facts: &Facts,
        operation: Operation,
        path: &mut dyn FnMut() -> String,
    ) -> Attribution {
        let ops = ops_of(operation);
        let mut known_path: Option<String> = None;
        let mut holds = |rule: &MountRule| match rule {
            MountRule::Path(pattern) => matches(pattern, known_path.get_or_insert_with(&mut *path)),
            MountRule::Op(matched) => matched.has(ops),
            process_rule => holds_for(process_rule, facts),
        };
        let index = self.tenants.iter().position(|tenant| tenant.rules.iter().all(&mut holds));
        index.map_or_else(|| self.fallback(facts), |index| Attribution::Tenant(index as u32))
    }

    /// Returns true if files that a thread opens at this path bypass the gate.
    pub fn allows_bypass(&self, facts: &Facts, path: &mut dyn FnMut() -> String) -> bool {
        if !self.has_bypass() {
            return false;
        }
        match self.attribute_request(facts, Operation::Read, path) {
            Attribution::Tenant(index) => self.tenants.get(index as usize).is_some_and(|tenant| tenant.pass),
            _ => false,
        }
    }

    /// Returns the attribution of a thread that matches no tenant.
    fn fallback(&self, facts: &Facts) -> Attribution {
        if self.by_cgroup && facts.process.cgroup.len() > 1 { Attribution::Cgroup } else { Attribution::Own }
    }
}

fn holds_for(rule: &MountRule, facts: &Facts) -> bool {
    let process = &facts.process;
    match rule {
        MountRule::Cgroup(path) => is_within(&process.cgroup, path),
        MountRule::Comm(pattern) => matches(pattern, &process.comm),
        MountRule::Command(pattern) => matches(pattern, &facts.command),
        MountRule::Uid(uid) => process.uid == *uid,
        MountRule::Gid(gid) => process.gid == *gid,
        MountRule::Path(_) | MountRule::Op(_) => true,
    }
}

fn ops_of(operation: Operation) -> Ops {
    let name = match operation {
        Operation::Read => "read",
        Operation::Write | Operation::BufferedWrite | Operation::KernelWriteback => "write",
        Operation::Sync => "sync",
        Operation::MetadataRead | Operation::MetadataWrite => "meta",
    };
    Ops::NAMES.iter().find(|(known, _)| *known == name).map_or(Ops::default(), |(_, ops)| *ops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_qos::Terms;

    fn facts(comm: &str, cgroup: &str, uid: u32, command: &str) -> Facts {
        let process = Process { comm: comm.into(), cgroup: cgroup.into(), uid, gid: 100, ..Process::default() };
        Facts { process, command: command.into(), start_id: 1 }
    }

    fn rules(tenants: Vec<Vec<MountRule>>) -> Rules {
        let tenant = |(index, rules): (usize, Vec<MountRule>)| MountTenant {
            name: format!("t{index}"),
            rules,
            terms: Terms::default(),
            pass: index == 2,
        };
        Rules { tenants: tenants.into_iter().enumerate().map(tenant).collect(), ..Rules::default() }
    }

    fn never() -> String {
        panic!("no rule is about paths")
    }

    #[test]
    fn each_rule_matches_exactly_its_threads() {
        let cp = facts("cp", "/user.slice/a.scope", 1000, "cp -a /src /dst");
        let table = [
            (MountRule::Comm("c*".into()), true),
            (MountRule::Comm("mv".into()), false),
            (MountRule::Command("cp *".into()), true),
            (MountRule::Command("cp".into()), false),
            (MountRule::Cgroup("/user.slice".into()), true),
            (MountRule::Cgroup("/user".into()), false),
            (MountRule::Uid(1000), true),
            (MountRule::Uid(0), false),
            (MountRule::Gid(100), true),
            (MountRule::Gid(0), false),
        ];
        for (rule, holds) in table {
            let attribution = rules(vec![vec![rule.clone()]]).attribute_thread(&cp);
            assert_eq!(attribution, Some(if holds { Attribution::Tenant(0) } else { Attribution::Own }), "{rule:?}");
        }
    }

    #[test]
    fn the_first_matching_tenant_is_selected() {
        let rules = rules(vec![
            vec![MountRule::Comm("cp".into()), MountRule::Uid(0)],
            vec![MountRule::Comm("cp".into())],
            vec![],
        ]);
        let of = |comm: &str, uid| rules.attribute_request(&facts(comm, "/", uid, ""), Operation::Read, &mut never);
        assert_eq!([of("cp", 0), of("cp", 1), of("mv", 1)], [0, 1, 2].map(Attribution::Tenant));
        assert!(rules.allows_bypass(&facts("mv", "/", 1, ""), &mut never));
        assert!(!rules.allows_bypass(&facts("cp", "/", 1, ""), &mut never));
    }

    #[test]
    fn a_rule_about_requests_leaves_the_thread_unattributed() {
        let ops = |name: &str| Ops::NAMES.iter().find(|(known, _)| *known == name).expect("it is one").1;
        let rules = rules(vec![
            vec![MountRule::Comm("cp".into()), MountRule::Op(ops("sync").and(ops("meta")))],
            vec![MountRule::Path("films/*".into()), MountRule::Comm("cp".into())],
            vec![MountRule::Comm("cp".into())],
        ]);
        let cp = facts("cp", "/", 0, "");
        assert_eq!(rules.attribute_thread(&cp), None);
        assert_eq!(rules.attribute_thread(&facts("mv", "/", 0, "")), Some(Attribution::Own));
        let mut film = || "films/a.mkv".to_owned();
        assert_eq!(rules.attribute_request(&cp, Operation::Sync, &mut film), Attribution::Tenant(0));
        assert_eq!(rules.attribute_request(&cp, Operation::Read, &mut film), Attribution::Tenant(1));
        assert_eq!(
            rules.attribute_request(&cp, Operation::BufferedWrite, &mut || "music/b".into()),
            Attribution::Tenant(2)
        );
    }

    #[test]
    fn without_a_rule_the_thread_or_its_control_group_is_the_tenant() {
        let mut rules = rules(vec![]);
        let one = facts("cp", "/system.slice/a.service", 0, "");
        assert_eq!(rules.attribute_thread(&one), Some(Attribution::Own));
        rules.by_cgroup = true;
        assert_eq!(rules.attribute_thread(&one), Some(Attribution::Cgroup));
        assert_eq!(rules.attribute_thread(&facts("cp", "/", 0, "")), Some(Attribution::Own), "the root is no group");
    }
}
