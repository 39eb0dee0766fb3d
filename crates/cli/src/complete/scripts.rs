//! The scripts for bash and zsh, and their answers.
//!
//! They replace those of `clap_complete`, which complete nothing after `--option=` in bash, and in
//! zsh end `elevator.tunable=` with a blank.

use std::ffi::OsString;
use std::io::{Error, Write};
use std::path::Path;

use clap::Command;
use clap_complete::env::{self, EnvCompleter};

/// The completions of one shell: its own script, with the answers of `clap_complete`.
pub struct Script<S> {
    name: &'static str,
    /// The script, in which `PROGRAM` is the name of the program, and `VARIABLE` that of the
    /// variable that asks for answers.
    text: &'static str,
    answers: S,
}

/// Completions for bash 4.3 and later.
pub const BASH: Script<env::Bash> = Script { name: "bash", text: BASH_TEXT, answers: env::Bash };

/// Completions for zsh, as a file of `fpath` or sourced.
pub const ZSH: Script<env::Zsh> = Script { name: "zsh", text: ZSH_TEXT, answers: env::Zsh };

/// Bash splits words at `=` and `:`. The script joins them as they were typed, and removes the part
/// of a candidate that bash does not replace.
const BASH_TEXT: &str = r#"_PROGRAM() {
    local IFS=$'\013' rest=${COMP_LINE:0:COMP_POINT} words=() word blanks index
    for ((index = 0; index <= COMP_CWORD; index++)); do
        blanks=${rest%%[![:space:]]*}
        rest=${rest:${#blanks}}
        word=${COMP_WORDS[index]}
        ((index == COMP_CWORD)) && word=$rest
        if ((index > 0)) && [[ -z $blanks ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
        rest=${rest:${#word}}
    done
    COMPREPLY=($(VARIABLE=bash _CLAP_IFS=$IFS _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) \
        PROGRAM -- "${words[@]}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace
    COMPREPLY=("${COMPREPLY[@]#"${words[-1]%"$2"}"}")
}
complete -o nosort -o bashdefault -F _PROGRAM PROGRAM
"#;

const ZSH_TEXT: &str = r#"#compdef PROGRAM
_PROGRAM() {
    local reply
    local -a open closed
    for reply in "${(@f)$(VARIABLE=zsh _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$((CURRENT - 1)) \
        PROGRAM -- "${words[@]}" 2>/dev/null)}"; do
        [[ -z $reply ]] && continue
        if [[ ${reply%%:*} == *[=/] ]]; then open+=("$reply"); else closed+=("$reply"); fi
    done
    (($#closed)) && _describe -V values closed
    (($#open)) && _describe -V values open -S ''
}
if [[ ${funcstack[1]} == _PROGRAM ]]; then _PROGRAM "$@"; else compdef _PROGRAM PROGRAM; fi
"#;

impl<S: EnvCompleter> EnvCompleter for Script<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is(&self, name: &str) -> bool {
        name == self.name
    }

    fn write_registration(&self, var: &str, _: &str, bin: &str, _: &str, buf: &mut dyn Write) -> Result<(), Error> {
        buf.write_all(self.text.replace("PROGRAM", bin).replace("VARIABLE", var).as_bytes())
    }

    fn write_complete(
        &self,
        cmd: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> Result<(), Error> {
        self.answers.write_complete(cmd, args, current_dir, buf)
    }
}
