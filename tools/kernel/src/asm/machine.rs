//! The instructions of the two architectures, as far as calls, the stack and registers go.

/// An architecture for which the core is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// 64-bit x86, in AT&T syntax.
    X86_64,
    /// 64-bit ARM.
    Arm64,
}

/// Where an instruction continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow<'a> {
    /// At the next instruction.
    Next,
    /// In a function, then at the next instruction.
    Call(&'a str),
    /// At a label or in a function, which then returns for this one.
    Jump(&'a str),
    /// At a label or the next instruction.
    Branch(&'a str),
    /// In the caller.
    Return,
    /// Nowhere: a trap.
    Stop,
    /// At an address in a register or in memory.
    Indirect,
}

/// The effect of an instruction on the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// The stack pointer stays.
    Keep,
    /// The stack grows by these bytes, or shrinks.
    Grow(i64),
    /// The stack pointer is rounded down to a multiple.
    Align(i64),
    /// A register gets the stack pointer less these bytes.
    Save(Saved, i64),
    /// The stack pointer becomes the saved one, less these bytes.
    Restore(Saved, i64),
    /// The stack pointer becomes the saved one, rounded down to a multiple.
    RestoreAligned(Saved, i64),
    /// A change that is not understood.
    Unknown,
}

/// A register to which the stack pointer is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saved {
    /// The frame pointer.
    Frame,
    /// Another one, used at once.
    Scratch,
}

impl Machine {
    /// The text that begins a comment in rustc's listing.
    pub fn comment(self) -> &'static str {
        match self {
            Machine::X86_64 => "#",
            Machine::Arm64 => "//",
        }
    }

    /// The bytes that a call itself puts on the stack.
    pub fn bytes_of_call(self) -> i64 {
        match self {
            Machine::X86_64 => 8,
            Machine::Arm64 => 0,
        }
    }

    /// Where the instruction continues.
    pub fn flow(self, line: &str) -> Flow<'_> {
        let (word, operands) = split(line);
        let last = operands.rsplit(',').next().unwrap_or_default().trim();
        let target = last.strip_suffix("@PLT").unwrap_or(last);
        match self {
            Machine::X86_64 => match word {
                "call" | "callq" | "jmp" | "jmpq" if target.starts_with('*') => Flow::Indirect,
                "call" | "callq" => Flow::Call(target),
                "jmp" | "jmpq" => Flow::Jump(target),
                "ret" | "retq" => Flow::Return,
                "ud2" | "int3" | "hlt" => Flow::Stop,
                _ if word.starts_with('j') || word.starts_with("loop") => Flow::Branch(target),
                _ => Flow::Next,
            },
            Machine::Arm64 => match word {
                "bl" => Flow::Call(target),
                "b" => Flow::Jump(target),
                "ret" => Flow::Return,
                "brk" | "udf" | "hlt" => Flow::Stop,
                "cbz" | "cbnz" | "tbz" | "tbnz" => Flow::Branch(target),
                _ if word.starts_with("b.") => Flow::Branch(target),
                _ if word.starts_with("br") || word.starts_with("blr") => Flow::Indirect,
                _ => Flow::Next,
            },
        }
    }

    /// The effect on the stack pointer.
    pub fn stack(self, line: &str) -> Stack {
        let (word, operands) = split(line);
        match self {
            Machine::X86_64 => x86_stack(word, operands),
            Machine::Arm64 => arm_stack(word, operands),
        }
    }

    /// The names in a line that refer to items or labels: those in instructions and in data, not
    /// registers, numbers, directives and strings.
    pub fn names(self, line: &str) -> Vec<&str> {
        let (word, operands) = split(line);
        if matches!(word, ".ascii" | ".asciz") {
            return Vec::new();
        }
        let is_target = !matches!(self.flow(line), Flow::Next | Flow::Return | Flow::Stop | Flow::Indirect);
        let is_data = word.starts_with('.');
        words(operands)
            .filter(|&(at, name)| {
                if name.starts_with(|first: char| first.is_ascii_digit()) {
                    return false;
                }
                match self {
                    Machine::X86_64 => !matches!(operands[..at].chars().next_back(), Some('%' | '@')),
                    // Registers have no mark: symbols of the compiler begin with _ or a point,
                    // exported ones have an underscore.
                    Machine::Arm64 => {
                        let is_last_target = is_target && at + name.len() == operands.trim_end().len();
                        is_data || name.starts_with('.') || name.contains('_') || is_last_target
                    }
                }
            })
            .map(|(_, name)| name)
            .filter(|name| *name != ".")
            .collect()
    }

    /// Returns true if the instruction uses a register of the floating-point or vector unit.
    pub fn uses_vectors(self, line: &str) -> bool {
        let (word, operands) = split(line);
        if word.starts_with('.') {
            return false;
        }
        match self {
            Machine::X86_64 => {
                let is_x87 = word.starts_with('f');
                is_x87 || ["%xmm", "%ymm", "%zmm", "%mm", "%st"].iter().any(|prefix| operands.contains(prefix))
            }
            Machine::Arm64 => words(operands).any(|(_, name)| {
                let name = name.split('.').next().unwrap_or_default();
                let number = name.strip_prefix(['v', 'q', 'd', 's', 'h', 'b']);
                number.is_some_and(|number| number.parse::<u32>().is_ok_and(|number| number < 32))
            }),
        }
    }

    /// Returns true if the instruction uses a register that belongs to the kernel: x18, which may
    /// hold the shadow call stack.
    pub fn uses_platform_register(self, line: &str) -> bool {
        self == Machine::Arm64 && words(line).any(|(_, name)| matches!(name, "x18" | "w18"))
    }

    /// Returns true if the line refers to the global offset table or to thread-local storage.
    pub fn uses_offset_table(self, line: &str) -> bool {
        match self {
            Machine::X86_64 => {
                ["@GOT", "@TLS", "@TPOFF", "@DTPOFF", "%fs:", "%gs:"].iter().any(|mark| line.contains(mark))
            }
            Machine::Arm64 => [":got", ":tls", ":tprel", ":dtprel", "tpidr"].iter().any(|mark| line.contains(mark)),
        }
    }
}

