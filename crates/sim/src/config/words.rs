//! Settings whose values are words in a host file. The number of a word is its index in the list in
//! [`KEYS`](super::keys::KEYS).

use super::host::{DirectIssue, Flushes, HostConfig, Plugging, ReadAheadRules, WriteBack};
use crate::host::fs::config::FileSystemConfig;

/// The default plug on the task: that of 3.2.
const TASK: Plugging = Plugging::Task { requests: 16, kib: 0 };

pub(super) fn read_ahead(host: &HostConfig) -> u64 {
    match host.read_ahead {
        ReadAheadRules::TwoWindows => 0,
        ReadAheadRules::OnDemand => 1,
        ReadAheadRules::OnDemandWithHistory => 2,
    }
}

pub(super) fn set_read_ahead(host: &mut HostConfig, word: u64) {
    host.read_ahead = match word {
        0 => ReadAheadRules::TwoWindows,
        1 => ReadAheadRules::OnDemand,
        _ => ReadAheadRules::OnDemandWithHistory,
    };
}

pub(super) fn write_back(host: &HostConfig) -> u64 {
    match host.write_back {
        WriteBack::Waiting => 0,
        WriteBack::Pdflush => 1,
        WriteBack::Pauses => 2,
    }
}

pub(super) fn set_write_back(host: &mut HostConfig, word: u64) {
    host.write_back = match word {
        0 => WriteBack::Waiting,
        1 => WriteBack::Pdflush,
        _ => WriteBack::Pauses,
    };
}

pub(super) fn direct_issue(host: &HostConfig) -> u64 {
    match host.direct_issue {
        DirectIssue::Never => 0,
        DirectIssue::Plugged => 1,
        DirectIssue::Always => 2,
    }
}

pub(super) fn set_direct_issue(host: &mut HostConfig, word: u64) {
    host.direct_issue = match word {
        0 => DirectIssue::Never,
        1 => DirectIssue::Plugged,
        _ => DirectIssue::Always,
    };
}

pub(super) fn flushes(host: &HostConfig) -> u64 {
    match host.flushes {
        Flushes::Layer => 0,
        Flushes::Barriers => 1,
        Flushes::Sequences => 2,
    }
}

pub(super) fn set_flushes(host: &mut HostConfig, word: u64) {
    host.flushes = match word {
        0 => Flushes::Layer,
        1 => Flushes::Barriers,
        _ => Flushes::Sequences,
    };
}

/// The word of a setting that follows the drive unless the host file says otherwise.
pub(super) fn by_drive(setting: Option<bool>) -> u64 {
    match setting {
        None => 0,
        Some(true) => 1,
        Some(false) => 2,
    }
}

pub(super) fn set_by_drive(word: u64) -> Option<bool> {
    match word {
        0 => None,
        1 => Some(true),
        _ => Some(false),
    }
}

pub(super) fn plugging(host: &HostConfig) -> u64 {
    match host.plugging {
        Plugging::None => 0,
        Plugging::Queue => 1,
        Plugging::Task { .. } => 2,
    }
}

pub(super) fn set_plugging(host: &mut HostConfig, word: u64) {
    host.plugging = match (word, host.plugging) {
        (0, _) => Plugging::None,
        (1, _) => Plugging::Queue,
        (_, task @ Plugging::Task { .. }) => task,
        _ => TASK,
    };
}

/// The limits of the host's plug on the task; the defaults if the host has none.
pub(super) fn plug(host: &HostConfig) -> (u32, u32) {
    match host.plugging {
        Plugging::Task { requests, kib } => (requests, kib),
        Plugging::None | Plugging::Queue => (16, 0),
    }
}

pub(super) fn set_plug(host: &mut HostConfig, requests: u32, kib: u32) {
    if matches!(host.plugging, Plugging::Task { .. }) {
        host.plugging = Plugging::Task { requests, kib };
    }
}

pub(super) fn set_file_system(host: &mut HostConfig, word: u64) {
    host.file_system = match word {
        0 => FileSystemConfig::ext2(),
        1 => FileSystemConfig::ext3(),
        _ => FileSystemConfig::ext4(),
    };
}

pub(super) fn file_system(host: &HostConfig) -> u64 {
    match host.file_system {
        FileSystemConfig { extents: true, .. } => 2,
        FileSystemConfig { directory_index: true, .. } => 1,
        _ => 0,
    }
}
