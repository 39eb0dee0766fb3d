//! What sort of thing a block device is.

use serde::Serialize;

/// What sort of thing a block device is, by the driver that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A disk of the SCSI layer: SATA, SAS, USB, iSCSI, a virtual machine's SCSI disk.
    Disk,
    /// A namespace of an NVMe drive.
    Nvme,
    /// A virtual machine's disk by virtio.
    Virtio,
    /// A virtual machine's disk by Xen.
    Xen,
    /// A card or a soldered chip: SD, MMC, eMMC.
    Mmc,
    /// An optical drive.
    Rom,
    /// A part of another device.
    Partition,
    /// A file as a device.
    Loop,
    /// A logical volume of LVM.
    Lvm,
    /// An encrypted volume of dm-crypt (LUKS).
    Crypt,
    /// Several paths to one disk, by dm-multipath.
    Multipath,
    /// Another target of the device mapper.
    Mapper,
    /// An array of Linux's software RAID.
    Md,
    /// Compressed memory.
    Zram,
    /// Plain memory (brd).
    Ram,
    /// Persistent memory (pmem).
    Pmem,
    /// A network block device.
    Nbd,
    /// A device that a process serves (ublk).
    Ublk,
    /// Anything else.
    Other,
}

/// Kinds by the beginnings of the kernel's names (the kernel's Documentation/admin-guide/devices.txt), the longer before the shorter.
const BY_NAME: &[(&str, Kind)] = &[
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
    /// The kind of a whole device of this name; of one of the device mapper's the beginning of its uuid tells more.
    pub(crate) fn of(name: &str, mapper_uuid: Option<&str>) -> Kind {
        let kind = BY_NAME.iter().find(|(begin, _)| name.starts_with(begin)).map_or(Kind::Other, |(_, kind)| *kind);
        let uuid = mapper_uuid.unwrap_or_default();
        match kind {
            Kind::Mapper if uuid.starts_with("LVM-") => Kind::Lvm,
            Kind::Mapper if uuid.starts_with("CRYPT-") => Kind::Crypt,
            Kind::Mapper if uuid.starts_with("mpath-") => Kind::Multipath,
            kind => kind,
        }
    }

    /// As tables have it, and JSON.
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

    /// Whether what it says of itself, as being rotating, is its host's word or its own guess and not a disk's: nobody knows what lies below.
    pub fn is_virtual(self) -> bool {
        matches!(self, Kind::Virtio | Kind::Xen | Kind::Nbd | Kind::Ublk)
    }

    /// Whether it is made of another block device or of a file on one, so that requests to it pass a second queue.
    pub fn is_stacked(self) -> bool {
        matches!(self, Kind::Loop | Kind::Lvm | Kind::Crypt | Kind::Multipath | Kind::Mapper | Kind::Md)
    }

    /// Whether it is memory: no disk ever hears of its requests.
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
    fn the_name_tells_the_kind_and_the_uuid_more() {
        let of = |name| Kind::of(name, None);
        assert_eq!(["sda", "nvme0n1", "nbd0", "vdb", "md127", "sr0"].map(of), {
            [Kind::Disk, Kind::Nvme, Kind::Nbd, Kind::Virtio, Kind::Md, Kind::Rom]
        });
        assert_eq!(of("dm-0"), Kind::Mapper);
        assert_eq!(Kind::of("dm-0", Some("LVM-abc")), Kind::Lvm);
        assert_eq!(Kind::of("dm-0", Some("CRYPT-LUKS2-abc")), Kind::Crypt);
        // The uuid counts for the device mapper's devices alone.
        assert_eq!(Kind::of("sda", Some("LVM-abc")), Kind::Disk);
        assert_eq!(of("something"), Kind::Other);
    }

    #[test]
    fn labels_are_as_json_has_them() {
        for (_, kind) in BY_NAME {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.label());
        }
    }
}