/// The mnemonic without prefixes, or the directive, and the operands.
fn split(line: &str) -> (&str, &str) {
    let (word, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let operands = operands.trim();
    if matches!(word, "rep" | "repe" | "repne" | "repz" | "repnz" | "lock") {
        split(operands)
    } else {
        (word, operands)
    }
}

/// The words of a text, with their places: letters, digits, underscores and points.
pub fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let mut at = 0;
    std::iter::from_fn(move || {
        let begin = at + text[at..].find(is_part)?;
        let rest = &text[begin..];
        let len = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        at = begin + len;
        Some((begin, &rest[..len]))
    })
}

fn x86_stack(word: &str, operands: &str) -> Stack {
    let Some((source, target)) = operands.rsplit_once(", ") else {
        return match word {
            "pushq" | "pushfq" => Stack::Grow(8),
            "popq" | "popfq" if operands != "%rsp" => Stack::Grow(-8),
            "leave" | "leaveq" | "enter" => Stack::Unknown,
            _ if operands == "%rsp" || word.starts_with("push") || word.starts_with("pop") && word != "popcntq" => {
                Stack::Unknown
            }
            _ => Stack::Keep,
        };
    };
    if word == "movq" && (source, target) == ("%rsp", "%rbp") {
        return Stack::Save(Saved::Frame, 0);
    }
    if !matches!(target, "%rsp" | "%esp" | "%sp" | "%spl") || word.starts_with("cmp") || word.starts_with("test") {
        return Stack::Keep;
    }
    let immediate = source.strip_prefix('$').and_then(|number| number.parse::<i64>().ok());
    let offset = |base: &str| -> Option<i64> {
        let number = source.strip_suffix(base)?;
        if number.is_empty() { Some(0) } else { number.parse().ok() }
    };
    let effect = match word {
        "subq" => immediate.map(Stack::Grow),
        "addq" => immediate.map(|bytes| Stack::Grow(-bytes)),
        "andq" => immediate.filter(|mask| *mask < 0).map(|mask| Stack::Align(-mask)),
        "movq" if source == "%rbp" => Some(Stack::Restore(Saved::Frame, 0)),
        "leaq" => offset("(%rsp)")
            .map(|bytes| Stack::Grow(-bytes))
            .or_else(|| offset("(%rbp)").map(|bytes| Stack::Restore(Saved::Frame, -bytes))),
        _ => None,
    };
    effect.unwrap_or(Stack::Unknown)
}

