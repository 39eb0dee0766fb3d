//! Kinds of block devices, by the driver.

use serde::Serialize;

/// The kind of a block device, by the driver that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A disk of the SCSI layer: SATA, SAS, USB, iSCSI, a virtual machine's SCSI disk.
    Disk,
    /// A namespace of an NVMe drive.
    Nvme,
    /// A virtio disk of a virtual machine.
    Virtio,
    /// A Xen disk of a virtual machine.
    Xen,
    /// A card or a soldered chip: SD, MMC, eMMC.
    Mmc,
    /// An optical drive.
    Rom,
    /// A partition of another device.
    Partition,
    /// A loop device over a file.
    Loop,
    /// A logical volume of LVM.
    Lvm,
    /// An encrypted volume of dm-crypt (LUKS).
    Crypt,
    /// A multipath device over several paths to one disk (dm-multipath).
    Multipath,
    /// Any other device mapper target.
    Mapper,
    /// A software RAID array (md).
    Md,
    /// Compressed memory.
    Zram,
    /// Plain memory (brd).
    Ram,
    /// Persistent memory (pmem).
    Pmem,
    /// A network block device.
    Nbd,
    /// A device served by a userspace process (ublk).
    Ublk,
    /// Anything else.
    Other,
}

/// Kinds by prefix of the kernel's name, longer prefixes first. Source: the kernel's
/// Documentation/admin-guide/devices.txt.
const PREFIXES: &[(&str, Kind)] = &[
    ("nvme", Kind::Nvme),
    ("loop", Kind::Loop),
    ("zram", Kind::Zram),
    ("pmem", Kind::Pmem),
    ("ublkb", Kind::Ublk),
    ("mmcblk", Kind::Mmc),
    ("nbd", Kind::Nbd),
    ("xvd", Kind::Xen),
    ("ram", Kind::Ram),
    ("dm-", Kind::Mapper),
    ("md", Kind::Md),
    ("sd", Kind::Disk),
    ("hd", Kind::Disk),
    ("vd", Kind::Virtio),
    ("sr", Kind::Rom),
];

impl Kind {
    /// The kind of a whole device of this name. The uuid of a device mapper device starts with the
    /// name of its subsystem.
    pub(crate) fn of(name: &str, mapper_uuid: Option<&str>) -> Kind {
        let kind = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix)).map_or(Kind::Other, |(_, kind)| *kind);
        let uuid = mapper_uuid.unwrap_or_default();
        match kind {
            Kind::Mapper if uuid.starts_with("LVM-") => Kind::Lvm,
            Kind::Mapper if uuid.starts_with("CRYPT-") => Kind::Crypt,
            Kind::Mapper if uuid.starts_with("mpath-") => Kind::Multipath,
            kind => kind,
        }
    }

    /// The name in tables and in JSON.
    pub fn label(self) -> &'static str {
        match self {
            Kind::Disk => "disk",
            Kind::Nvme => "nvme",
            Kind::Virtio => "virtio",
            Kind::Xen => "xen",
            Kind::Mmc => "mmc",
            Kind::Rom => "rom",
            Kind::Partition => "partition",
            Kind::Loop => "loop",
            Kind::Lvm => "lvm",
            Kind::Crypt => "crypt",
            Kind::Multipath => "multipath",
            Kind::Mapper => "mapper",
            Kind::Md => "md",
            Kind::Zram => "zram",
            Kind::Ram => "ram",
            Kind::Pmem => "pmem",
            Kind::Nbd => "nbd",
            Kind::Ublk => "ublk",
            Kind::Other => "other",
        }
    }

    /// Returns true if a hypervisor, a server or a process provides the device. What it reports
    /// about itself, such as rotation, need not hold for the drive behind it.
    pub fn is_virtual(self) -> bool {
        matches!(self, Kind::Virtio | Kind::Xen | Kind::Nbd | Kind::Ublk)
    }

    /// Returns true if the device is made of another block device or of a file on one, so that
    /// requests to it pass a second queue.
    pub fn is_stacked(self) -> bool {
        matches!(self, Kind::Loop | Kind::Lvm | Kind::Crypt | Kind::Multipath | Kind::Mapper | Kind::Md)
    }

    /// Returns true if the device is memory: its requests reach no disk.
    pub fn is_memory(self) -> bool {
        matches!(self, Kind::Zram | Kind::Ram | Kind::Pmem)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.label())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_from_name_and_device_mapper_uuid() {
        let of = |name| Kind::of(name, None);
        assert_eq!(["sda", "nvme0n1", "nbd0", "vdb", "md127", "sr0"].map(of), {
            [Kind::Disk, Kind::Nvme, Kind::Nbd, Kind::Virtio, Kind::Md, Kind::Rom]
        });
        assert_eq!(of("dm-0"), Kind::Mapper);
        assert_eq!(Kind::of("dm-0", Some("LVM-abc")), Kind::Lvm);
        assert_eq!(Kind::of("dm-0", Some("CRYPT-LUKS2-abc")), Kind::Crypt);
        // The uuid counts only for device mapper devices.
        assert_eq!(Kind::of("sda", Some("LVM-abc")), Kind::Disk);
        assert_eq!(of("something"), Kind::Other);
    }

    #[test]
    fn labels_equal_the_names_in_json() {
        for (_, kind) in PREFIXES {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.label());
        }
    }
}
