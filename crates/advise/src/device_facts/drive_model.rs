//! Chooses the drive model that stands for a device.

use hoistway_machine::{BlockDevice, Kind, Root, Transport, drives_below};

/// A drive model for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveModel {
    /// The name of the built-in profile.
    pub profile: &'static str,
    /// The reason for the model, in a clause.
    pub why: String,
    /// How well the model matches the drive.
    pub quality: ModelQuality,
}

/// How well a model matches the drive that it represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelQuality {
    /// Fitted to the recorded service times of the drive.
    Fitted,
    /// Named by the user or by the trace.
    Named,
    /// A drive of the same kind and size.
    Generic,
    /// The nearest available model, of another kind.
    Distant,
    /// The storage behind the device is unknown.
    Unknown,
}

const TB: u64 = 1_000_000_000_000;
const GB: u64 = 1_000_000_000;

/// Words in model names of virtual drives: those of hypervisors, RAID controllers and clouds.
const VIRTUAL_MODELS: [(&str, &str); 17] = [
    ("qemu", "a virtual disk of QEMU"),
    ("vbox", "a virtual disk of VirtualBox"),
    ("vmware", "a virtual disk of VMware"),
    ("virtual", "a virtual disk"),
    ("elastic block store", "an Amazon EBS volume"),
    ("persistentdisk", "a Google persistent disk"),
    ("perc", "a volume of a RAID controller"),
    ("megaraid", "a volume of a RAID controller"),
    ("logical volume", "a volume of a RAID controller"),
    ("logicaldrv", "a volume of a RAID controller"),
    ("serveraid", "a volume of a RAID controller"),
    ("raid", "a volume of a RAID controller or an array"),
    ("netapp", "a volume of a storage array"),
    ("flasharray", "a volume of a storage array"),
    ("3pardata", "a volume of a storage array"),
    ("symmetrix", "a volume of a storage array"),
    ("compelnt", "a volume of a storage array"),
];

/// The drive model for a device; `None` without a drive behind it, as for memory.
pub fn drive_model(device: &BlockDevice) -> Option<DriveModel> {
    let model = |profile, why: String, quality| Some(DriveModel { profile, why, quality });
    let generic = |profile, why: &str| model(profile, why.to_owned(), ModelQuality::Generic);
    if device.kind.is_memory() || matches!(device.kind, Kind::Rom | Kind::Partition) {
        return None;
    }
    if let Some(what) = virtual_drive(device) {
        return model(
            "cloud-gp3",
            format!("{what}: the storage below is unknown, and a cloud volume stands for it"),
            ModelQuality::Unknown,
        );
    }
    let rotates = device.queue.as_ref().and_then(|queue| queue.rotational);
    match device.kind {
        Kind::Mmc => model(
            "ssd-sata-consumer",
            "there is no model of cards: a SATA SSD, which is faster, stands for it".into(),
            ModelQuality::Distant,
        ),
        Kind::Nvme => generic("ssd-nvme-tlc", "an NVMe drive"),
        Kind::Loop | Kind::Lvm | Kind::Crypt | Kind::Multipath | Kind::Mapper | Kind::Md => model(
            "st2000dm006",
            "it is made of other, unknown devices: a disk of 7200 rpm stands for it".into(),
            ModelQuality::Unknown,
        ),
        _ if rotates == Some(false) => match device.identity.transport {
            Some(Transport::Sas) => generic("ssd-sata-enterprise", "an SSD for servers"),
            _ => generic("ssd-sata-consumer", "a SATA SSD"),
        },
        _ if rotates == Some(true) => Some(disk(device)),
        _ => model(
            "st2000dm006",
            "whether it rotates is not known: a disk of 7200 rpm stands for it".into(),
            ModelQuality::Unknown,
        ),
    }
}

/// The drive model for a device, or for the first drive below a stacked device: a loop device is as
/// fast as the disk that holds its file.
pub fn drive_model_below(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> Option<DriveModel> {
    let below = drives_below(root, devices, device).into_iter().find(|below| below.name != device.name);
    match below.filter(|_| device.kind.is_stacked()) {
        Some(below) => {
            let model = drive_model(below)?;
            Some(DriveModel { why: format!("it is on {}: {}", below.name, model.why), ..model })
        }
        None => drive_model(device),
    }
}

/// Describes a device that is no physical drive although it reports to be one.
fn virtual_drive(device: &BlockDevice) -> Option<String> {
    if device.kind.is_virtual() {
        return Some(match device.kind {
            Kind::Nbd => "a device over the network".into(),
            Kind::Ublk => "a device that a process serves".into(),
            kind => format!("a virtual machine's disk ({kind})"),
        });
    }
    match device.identity.transport {
        Some(Transport::Hypervisor | Transport::Virtio) => return Some("a virtual machine's disk".into()),
        Some(Transport::Iscsi | Transport::Fabrics) => return Some("a device over the network".into()),
        Some(Transport::Fc) => return Some("a volume of a storage array (Fibre Channel)".into()),
        _ => {}
    }
    let named = [&device.identity.vendor, &device.identity.model].into_iter().flatten();
    let named = named.map(|name| name.to_lowercase()).collect::<Vec<_>>().join(" ");
    VIRTUAL_MODELS.iter().find(|(word, _)| named.contains(word)).map(|(_, what)| (*what).to_owned())
}

/// The model of a rotating disk by its size, which stands for the density of its platters.
fn disk(device: &BlockDevice) -> DriveModel {
    let bytes = device.bytes;
    let fast = device.identity.transport == Some(Transport::Sas) && bytes < 2 * TB;
    let (profile, what) = match bytes {
        _ if fast => ("sas-15k-450", "a SAS disk of 15,000 rpm"),
        b if b >= 12 * TB => ("cmr-20tb", "a disk of 20 TB"),
        b if b >= 6 * TB => ("cmr-8tb", "a disk of 8 TB"),
        b if b >= 3 * TB => ("cmr-4tb", "a measured disk of 4 TB"),
        b if b >= 500 * GB => ("st2000dm006", "a disk of 2 TB"),
        _ => ("sata-7200-2006", "a desktop disk of 160 GB"),
    };
    DriveModel {
        profile,
        why: format!("it rotates, and {what} is the nearest in size"),
        quality: ModelQuality::Generic,
    }
}
