//! What the kernel demands of the core's code. Each demand is an error that names the function.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use super::program::Program;
use super::stack::{self, Path};

/// The functions of the kernel that the core may call.
const ALLOWED: [&str; 6] = ["memcpy", "memmove", "memset", "memcmp", "bcmp", "__x86_return_thunk"];

/// The bytes of stack that a call may take, the calls that it makes included. The kernel's stack
/// has 16 KiB, of which a request path through a file system and several block devices takes much.
const STACK_LIMIT: i64 = 2048;

/// The functions that run once, in the context of a process, with little on the stack above them.
const LIMITS: [(&str, i64); 1] = [("hoistway_queue_init", 8192)];

/// Checks a program and returns the deepest chain of calls of each exported function.
pub fn check(program: &Program) -> Result<BTreeMap<String, Path>> {
    undefined(program)?;
    instructions(program)?;
    let paths = stack::deepest_paths(program)?;
    for (name, path) in &paths {
        let limit = LIMITS.iter().find(|(limited, _)| limited == name).map_or(STACK_LIMIT, |(_, limit)| *limit);
        if path.bytes > limit {
            let chain: Vec<String> = path.functions.iter().map(|(name, at)| format!("\n  at {at}: {name}")).collect();
            bail!("{name} takes {} bytes of stack, more than {limit}:{}", path.bytes, chain.concat());
        }
    }
    Ok(paths)
}

/// Fails if an item refers to something that neither the program nor the kernel has.
fn undefined(program: &Program) -> Result<()> {
    let defined: BTreeSet<&str> = program.items.iter().map(|item| item.name.as_str()).collect();
    for item in &program.items {
        let labels: BTreeSet<&str> = item.body.iter().filter_map(|line| line.strip_suffix(':')).collect();
        for line in item.body.iter().filter(|line| !line.ends_with(':')) {
            for name in program.machine.names(line) {
                if !defined.contains(name) && !labels.contains(name) && !ALLOWED.contains(&name) {
                    bail!("{} refers to {name}, which is not defined: {line}", item.name);
                }
            }
        }
    }
    Ok(())
}

/// Fails if an instruction cannot be used in the kernel.
fn instructions(program: &Program) -> Result<()> {
    for function in program.functions() {
        for line in &function.body {
            let fault = if program.machine.uses_vectors(line) {
                "a register of the floating-point or vector unit"
            } else if program.machine.uses_platform_register(line) {
                "a register that belongs to the kernel"
            } else if program.machine.uses_offset_table(line) {
                "the global offset table or thread-local storage"
            } else {
                continue;
            };
            bail!("{} uses {fault}: {line}", function.name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::listing::Item;
    use super::super::machine::Machine;
    use super::*;

    fn fault(machine: Machine, body: &[&str]) -> String {
        let body: Vec<String> = body.iter().map(|line| (*line).to_owned()).collect();
        let name = "hoistway_next".to_owned();
        let exports = BTreeSet::from([name.clone()]);
        let items = vec![Item { name, is_function: true, is_cold: false, alignment: None, body }];
        check(&Program { machine, items, exports }).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn code_that_the_kernel_accepts_passes() {
        let body = ["subq\t$8, %rsp", ".L0_1:", "callq\tmemcpy", "jne\t.L0_1", "addq\t$8, %rsp", "retq"];
        assert_eq!(fault(Machine::X86_64, &body), "");
        let body = ["stp\tx29, x30, [sp, #-16]!", "bl\tmemset", "ldp\tx29, x30, [sp], #16", "ret"];
        assert_eq!(fault(Machine::Arm64, &body), "");
    }

    #[test]
    fn each_demand_is_noticed_when_it_is_broken() {
        use Machine::{Arm64, X86_64};
        for (machine, line, message) in [
            (X86_64, "callq\t__udivti3", "refers to __udivti3, which is not defined"),
            (X86_64, "movups\t%xmm0, (%rdi)", "uses a register of the floating-point or vector unit"),
            (X86_64, "callq\t*%rax", "an indirect call or jump"),
            (X86_64, "movq\tmemcpy@GOTPCREL(%rip), %rax", "uses the global offset table"),
            (X86_64, "jmp\thoistway_next", "recursion: hoistway_next calls hoistway_next"),
            (X86_64, "subq\t$2048, %rsp", "takes 2056 bytes of stack, more than 2048"),
            (Arm64, "bl\t__multi3", "refers to __multi3, which is not defined"),
            (Arm64, "str\tq0, [x0]", "uses a register of the floating-point or vector unit"),
            (Arm64, "mov\tx18, x0", "uses a register that belongs to the kernel"),
            (Arm64, "blr\tx8", "an indirect call or jump"),
            (Arm64, "adrp\tx8, :got:memcpy", "uses the global offset table"),
            (Arm64, "sub\tsp, sp, #2064", "takes 2064 bytes of stack, more than 2048"),
        ] {
            let undo = match machine {
                X86_64 => "addq\t$2048, %rsp",
                Arm64 => "add\tsp, sp, #2064",
            };
            let body: &[&str] = if message.contains("bytes") { &[line, undo, "ret"] } else { &[line, "ret"] };
            let found = fault(machine, body);
            assert!(found.contains(message), "{line}: {found}");
        }
    }
}
