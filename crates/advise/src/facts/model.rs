//! Which model of a drive stands for a device.

use hoistway_machine::{BlockDevice, Kind, Root, Transport, drives_below};

/// A model for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The profile's name.
    pub profile: &'static str,
    /// Why that one, in a clause.
    pub why: String,
    /// How near it is.
    pub standing: Standing,
}

/// How near a model is to the drive that it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Fitted to what the drive did.
    Fitted,
    /// Named by who asks, or by the trace.
    Named,
    /// A drive of its kind and size.
    Generic,
    /// The nearest that there is, of another kind.
    Distant,
    /// Nobody knows what the device is made of.
    Unknown,
}

const TB: u64 = 1_000_000_000_000;
const GB: u64 = 1_000_000_000;

/// Words of models that are no drives but what a hypervisor, a RAID controller or a cloud makes up.
const MADE_UP: [(&str, &str); 17] = [
    ("qemu", "a disk that QEMU makes up"),
    ("vbox", "a disk that VirtualBox makes up"),
    ("vmware", "a disk that VMware makes up"),
    ("virtual", "a virtual disk"),
    ("elastic block store", "a volume of Amazon's"),
    ("persistentdisk", "a volume of Google's"),
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

/// The model for a device; `None` where no drive stands behind it: memory, or nothing.
pub fn model_of(device: &BlockDevice) -> Option<Model> {
    let model = |profile, why: String, standing| Some(Model { profile, why, standing });
    let generic = |profile, why: &str| model(profile, why.to_owned(), Standing::Generic);
    if device.kind.is_memory() || matches!(device.kind, Kind::Rom | Kind::Partition) {
        return None;
    }
    if let Some(what) = made_up(device) {
        return model(
            "cloud-gp3",
            format!("{what}: nobody knows what lies below, and a cloud volume stands for it"),
            Standing::Unknown,
        );
    }
    let rotates = device.queue.as_ref().and_then(|queue| queue.rotational);
    match device.kind {
        Kind::Mmc => model(
            "ssd-sata-consumer",
            "there is no model of cards: a SATA SSD, which is faster, stands for it".into(),
            Standing::Distant,
        ),
        Kind::Nvme => generic("ssd-nvme-tlc", "an NVMe drive"),
        Kind::Loop | Kind::Lvm | Kind::Crypt | Kind::Multipath | Kind::Mapper | Kind::Md => model(
            "sata-7200-2006",
            "it is made of other devices, and which is not known here: a disk of 7200 rpm stands for it".into(),
            Standing::Unknown,
        ),
        _ if rotates == Some(false) => match device.identity.transport {
            Some(Transport::Sas) => generic("ssd-sata-enterprise", "an SSD for servers"),
            _ => generic("ssd-sata-consumer", "a SATA SSD"),
        },
        _ if rotates == Some(true) => Some(disk(device)),
        _ => model(
            "sata-7200-2006",
            "whether it rotates is not known: a disk of 7200 rpm stands for it".into(),
            Standing::Unknown,
        ),
    }
}

/// The same, of the first drive that a device lies on where it lies on something that is known: a file as a device is as fast as the disk that the file is on.
pub fn model_under(root: &Root, devices: &[BlockDevice], device: &BlockDevice) -> Option<Model> {
    let below = drives_below(root, devices, device).into_iter().find(|below| below.name != device.name);
    match below.filter(|_| device.kind.is_stacked()) {
        Some(below) => {
            let model = model_of(below)?;
            Some(Model { why: format!("it lies on {}, and of that: {}", below.name, model.why), ..model })
        }
        None => model_of(device),
    }
}

/// What a device is that only says it is a drive.
fn made_up(device: &BlockDevice) -> Option<String> {
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
    MADE_UP.iter().find(|(word, _)| named.contains(word)).map(|(_, what)| (*what).to_owned())
}

/// A disk by its size: what was made of that size tells how dense its platters are, which is what rates follow from.
fn disk(device: &BlockDevice) -> Model {
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
    Model { profile, why: format!("it rotates, and {what} is the nearest in size"), standing: Standing::Generic }
}
