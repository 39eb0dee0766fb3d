//! The system calls of an old kernel: a filter that refuses all newer ones, as that kernel does.

use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Output};

use anyhow::{Context, Result};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use crate::binaries::Machine;

/// The highest number that is refused. Numbers of today's kernels are below it.
const LAST: i64 = 1023;

/// Returns the number after the last system call of Linux 4.18, which is rseq(2).
fn first_newer(machine: Machine) -> i64 {
    match machine {
        Machine::X86_64 => 335,
        Machine::Aarch64 => 294,
    }
}

/// Runs a command that has only the system calls of Linux 4.18, as have all programs that it
/// starts: the others return `ENOSYS`.
pub(super) fn output(command: &mut Command) -> Result<Output> {
    let machine = Machine::native()?;
    let architecture: TargetArch = machine.name().try_into().context("the architecture of the filter")?;
    let newer: BTreeMap<i64, Vec<_>> = (first_newer(machine)..=LAST).map(|number| (number, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let filter = SeccompFilter::new(newer, SeccompAction::Allow, refused, architecture).context("the filter")?;
    let program: BpfProgram = filter.try_into().context("the filter")?;
    // A filter cannot be removed: it is that of a thread, which ends.
    let filtered = || -> Result<io::Result<Output>> {
        seccompiler::apply_filter(&program).context("this machine allows no filters of system calls")?;
        Ok(command.output())
    };
    let ended = std::thread::scope(|scope| scope.spawn(filtered).join());
    ended.expect("the thread does not panic")?.context("the command cannot start")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_no_system_call_newer_than_4_18_and_the_caller_all() {
        // openat2(2) came with 5.6; its number is the same on all architectures.
        const SCRIPT: &str = "import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(437, -1, None, None, 0)
sys.exit(ctypes.get_errno())";
        if hoistway_workspace::programs::find("python3").is_none() {
            println!("SKIPPED: there is no python3");
            return;
        }
        let call = || {
            let mut command = Command::new("python3");
            command.args(["-c", SCRIPT]);
            command
        };
        let refused = output(&mut call()).expect("python3");
        assert_eq!(refused.status.code(), Some(libc::ENOSYS));
        let allowed = call().output().expect("python3");
        assert_eq!(allowed.status.code(), Some(libc::EINVAL), "the size of the argument is wrong");
    }
}
