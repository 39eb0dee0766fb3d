//! Whose a request is: the first tenant all of whose rules hold.

use hoistway_serve::config::mount::{GroupsChoice, MountConfig, MountRule, MountTenant, Ops};
use hoistway_serve::engine::Process;
use hoistway_serve::rules::{lies_in, matches};

use crate::Operation;

/// What is known of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Its number, user, group, name, control group and priority.
    pub process: Process,
    /// Its command line, with blanks between the words.
    pub command: String,
    /// What tells it from those that had its number before; 0 of one that is gone.
    pub began: u64,
}

impl Facts {
    /// Nothing could be read of it.
    pub fn is_gone(&self) -> bool {
        self.began == 0
    }
}

/// Whose a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Whose {
    /// The tenant at this place of the configuration.
    Tenant(u32),
    /// Its control group's.
    Cgroup,
    /// Its own.
    Own,
}

/// The rules of a configuration.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    pub tenants: Vec<MountTenant>,
    by_cgroup: bool,
    /// Some rule is about paths.
    has_paths: bool,
    /// Some rule is about command lines.
    has_commands: bool,
}

impl Rules {
    pub fn new(config: &MountConfig) -> Rules {
        let rules = || config.tenants.iter().flat_map(|tenant| &tenant.rules);
        Rules {
            tenants: config.tenants.clone(),
            by_cgroup: config.mount.groups == GroupsChoice::Cgroup,
            has_paths: rules().any(|rule| matches!(rule, MountRule::Path(_))),
            has_commands: rules().any(|rule| matches!(rule, MountRule::Command(_))),
        }
    }

    /// Whether command lines have to be known. They lie in the memory of processes: who reads one waits while a process changes what it has mapped, and that may wait for us.
    pub fn has_commands(&self) -> bool {
        self.has_commands
    }

    /// Whether any tenant's files are for the kernel to read and write itself.
    pub fn has_passes(&self) -> bool {
        self.tenants.iter().any(|tenant| tenant.pass)
    }

    /// Whether paths have to be known.
    pub fn has_paths(&self) -> bool {
        self.has_paths
    }

    /// Whose all requests of a thread are, if that is known whatever they are.
    pub fn of_thread(&self, facts: &Facts) -> Option<Whose> {
        for (place, tenant) in (0..).zip(&self.tenants) {
            let (of_request, of_process): (Vec<_>, Vec<_>) = tenant.rules.iter().partition(|rule| rule.is_of_request());
            if !of_process.iter().all(|rule| holds_for(rule, facts)) {
                continue;
            }
            return of_request.is_empty().then_some(Whose::Tenant(place));
        }
        Some(self.otherwise(facts))
    }

    /// Whose one request of a thread is. `path` is asked for only where a rule is about paths.
    pub fn of_request(&self, facts: &Facts, operation: Operation, path: &mut dyn FnMut() -> String) -> Whose {
        let ops = ops_of(operation);
        let mut known: Option<String> = None;
        let mut holds = |rule: &MountRule| match rule {
            MountRule::Path(pattern) => matches(pattern, known.get_or_insert_with(&mut *path)),
            MountRule::Op(asked) => asked.has(ops),
            of_process => holds_for(of_process, facts),
        };
        let place = self.tenants.iter().position(|tenant| tenant.rules.iter().all(&mut holds));
        place.map_or_else(|| self.otherwise(facts), |place| Whose::Tenant(place as u32))
    }

    /// Whether files that a thread opens there are for the kernel to read and write itself.
    pub fn passes(&self, facts: &Facts, path: &mut dyn FnMut() -> String) -> bool {
        if !self.has_passes() {
            return false;
        }
        match self.of_request(facts, Operation::Read, path) {
            Whose::Tenant(place) => self.tenants.get(place as usize).is_some_and(|tenant| tenant.pass),
            _ => false,
        }
    }

    /// Who a thread is that no rule holds for.
    fn otherwise(&self, facts: &Facts) -> Whose {
        if self.by_cgroup && facts.process.cgroup.len() > 1 { Whose::Cgroup } else { Whose::Own }
    }
}