fn arm_stack(word: &str, operands: &str) -> Stack {
    if let Some(at) = operands.find("[sp, #").filter(|_| operands.ends_with("]!")) {
        return number(&operands[at + 6..operands.len() - 2]).map_or(Stack::Unknown, |bytes| Stack::Grow(-bytes));
    }
    if let Some((_, bytes)) = operands.split_once("[sp], #") {
        return number(bytes).map_or(Stack::Unknown, |bytes| Stack::Grow(-bytes));
    }
    let mut parts = operands.splitn(3, ", ");
    let (target, source, rest) =
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or("#0"));
    let amount = || {
        let (bytes, shift) = rest.split_once(", lsl #").unwrap_or((rest, "0"));
        Some(number(bytes.strip_prefix('#')?)? << number(shift)?)
    };
    let saved = |register: &str| if register == "x29" { Saved::Frame } else { Saved::Scratch };
    let effect = match (word, target, source) {
        ("sub", "sp", "sp") => amount().map(Stack::Grow),
        ("add", "sp", "sp") => amount().map(|bytes| Stack::Grow(-bytes)),
        ("mov", "x29", "sp") => Some(Stack::Save(Saved::Frame, 0)),
        ("add", "x29", "sp") => amount().map(|bytes| Stack::Save(Saved::Frame, -bytes)),
        ("sub", "x9", "sp") => amount().map(|bytes| Stack::Save(Saved::Scratch, bytes)),
        ("and", "sp", "x9") => {
            amount().filter(|mask| *mask < 0).map(|mask| Stack::RestoreAligned(Saved::Scratch, -mask))
        }
        ("mov", "sp", "x29") => Some(Stack::Restore(saved(source), 0)),
        ("sub", "sp", "x29") => amount().map(|bytes| Stack::Restore(saved(source), bytes)),
        (_, "sp", _) if !matches!(word, "cmp" | "cmn" | "tst") => Some(Stack::Unknown),
        _ => Some(Stack::Keep),
    };
    effect.unwrap_or(Stack::Unknown)
}

