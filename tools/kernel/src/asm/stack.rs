//! The use of the stack, computed from the instructions: exact, because no call is indirect and
//! nothing is recursive.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::listing::Item;
use super::machine::{Flow, Machine, Saved, Stack};
use super::program::Program;

/// How a function uses the stack, in bytes below the stack pointer of its caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its own part.
    pub own: i64,
    /// The functions that it calls, and the bytes that are in use when each begins.
    pub calls: Vec<(String, i64)>,
}

/// A chain of calls, and the bytes of stack that it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    pub bytes: i64,
    /// The functions below the first one, with the bytes in use at the begin of each.
    pub functions: Vec<(String, i64)>,
}

/// The stack pointer at an instruction, as bytes below that of the caller.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    depth: i64,
    frame_pointer: Option<i64>,
    scratch: Option<i64>,
}

/// Computes the frame of a function by following all its jumps. Errors name the instruction.
pub fn frame(machine: Machine, item: &Item) -> Result<Frame> {
    let labels: BTreeMap<&str, usize> =
        item.body.iter().enumerate().filter_map(|(at, line)| Some((line.strip_suffix(':')?, at))).collect();
    let mut states: Vec<Option<State>> = vec![None; item.body.len()];
    let start = machine.bytes_of_call();
    let mut open = vec![(0, State { depth: start, frame_pointer: None, scratch: None })];
    let mut frame = Frame { own: start, calls: Vec::new() };
    while let Some((at, state)) = open.pop() {
        let Some(line) = item.body.get(at) else { bail!("{}: the end is reached", item.name) };
        if let Some(known) = states[at] {
            if known.depth != state.depth {
                bail!("{}: {line}: reached with {} and {} bytes of stack", item.name, known.depth, state.depth);
            }
            continue;
        }
        states[at] = Some(state);
        if line.ends_with(':') || line.starts_with('.') {
            open.push((at + 1, state));
            continue;
        }
        let Some(next) = after(machine.stack(line), state) else {
            bail!("{}: {line}: a change of the stack pointer that is not understood", item.name);
        };
        frame.own = frame.own.max(next.depth);
        let is_last = |target: &str| !target.starts_with('.');
        match machine.flow(line) {
            Flow::Next => open.push((at + 1, next)),
            Flow::Call(target) => {
                frame.calls.push((target.to_owned(), next.depth));
                open.push((at + 1, next));
            }
            Flow::Jump(target) | Flow::Branch(target) if is_last(target) => {
                if next.depth != start {
                    bail!("{}: {line}: {} bytes are on the stack", item.name, next.depth - start);
                }
                frame.calls.push((target.to_owned(), 0));
                if matches!(machine.flow(line), Flow::Branch(_)) {
                    open.push((at + 1, next));
                }
            }
            Flow::Jump(target) | Flow::Branch(target) => {
                let Some(&to) = labels.get(target) else { bail!("{}: no label {target}", item.name) };
                open.push((to, next));
                if matches!(machine.flow(line), Flow::Branch(_)) {
                    open.push((at + 1, next));
                }
            }
            Flow::Return if next.depth != start => {
                bail!("{}: {line}: {} bytes are on the stack", item.name, next.depth - start)
            }
            Flow::Return | Flow::Stop => {}
            Flow::Indirect => bail!("{}: {line}: an indirect call or jump", item.name),
        }
    }
    frame.calls.sort();
    frame.calls.dedup();
    Ok(frame)
}

fn after(effect: Stack, mut state: State) -> Option<State> {
    let saved = |which, state: &State| match which {
        Saved::Frame => state.frame_pointer,
        Saved::Scratch => state.scratch,
    };
    match effect {
        Stack::Keep => {}
        Stack::Grow(bytes) => state.depth += bytes,
        // At most; the stack is aligned to 8 bytes at least.
        Stack::Align(multiple) => state.depth += multiple - 8,
        Stack::Save(Saved::Frame, bytes) => state.frame_pointer = Some(state.depth + bytes),
        Stack::Save(Saved::Scratch, bytes) => state.scratch = Some(state.depth + bytes),
        Stack::Restore(which, bytes) => state.depth = saved(which, &state)? + bytes,
        Stack::RestoreAligned(which, multiple) => state.depth = saved(which, &state)? + multiple - 8,
        Stack::Unknown => return None,
    }
    (state.depth >= 0).then_some(state)
}