fn holds_for(rule: &MountRule, facts: &Facts) -> bool {
    let process = &facts.process;
    match rule {
        MountRule::Cgroup(path) => lies_in(&process.cgroup, path),
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
        Operation::Write | Operation::Buffered | Operation::Gathered => "write",
        Operation::Sync => "sync",
        Operation::Look | Operation::Change => "meta",
    };
    Ops::NAMES.iter().find(|(known, _)| *known == name).map_or(Ops::default(), |(_, ops)| *ops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_serve::tenant::Terms;

    fn facts(comm: &str, cgroup: &str, uid: u32, command: &str) -> Facts {
        let process = Process { comm: comm.into(), cgroup: cgroup.into(), uid, gid: 100, ..Process::default() };
        Facts { process, command: command.into(), began: 1 }
    }

    fn rules(tenants: Vec<Vec<MountRule>>) -> Rules {
        let tenant = |(place, rules): (usize, Vec<MountRule>)| MountTenant {
            name: format!("t{place}"),
            rules,
            terms: Terms::default(),
            pass: place == 2,
        };
        Rules { tenants: tenants.into_iter().enumerate().map(tenant).collect(), ..Rules::default() }
    }

    fn never() -> String {
        panic!("no rule is about paths")
    }

    #[test]
    fn each_rule_holds_for_whom_it_asks_and_for_nobody_else() {
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
            let whose = rules(vec![vec![rule.clone()]]).of_thread(&cp);
            assert_eq!(whose, Some(if holds { Whose::Tenant(0) } else { Whose::Own }), "{rule:?}");
        }
    }

    #[test]
    fn the_first_tenant_all_of_whose_rules_hold_is_it() {
        let rules = rules(vec![
            vec![MountRule::Comm("cp".into()), MountRule::Uid(0)],
            vec![MountRule::Comm("cp".into())],
            vec![],
        ]);
        let of = |comm: &str, uid| rules.of_request(&facts(comm, "/", uid, ""), Operation::Read, &mut never);
        assert_eq!([of("cp", 0), of("cp", 1), of("mv", 1)], [0, 1, 2].map(Whose::Tenant));
        assert!(rules.passes(&facts("mv", "/", 1, ""), &mut never));
        assert!(!rules.passes(&facts("cp", "/", 1, ""), &mut never));
    }

    #[test]
    fn a_rule_about_requests_leaves_open_whose_a_thread_s_requests_are() {
        let ops = |name: &str| Ops::NAMES.iter().find(|(known, _)| *known == name).expect("it is one").1;
        let rules = rules(vec![
            vec![MountRule::Comm("cp".into()), MountRule::Op(ops("sync").and(ops("meta")))],
            vec![MountRule::Path("films/*".into()), MountRule::Comm("cp".into())],
            vec![MountRule::Comm("cp".into())],
        ]);
        let cp = facts("cp", "/", 0, "");
        assert_eq!(rules.of_thread(&cp), None);
        assert_eq!(rules.of_thread(&facts("mv", "/", 0, "")), Some(Whose::Own));
        let mut film = || "films/a.mkv".to_owned();
        assert_eq!(rules.of_request(&cp, Operation::Sync, &mut film), Whose::Tenant(0));
        assert_eq!(rules.of_request(&cp, Operation::Read, &mut film), Whose::Tenant(1));
        assert_eq!(rules.of_request(&cp, Operation::Buffered, &mut || "music/b".into()), Whose::Tenant(2));
    }

    #[test]
    fn without_a_rule_a_process_is_its_own_or_its_control_group_s() {
        let mut rules = rules(vec![]);
        let one = facts("cp", "/system.slice/a.service", 0, "");
        assert_eq!(rules.of_thread(&one), Some(Whose::Own));
        rules.by_cgroup = true;
        assert_eq!(rules.of_thread(&one), Some(Whose::Cgroup));
        assert_eq!(rules.of_thread(&facts("cp", "/", 0, "")), Some(Whose::Own), "the root is no group");
    }
}