/// A decimal or hexadecimal number; large ones stand for negative ones.
fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::Machine::{Arm64, X86_64};
    use super::*;

    #[test]
    fn jumps_and_calls_name_their_targets() {
        assert_eq!(X86_64.flow("callq\tmemcpy@PLT"), Flow::Call("memcpy"));
        assert_eq!(X86_64.flow("jne\t.LBB0_2"), Flow::Branch(".LBB0_2"));
        assert_eq!(X86_64.flow("callq\t*8(%rax)"), Flow::Indirect);
        assert_eq!(X86_64.flow("jmpq\t*%rax"), Flow::Indirect);
        assert_eq!(Arm64.flow("tbz\tw8, #3, .LBB0_2"), Flow::Branch(".LBB0_2"));
        assert_eq!(Arm64.flow("bl\tmemcpy"), Flow::Call("memcpy"));
        assert_eq!(Arm64.flow("blr\tx8"), Flow::Indirect);
        assert_eq!(Arm64.flow("b.ne\t.LBB0_2"), Flow::Branch(".LBB0_2"));
        assert_eq!(Arm64.flow("bic\tw8, w9, w10"), Flow::Next);
    }

    #[test]
    fn changes_of_the_stack_pointer_are_understood() {
        for (line, effect) in [
            ("pushq\t%rbx", Stack::Grow(8)),
            ("popq\t%rbp", Stack::Grow(-8)),
            ("subq\t$120, %rsp", Stack::Grow(120)),
            ("addq\t$-128, %rsp", Stack::Grow(128)),
            ("andq\t$-64, %rsp", Stack::Align(64)),
            ("leaq\t-40(%rbp), %rsp", Stack::Restore(Saved::Frame, 40)),
            ("leaq\t8(%rsp), %rsp", Stack::Grow(-8)),
            ("movq\t%rsp, %rdi", Stack::Keep),
            ("cmpq\t%rax, %rsp", Stack::Keep),
            ("subq\t%rax, %rsp", Stack::Unknown),
            ("movq\t%rax, %rsp", Stack::Unknown),
        ] {
            assert_eq!(X86_64.stack(line), effect, "{line}");
        }
        for (line, effect) in [
            ("stp\tx29, x30, [sp, #-16]!", Stack::Grow(16)),
            ("ldp\tx29, x30, [sp], #16", Stack::Grow(-16)),
            ("sub\tsp, sp, #1, lsl #12", Stack::Grow(4096)),
            ("add\tx29, sp, #96", Stack::Save(Saved::Frame, -96)),
            ("sub\tsp, x29, #80", Stack::Restore(Saved::Frame, 80)),
            ("and\tsp, x9, #0xffffffffffffffc0", Stack::RestoreAligned(Saved::Scratch, 64)),
            ("add\tx0, sp, #8", Stack::Keep),
            ("sub\tsp, sp, x9", Stack::Unknown),
        ] {
            assert_eq!(Arm64.stack(line), effect, "{line}");
        }
    }

    #[test]
    fn names_are_not_registers_numbers_or_strings() {
        assert_eq!(X86_64.names("movq\t.Lanon.1.2+8(%rbp), %rsi"), [".Lanon.1.2"]);
        assert_eq!(X86_64.names("movl\t$_Rname, 0x10(%rsp)"), ["_Rname"]);
        assert_eq!(X86_64.names(".ascii\t\"name\""), [""; 0]);
        assert_eq!(X86_64.names("callq\tmemcpy@PLT"), ["memcpy"]);
        assert_eq!(X86_64.names("rep\t\tbsfl\t%ecx, %ecx"), [""; 0]);
        assert_eq!(Arm64.names("add\tx0, x0, :lo12:.Lanon.1.2"), [".Lanon.1.2"]);
        assert_eq!(Arm64.names("bl\tmemset"), ["memset"]);
        assert_eq!(Arm64.names("add\tx0, x1, w2, uxtw #3"), [""; 0]);
    }

    #[test]
    fn vector_registers_and_offset_tables_are_noticed() {
        assert!(X86_64.uses_vectors("movaps\t%xmm0, (%rsp)") && X86_64.uses_vectors("fldt\t8(%rsp)"));
        assert!(!X86_64.uses_vectors("movq\t%rax, (%rsp)"));
        assert!(Arm64.uses_vectors("movi\tv0.2d, #0") && Arm64.uses_vectors("str\tq0, [sp]"));
        assert!(!Arm64.uses_vectors("add\tx0, x1, #8"));
        assert!(Arm64.uses_platform_register("add\tx0, x18, #8") && !X86_64.uses_platform_register("x18"));
        assert!(X86_64.uses_offset_table("movq\tmemcpy@GOTPCREL(%rip), %rax"));
        assert!(Arm64.uses_offset_table("adrp\tx8, :got:memcpy"));
        assert!(!Arm64.uses_offset_table("adrp\tx8, .Lanon.1.2"));
    }
}