/// The deepest chain of calls of each exported function. Recursion is an error.
pub fn deepest_paths(program: &Program) -> Result<BTreeMap<String, Path>> {
    let mut frames = BTreeMap::new();
    for item in program.functions() {
        frames.insert(item.name.as_str(), frame(program.machine, item)?);
    }
    let mut paths = BTreeMap::new();
    let mut result = BTreeMap::new();
    for name in &program.exports {
        result.insert(name.clone(), deepest(name, &frames, &mut paths, &mut Vec::new())?);
    }
    Ok(result)
}

fn deepest(
    name: &str,
    frames: &BTreeMap<&str, Frame>,
    paths: &mut BTreeMap<String, Path>,
    callers: &mut Vec<String>,
) -> Result<Path> {
    if let Some(path) = paths.get(name) {
        return Ok(path.clone());
    }
    // A function of the kernel: its own frame counts to its account.
    let Some(frame) = frames.get(name) else { return Ok(Path::default()) };
    if let Some(at) = callers.iter().position(|caller| caller == name) {
        bail!("recursion: {} calls {name}", callers[at..].join(" calls "));
    }
    callers.push(name.to_owned());
    let mut best = Path { bytes: frame.own, functions: Vec::new() };
    for (callee, begin) in &frame.calls {
        let below = deepest(callee, frames, paths, callers)?;
        if begin + below.bytes > best.bytes {
            let functions = below.functions.into_iter().map(|(name, at)| (name, at + begin));
            let functions = std::iter::once((callee.clone(), *begin)).chain(functions).collect();
            best = Path { bytes: begin + below.bytes, functions };
        }
    }
    callers.pop();
    paths.insert(name.to_owned(), best.clone());
    Ok(best)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn item(name: &str, body: &[&str]) -> Item {
        let body = body.iter().map(|line| (*line).to_owned()).collect();
        Item { name: name.to_owned(), is_function: true, is_cold: false, alignment: None, body }
    }

    fn paths(items: Vec<Item>) -> Result<BTreeMap<String, Path>> {
        let exports = BTreeSet::from([items[0].name.clone()]);
        deepest_paths(&Program { machine: Machine::X86_64, items, exports })
    }

    #[test]
    fn the_deepest_path_is_the_sum_of_its_frames() {
        let first = ["testl\t%eax, %eax", "je\t.L0_1", "pushq\t%rbx", "subq\t$100, %rsp", "callq\tsecond"];
        let first = [&first[..], &["addq\t$100, %rsp", "popq\t%rbx", ".L0_1:", "jmp\tthird"]].concat();
        let second = item("second", &["subq\t$16, %rsp", "callq\tmemcpy", "addq\t$16, %rsp", "retq"]);
        let third = item("third", &["subq\t$40, %rsp", "addq\t$40, %rsp", "retq"]);
        let paths = paths(vec![item("first", &first), second, third]).expect("no recursion");
        // 8 for the return address, 8 + 100 for the frame, 8 and 16 of the second, 8 of memcpy.
        assert_eq!(paths["first"].bytes, 8 + 108 + 8 + 16);
        assert_eq!(paths["first"].functions, [("second".to_owned(), 116), ("memcpy".to_owned(), 140)][..1]);
    }

    #[test]
    fn an_aligned_frame_counts_with_its_largest_gap() {
        let body = ["pushq\t%rbp", "movq\t%rsp, %rbp", "andq\t$-64, %rsp", "subq\t$64, %rsp"];
        let body = [&body[..], &["movq\t%rbp, %rsp", "popq\t%rbp", "retq"]].concat();
        assert_eq!(frame(Machine::X86_64, &item("f", &body)).expect("understood").own, 16 + 56 + 64);
    }

    #[test]
    fn recursion_is_an_error_that_names_the_functions() {
        let error = paths(vec![item("first", &["callq\tsecond", "retq"]), item("second", &["jmp\tfirst"])]);
        assert_eq!(error.expect_err("recursive").to_string(), "recursion: first calls second calls first");
    }

    #[test]
    fn an_indirect_call_and_an_unknown_frame_are_errors() {
        for (line, message) in [
            ("callq\t*%rax", "f: callq\t*%rax: an indirect call or jump"),
            ("jmpq\t*%rax", "f: jmpq\t*%rax: an indirect call or jump"),
            ("subq\t%rax, %rsp", "f: subq\t%rax, %rsp: a change of the stack pointer that is not understood"),
        ] {
            assert_eq!(frame(Machine::X86_64, &item("f", &[line])).expect_err("refused").to_string(), message);
        }
        let unbalanced = frame(Machine::X86_64, &item("f", &["pushq\t%rax", "retq"])).expect_err("unbalanced");
        assert!(unbalanced.to_string().contains("8 bytes are on the stack"), "{unbalanced}");
    }
}
