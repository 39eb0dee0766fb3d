//! Vendor, model, serial number and transport of a device: what identifies it when its kernel name
//! changes.

use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::device_number::DeviceNumber;
use crate::files::{list_names, read_nonempty, read_text};
use crate::kind::Kind;
use crate::root::Root;

/// The identity that a device reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// The vendor; `ATA` for disks behind SCSI-to-ATA translation.
    pub vendor: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The firmware version.
    pub firmware: Option<String>,
    /// The serial number.
    pub serial: Option<String>,
    /// The world-wide name in the kernel's form: `naa.5000c500a1b2c3d4`, `eui.0025385b71b0a1c2`.
    pub wwid: Option<String>,
    /// The transport that attaches the device.
    pub transport: Option<Transport>,
    /// udev's links to the device, below `/dev`.
    pub links: Vec<String>,
}

/// The transport that attaches a device to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Serial or parallel ATA.
    Sata,
    /// Serial-attached SCSI.
    Sas,
    /// The USB.
    Usb,
    /// SCSI over TCP.
    Iscsi,
    /// Fibre Channel.
    Fc,
    /// SCSI by other means: a RAID controller, a virtual machine's.
    Scsi,
    /// NVMe over PCI Express.
    Pcie,
    /// NVMe over a network.
    Fabrics,
    /// A virtio disk of a virtual machine.
    Virtio,
    /// Xen's or Hyper-V's channels.
    Hypervisor,
    /// A card slot or a soldered chip.
    Mmc,
}

impl Transport {
    /// As tables have it, and JSON.
    pub fn label(self) -> &'static str {
        match self {
            Transport::Sata => "sata",
            Transport::Sas => "sas",
            Transport::Usb => "usb",
            Transport::Iscsi => "iscsi",
            Transport::Fc => "fc",
            Transport::Scsi => "scsi",
            Transport::Pcie => "pcie",
            Transport::Fabrics => "fabrics",
            Transport::Virtio => "virtio",
            Transport::Hypervisor => "hypervisor",
            Transport::Mmc => "mmc",
        }
    }

    /// Finds the transport by the directories above the device in sysfs, which name its ports. The
    /// nearest port counts.
    fn of(kind: Kind, sysfs: &Path) -> Option<Transport> {
        match kind {
            Kind::Nvme => return Transport::of_nvme(&sysfs.join("device")),
            Kind::Virtio => return Some(Transport::Virtio),
            Kind::Xen => return Some(Transport::Hypervisor),
            Kind::Mmc => return Some(Transport::Mmc),
            Kind::Disk | Kind::Rom => {}
            _ => return None,
        }
        let parts = sysfs.components().rev().filter_map(|part| part.as_os_str().to_str());
        Some(parts.filter_map(Transport::of_port).next().unwrap_or(Transport::Scsi))
    }

    /// Reads the transport of an NVMe controller, or of the first controller of a multipath drive.
    /// Kernels without this attribute support only PCI.
    fn of_nvme(device: &Path) -> Option<Transport> {
        let controllers = list_names(device).into_iter().map(|name| device.join(name).join("transport"));
        let transport =
            std::iter::once(device.join("transport")).chain(controllers).find_map(|file| read_nonempty(&file));
        match transport.as_deref() {
            Some("pcie") => Some(Transport::Pcie),
            Some(_) => Some(Transport::Fabrics),
            None if device.join("subsysnqn").exists() && !device.join("cntlid").exists() => None,
            None => Some(Transport::Pcie),
        }
    }

    /// The transport that a directory above a SCSI disk in sysfs stands for.
    fn of_port(directory: &str) -> Option<Transport> {
        let numbered = |prefix: &str| {
            directory.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
        };
        match () {
            () if numbered("ata") => Some(Transport::Sata),
            () if numbered("usb") => Some(Transport::Usb),
            () if numbered("session") => Some(Transport::Iscsi),
            () if directory.starts_with("rport-") => Some(Transport::Fc),
            () if directory.starts_with("end_device-") || directory.starts_with("expander-") => Some(Transport::Sas),
            () if numbered("virtio") => Some(Transport::Virtio),
            () if directory.starts_with("VMBUS:") || directory.starts_with("vmbus") => Some(Transport::Hypervisor),
            () => None,
        }
    }
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.label())
    }
}

/// The record of a device in udev's database: properties, and links below `/dev`.
pub(crate) struct UdevRecord {
    pub values: Vec<(String, String)>,
    pub links: Vec<String>,
}

impl UdevRecord {
    /// Reads the lines `E:NAME=VALUE` and `S:LINK` of `/run/udev/data/bMAJOR:MINOR`. Empty without
    /// udev.
    pub fn read(root: &Root, number: DeviceNumber) -> UdevRecord {
        let record = read_text(&root.path(format!("/run/udev/data/b{number}"))).unwrap_or_default();
        let values = record.lines().filter_map(|line| line.strip_prefix("E:")?.split_once('='));
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut links: Vec<String> =
            record.lines().filter_map(|line| line.strip_prefix("S:").map(str::to_owned)).collect();
        links.sort();
        UdevRecord { values, links }
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }
}

