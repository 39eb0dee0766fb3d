//! The architectures of kernels: what builds modules and programs for them, and what boots them.

use hoistway_workspace::programs;

/// An architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Arm64,
}

/// The architecture of the machines that build: the programs in their `linux-kbuild` packages run
/// there, whichever kernel the headers belong to.
pub const BUILD: Architecture = Architecture::X86_64;

impl Architecture {
    /// All architectures.
    pub const ALL: [Architecture; 2] = [Architecture::X86_64, Architecture::Arm64];

    /// The name in Debian's archive.
    pub fn debian(self) -> &'static str {
        match self {
            Architecture::X86_64 => "amd64",
            Architecture::Arm64 => "arm64",
        }
    }

    /// The target of programs that run in the virtual machine.
    pub fn target(self) -> &'static str {
        match self {
            Architecture::X86_64 => "x86_64-unknown-linux-musl",
            Architecture::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    /// The linker of these programs, and the variable that names it to cargo; None for the default
    /// one, which links for the architecture of the machine.
    pub fn linker(self) -> Option<(&'static str, &'static str)> {
        match self {
            Architecture::X86_64 => None,
            Architecture::Arm64 => Some(("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld")),
        }
    }

    /// The variables of make that let kbuild compile for the architecture.
    pub fn make_variables(self) -> &'static [&'static str] {
        match self {
            Architecture::X86_64 => &[],
            Architecture::Arm64 => &["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"],
        }
    }

    /// The compiler that Debian bookworm has for its kernels, with its package.
    pub fn compiler(self) -> (&'static str, &'static str) {
        match self {
            Architecture::X86_64 => ("gcc-12", "gcc-12"),
            Architecture::Arm64 => ("aarch64-linux-gnu-gcc-12", "gcc-12-aarch64-linux-gnu"),
        }
    }

    /// The program that emulates a machine, with its package.
    pub fn emulator(self) -> (&'static str, &'static str) {
        match self {
            Architecture::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
            Architecture::Arm64 => ("qemu-system-aarch64", "qemu-system-arm"),
        }
    }

    /// The machine and the processor that are emulated: of x86-64 one on which the kernel patches
    /// its returns, of arm64 one with pointer authentication, branch targets and atomics.
    pub(crate) fn machine(self) -> [&'static str; 4] {
        match self {
            Architecture::X86_64 => ["-machine", "pc", "-cpu", "EPYC-Rome"],
            Architecture::Arm64 => ["-machine", "virt,gic-version=3", "-cpu", "max,pauth-impdef=on"],
        }
    }

    /// The options of every kernel of the architecture.
    pub(crate) fn kernel_options(self) -> &'static str {
        match self {
            Architecture::X86_64 => "console=ttyS0 retbleed=unret",
            Architecture::Arm64 => "console=ttyAMA0",
        }
    }

    /// The options of the emulator for the port on which the guest sends events; the machine has
    /// the character device `events`.
    pub fn event_port(self) -> [&'static str; 2] {
        match self {
            Architecture::X86_64 => ["-serial", "chardev:events"],
            // The machine has one port of its own, which is the console.
            Architecture::Arm64 => ["-device", "pci-serial,chardev=events"],
        }
    }

    /// Makes the programs available that build modules for the architecture and boot its kernels:
    /// those that are missing are installed.
    pub fn require_programs(self, install: bool) -> anyhow::Result<()> {
        programs::require_all(&[self.compiler(), self.emulator()], install)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_architecture_of_the_build_machine_needs_no_other_compiler() {
        for architecture in Architecture::ALL {
            let native = architecture == BUILD;
            assert_eq!(architecture.linker().is_none(), native);
            assert_eq!(architecture.make_variables().is_empty(), native);
        }
    }
}