impl Identity {
    /// Reads the identity from sysfs, completed from udev's record.
    pub(crate) fn read(kind: Kind, sysfs: &Path, udev: &UdevRecord) -> Identity {
        let of = |name: &str| read_nonempty(&sysfs.join(name));
        let model = of("device/model").or_else(|| (kind == Kind::Mmc).then(|| of("device/name")).flatten());
        // The vendor of a virtio disk is a PCI id.
        let vendor = of("device/vendor").filter(|vendor| !vendor.starts_with("0x"));
        let serial = of("serial").or_else(|| of("device/serial")).or_else(|| scsi_serial(sysfs));
        Identity {
            vendor,
            model: full_model(model, udev.value("ID_MODEL")),
            firmware: of("device/rev").or_else(|| of("device/firmware_rev")).or_else(|| of("device/fwrev")),
            serial: serial.or_else(|| udev.value("ID_SERIAL_SHORT").map(str::to_owned)),
            wwid: of("wwid").or_else(|| of("device/wwid")),
            transport: Transport::of(kind, sysfs),
            links: udev.links.clone(),
        }
    }
}

/// Completes a model that SCSI has cut at 16 characters from udev's record, which has `_` for
/// blanks.
fn full_model(model: Option<String>, udev: Option<&str>) -> Option<String> {
    let full = udev.map(|text| text.replace('_', " "));
    match (model, full) {
        (Some(model), Some(full)) if full.len() > model.len() && full.starts_with(&model) => Some(full),
        (Some(model), _) => Some(model),
        (None, full) => full,
    }
}

/// The serial number of a SCSI disk, from vital product data page 80h (SPC-4, 7.8.15): a header of
/// four bytes, whose last two are the length.
fn scsi_serial(sysfs: &Path) -> Option<String> {
    let page = fs::read(sysfs.join("device/vpd_pg80")).ok()?;
    let length = usize::from(u16::from_be_bytes([*page.get(2)?, *page.get(3)?]));
    let serial = page.get(4..4 + length)?;
    let serial = String::from_utf8_lossy(serial).trim_matches(|c: char| c.is_whitespace() || c == '\0').to_owned();
    (!serial.is_empty() && !serial.contains(char::is_control)).then_some(serial)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_port_gives_the_transport() {
        let of = |path: &str| Transport::of(Kind::Disk, Path::new(path));
        let pci = "/sys/devices/pci0000:00/0000:00:17.0";
        assert_eq!(of(&format!("{pci}/ata1/host0/target0:0:0/0:0:0:0/block/sda")), Some(Transport::Sata));
        assert_eq!(of(&format!("{pci}/usb2/2-1/2-1:1.0/host4/target4:0:0/4:0:0:0/block/sdb")), Some(Transport::Usb));
        assert_eq!(
            of(&format!("{pci}/host1/port-1:0/end_device-1:0/target1:0:0/1:0:0:0/block/sdc")),
            Some(Transport::Sas)
        );
        assert_eq!(of("/sys/devices/platform/host3/session1/target3:0:0/3:0:0:1/block/sdd"), Some(Transport::Iscsi));
        assert_eq!(of(&format!("{pci}/host1/rport-1:0-2/target1:0:0/1:0:0:0/block/sde")), Some(Transport::Fc));
        assert_eq!(of(&format!("{pci}/host2/target2:2:0/2:2:0:0/block/sdf")), Some(Transport::Scsi));
        assert_eq!(of(&format!("{pci}/virtio2/host2/target2:0:0/2:0:0:0/block/sdg")), Some(Transport::Virtio));
        assert_eq!(Transport::of(Kind::Lvm, Path::new("/sys/devices/virtual/block/dm-0")), None);
    }

    #[test]
    fn a_cut_model_is_completed_and_another_is_not() {
        let full = |model: &str, udev| full_model(Some(model.to_owned()), udev).unwrap();
        assert_eq!(full("Samsung SSD 860", Some("Samsung_SSD_860_EVO_1TB")), "Samsung SSD 860 EVO 1TB");
        assert_eq!(full("Samsung SSD 860", Some("Other")), "Samsung SSD 860");
        assert_eq!(full("Samsung SSD 860", None), "Samsung SSD 860");
        assert_eq!(full_model(None, Some("QEMU_HARDDISK")).unwrap(), "QEMU HARDDISK");
    }

    #[test]
    fn a_truncated_or_invalid_vital_data_page_gives_no_serial() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("device")).unwrap();
        let of = |page: &[u8]| {
            std::fs::write(folder.path().join("device/vpd_pg80"), page).unwrap();
            scsi_serial(folder.path())
        };
        assert_eq!(of(b"\x00\x80\x00\x08  WD-42X"), Some("WD-42X".to_owned()));
        assert_eq!(of(b"\x00\x80\x00\x09  WD-42X"), None);
        assert_eq!(of(b"\x00\x80"), None);
        assert_eq!(of(b"\x00\x80\x00\x02\x01\x02"), None);
        assert_eq!(of(b"\x00\x80\x00\x02  "), None);
    }
}
