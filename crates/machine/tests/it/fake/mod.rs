//! Machines made of files: sysfs, procfs and udev's database as Linux has them.
#![allow(dead_code)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A directory tree that stands for a machine.
pub struct Fake {
    folder: TempDir,
}

/// The PCI function of the disk controller in sysfs.
const PCI: &str = "/sys/devices/pci0000:00/0000:00:17.0";

impl Fake {
    /// A machine without devices.
    pub fn empty() -> Fake {
        let fake = Fake { folder: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir_all(fake.path("/sys/block")).expect("a folder");
        fake.file("/proc/self/mountinfo", "");
        fake.file("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
        fake
    }

    /// The directory that stands for `/`.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The path below the root of a path of the machine.
    pub fn path(&self, absolute: &str) -> PathBuf {
        self.folder.path().join(absolute.trim_start_matches('/'))
    }

    /// Writes a file that root could write, as sysfs has them.
    pub fn file(&self, path: &str, contents: impl AsRef<[u8]>) {
        let to = self.path(path);
        fs::create_dir_all(to.parent().expect("a parent directory")).expect("a folder");
        fs::write(&to, contents).expect("a file");
        fs::set_permissions(&to, fs::Permissions::from_mode(0o644)).expect("its mode");
    }

    /// Writes a read-only file.
    pub fn read_only_file(&self, path: &str, contents: impl AsRef<[u8]>) {
        self.file(path, contents);
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o444)).expect("its mode");
    }

    /// The content of a file without surrounding blanks.
    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("a file").trim().to_owned()
    }

    /// Makes a symbolic link; a relative target starts at the directory of the link.
    pub fn link(&self, from: &str, to: &str) {
        let from = self.path(from);
        fs::create_dir_all(from.parent().expect("a parent directory")).expect("a folder");
        symlink(to, from).expect("a link");
    }

    /// A whole device below `parent` in sysfs. Returns its directory.
    pub fn device(&self, name: &str, parent: &str, number: &str, sectors: u64) -> String {
        let folder = format!("{parent}/block/{name}");
        self.read_only_file(&format!("{folder}/dev"), format!("{number}\n"));
        self.read_only_file(&format!("{folder}/size"), format!("{sectors}\n"));
        self.read_only_file(&format!("{folder}/ro"), "0\n");
        self.read_only_file(&format!("{folder}/removable"), "0\n");
        fs::create_dir_all(self.path(&format!("{folder}/holders"))).expect("a folder");
        fs::create_dir_all(self.path(&format!("{folder}/slaves"))).expect("a folder");
        self.link(&format!("/sys/block/{name}"), &format!("..{}", folder.trim_start_matches("/sys")));
        folder
    }

    /// A virtual device. Returns its directory.
    pub fn virtual_device(&self, name: &str, number: &str, sectors: u64) -> String {
        self.device(name, "/sys/devices/virtual", number, sectors)
    }

    /// A partition. Returns its directory.
    pub fn partition(&self, disk: &str, name: &str, place: (u32, &str), sectors: u64) -> String {
        let folder = format!("{disk}/{name}");
        self.read_only_file(&format!("{folder}/partition"), format!("{}\n", place.0));
        self.read_only_file(&format!("{folder}/dev"), format!("{}\n", place.1));
        self.read_only_file(&format!("{folder}/size"), format!("{sectors}\n"));
        self.read_only_file(&format!("{folder}/ro"), "0\n");
        fs::create_dir_all(self.path(&format!("{folder}/holders"))).expect("a folder");
        folder
    }

    /// The queue of a device: the file `scheduler`, whether it rotates, `nr_requests`.
    pub fn queue(&self, folder: &str, scheduler: &str, rotational: bool, nr_requests: u32) {
        let queue = |name: &str, text: &str| self.file(&format!("{folder}/queue/{name}"), format!("{text}\n"));
        queue("scheduler", scheduler);
        queue("rotational", if rotational { "1" } else { "0" });
        queue("nr_requests", &nr_requests.to_string());
        queue("read_ahead_kb", "128");
        queue("max_sectors_kb", "1280");
        queue("rq_affinity", "1");
        queue("nomerges", "0");
        queue("wbt_lat_usec", if rotational { "75000" } else { "2000" });
        queue("iostats", "1");
        queue("write_cache", "write back");
        for (name, text) in [
            ("max_hw_sectors_kb", "32767"),
            ("fua", "0"),
            ("zoned", "none"),
            ("discard_max_bytes", if rotational { "0" } else { "2147450880" }),
            ("logical_block_size", "512"),
            ("physical_block_size", "4096"),
        ] {
            self.read_only_file(&format!("{folder}/queue/{name}"), format!("{text}\n"));
        }
    }

    /// Loads the module `hoistway_iosched` 0.1.0, which adds cfq and h-bfq to `sda`; cfq is active.
    pub fn load_module(&self) {
        let queue = "/sys/block/sda/queue";
        self.read_only_file("/sys/module/hoistway_iosched/version", "0.1.0\n");
        self.file(&format!("{queue}/scheduler"), "none mq-deadline kyber bfq [cfq] h-bfq\n");
        fs::remove_dir_all(self.path(&format!("{queue}/iosched"))).expect("tunables of mq-deadline");
        for (name, value) in [("quantum", "8"), ("slice_idle", "8"), ("slice_sync", "100")] {
            self.file(&format!("{queue}/iosched/{name}"), format!("{value}\n"));
        }
    }

    /// Installs the module `hoistway_iosched` for the running kernel without loading it.
    pub fn install_module(&self) {
        self.read_only_file("/proc/sys/kernel/osrelease", "6.12.9\n");
        self.file("/lib/modules/6.12.9/modules.dep", "updates/dkms/hoistway_iosched.ko.xz:\n");
    }

    /// The tunables of mq-deadline.
    pub fn mq_deadline(&self, folder: &str) {
        for (name, value) in [
            ("async_depth", "64"),
            ("fifo_batch", "16"),
            ("front_merges", "1"),
            ("prio_aging_expire", "10000"),
            ("read_expire", "500"),
            ("write_expire", "5000"),
            ("writes_starved", "2"),
        ] {
            self.file(&format!("{folder}/queue/iosched/{name}"), format!("{value}\n"));
        }
    }

    /// The tunables of bfq.
    pub fn bfq(&self, folder: &str) {
        for (name, value) in [
            ("back_seek_max", "16384"),
            ("back_seek_penalty", "2"),
            ("fifo_expire_async", "250"),
            ("fifo_expire_sync", "125"),
            ("low_latency", "1"),
            ("max_budget", "0"),
            ("slice_idle", "8"),
            ("slice_idle_us", "8000"),
            ("strict_guarantees", "0"),
            ("timeout_sync", "125"),
        ] {
            self.file(&format!("{folder}/queue/iosched/{name}"), format!("{value}\n"));
        }
    }

    /// Makes `lower` a part of `upper`, both directories of devices in sysfs.
    pub fn stack(&self, upper: &str, lower: &str) {
        let name = |folder: &str| folder.rsplit('/').next().expect("a name").to_owned();
        let (above, below) = (name(upper), name(lower));
        self.read_only_file(&format!("{lower}/holders/{above}"), "");
        self.read_only_file(&format!("{upper}/slaves/{below}"), "");
    }

    /// Adds a process with open files.
    pub fn process(&self, pid: u32, comm: &str, descriptors: &[&str]) {
        let folder = format!("/proc/{pid}");
        self.read_only_file(&format!("{folder}/comm"), format!("{comm}\n"));
        self.read_only_file(&format!("{folder}/cmdline"), format!("/usr/bin/{comm}\0--all\0"));
        let rest = "S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 4096 100 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0";
        self.read_only_file(&format!("{folder}/stat"), format!("{pid} ({comm}) {rest}\n"));
        self.read_only_file(
            &format!("{folder}/status"),
            format!("Name:\t{comm}\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\n"),
        );
        self.read_only_file(&format!("{folder}/cgroup"), "0::/\n");
        fs::create_dir_all(self.path(&format!("{folder}/fd"))).expect("a folder");
        for (number, target) in descriptors.iter().enumerate() {
            self.link(&format!("{folder}/fd/{number}"), target);
        }
    }
}

/// A machine with one device of each kind: a SATA disk with partitions, of which one is encrypted
/// and holds a volume group; an NVMe drive with `/`; a virtual disk; two more SATA disks as a
/// mirror; a loop device over a file on the volume; a network device, compressed swap, an optical
/// drive without a disk, a drive with one scheduler, and a device whose files are invalid.
pub fn server() -> Fake {
    let fake = Fake::empty();
    sata(&fake);
    nvme(&fake);
    mirror(&fake);
    virtual_devices(&fake);
    garbage(&fake);
    fake.file(
        "/proc/self/mountinfo",
        "22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw\n\
         23 22 0:21 / /run rw,nosuid shared:2 - tmpfs tmpfs rw,size=3267496k\n\
         24 22 8:1 / /boot rw,relatime shared:3 - ext4 /dev/sda1 rw\n\
         25 22 253:1 / /srv/my\\040data rw,relatime shared:4 - xfs /dev/mapper/vg-data rw\n\
         26 22 0:44 /@home /home rw,relatime shared:5 - btrfs /dev/md0 rw,subvol=/@home\n\
         27 22 7:0 / /mnt/image ro,relatime - squashfs /dev/loop0 ro\n",
    );
    fake.file(
        "/proc/swaps",
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0 partition\t4194300\t0\t100\n/swapfile file 1024 0 -2\n",
    );
    fake.link("/dev/disk/by-label/boot", "../../sda1");
    fake.file("/dev/sda1", "");
    fake.process(812, "smartd", &["/dev/null", "/dev/sda"]);
    fake.process(901, "qemu-system-x86", &["/srv/my data/vm.img", "socket:[1234]", "/dev/sda"]);
    fake
}

fn sata(fake: &Fake) {
    let sda = fake.device("sda", &format!("{PCI}/ata1/host0/target0:0:0/0:0:0:0"), "8:0", 7_814_037_168);
    fake.queue(&sda, "none [mq-deadline] kyber bfq", true, 64);
    fake.mq_deadline(&sda);
    // The link leads to the directory of the SCSI device above.
    fake.link(&format!("{sda}/device"), "../../../0:0:0:0");
    let device = format!("{PCI}/ata1/host0/target0:0:0/0:0:0:0");
    fake.read_only_file(&format!("{device}/vendor"), "ATA     \n");
    fake.read_only_file(&format!("{device}/model"), "WDC WD40EFRX-68N\n");
    fake.read_only_file(&format!("{device}/rev"), "0A82\n");
    fake.read_only_file(&format!("{device}/wwid"), "naa.50014ee2b5e7c1d2\n");
    fake.read_only_file(&format!("{device}/vpd_pg80"), b"\x00\x80\x00\x14     WD-WCC7K4ABCDEF");
    fake.file(&format!("{device}/queue_depth"), "32\n");
    fs::create_dir_all(fake.path(&format!("{sda}/mq/0"))).expect("a folder");
    fake.read_only_file(
        "/run/udev/data/b8:0",
        "S:disk/by-id/wwn-0x50014ee2b5e7c1d2\nS:disk/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7K4ABCDEF\nE:ID_BUS=ata\n\
         E:ID_MODEL=WDC_WD40EFRX-68N32N0\nE:ID_SERIAL=WDC_WD40EFRX-68N32N0_WD-WCC7K4ABCDEF\nE:ID_WWN=0x50014ee2b5e7c1d2\n",
    );
    fake.partition(&sda, "sda1", (1, "8:1"), 2_097_152);
    let sda2 = fake.partition(&sda, "sda2", (2, "8:2"), 7_811_938_304);
    let crypt = fake.virtual_device("dm-0", "253:0", 7_811_934_208);
    fake.queue(&crypt, "none", true, 128);
    fake.read_only_file(&format!("{crypt}/dm/name"), "vault\n");
    fake.read_only_file(&format!("{crypt}/dm/uuid"), "CRYPT-LUKS2-5d1f2c-vault\n");
    let volume = fake.virtual_device("dm-1", "253:1", 4_194_304_000);
    fake.queue(&volume, "none", true, 128);
    fake.read_only_file(&format!("{volume}/dm/name"), "vg-data\n");
    fake.read_only_file(&format!("{volume}/dm/uuid"), "LVM-Zx81data\n");
    fake.stack(&crypt, &sda2);
    fake.stack(&volume, &crypt);
}

fn nvme(fake: &Fake) {
    let controller = "/sys/devices/pci0000:00/0000:00:1d.0/0000:3d:00.0/nvme/nvme0";
    fake.read_only_file(&format!("{controller}/model"), "Samsung SSD 980 PRO 1TB                 \n");
    fake.read_only_file(&format!("{controller}/serial"), "S5GXNX0R123456      \n");
    fake.read_only_file(&format!("{controller}/firmware_rev"), "5B2QGXA7\n");
    fake.read_only_file(&format!("{controller}/transport"), "pcie\n");
    let folder = format!("{controller}/nvme0n1");
    // NVMe devices have no directory `block` above them.
    let made = fake.device("nvme0n1", controller, "259:0", 1_953_525_168);
    fs::rename(fake.path(&made), fake.path(&folder)).expect("a folder moves");
    fs::remove_file(fake.path("/sys/block/nvme0n1")).expect("a link goes");
    fake.link("/sys/block/nvme0n1", &format!("..{}", folder.trim_start_matches("/sys")));
    fake.link(&format!("{folder}/device"), "../../nvme0");
    fake.queue(&folder, "[none] mq-deadline kyber bfq", false, 1023);
    fake.read_only_file(&format!("{folder}/wwid"), "eui.002538b111b2c3d4\n");
    for queue in 0..8 {
        fs::create_dir_all(fake.path(&format!("{folder}/mq/{queue}"))).expect("a folder");
    }
    fake.partition(&folder, "nvme0n1p1", (1, "259:1"), 1_953_523_712);
    // A path of a multipath drive: the kernel hides the device and gives it no number.
    let path = fake.device("nvme0c0n1", controller, "0:0", 1_953_525_168);
    fake.read_only_file(&format!("{path}/hidden"), "1\n");
}

fn mirror(fake: &Fake) {
    let md = fake.virtual_device("md0", "9:0", 1_953_383_488);
    fake.queue(&md, "none", true, 128);
    fake.read_only_file(&format!("{md}/md/level"), "raid1\n");
    for (name, port, number) in [("sdb", 2, "8:16"), ("sdc", 3, "8:32")] {
        let host = port - 1;
        let device = format!("{PCI}/ata{port}/host{host}/target{host}:0:0/{host}:0:0:0");
        let disk = fake.device(name, &device, number, 1_953_525_168);
        fake.link(&format!("{disk}/device"), &format!("../../../{host}:0:0:0"));
        fake.queue(&disk, "none mq-deadline kyber [bfq]", true, 64);
        fake.bfq(&disk);
        fake.read_only_file(&format!("{device}/model"), "ST1000DM003\n");
        fake.read_only_file(&format!("{device}/vendor"), "ATA\n");
        fake.read_only_file(&format!("{device}/wwid"), format!("naa.5000c500{port}1b2c3d4\n"));
        fake.file(&format!("{device}/queue_depth"), "1\n");
        fake.stack(&md, &disk);
    }
}

fn virtual_devices(fake: &Fake) {
    let vda = fake.device("vda", "/sys/devices/pci0000:00/0000:00:05.0/virtio1", "254:0", 83_886_080);
    fake.queue(&vda, "[none] mq-deadline", true, 256);
    fake.link(&format!("{vda}/device"), "../../../virtio1");
    fake.read_only_file("/sys/devices/pci0000:00/0000:00:05.0/virtio1/vendor", "0x1af4\n");
    fake.read_only_file(&format!("{vda}/serial"), "");
    let image = fake.virtual_device("loop0", "7:0", 409_600);
    fake.queue(&image, "[none] mq-deadline kyber bfq", true, 128);
    fake.read_only_file(&format!("{image}/loop/backing_file"), "/srv/my data/image.squashfs\n");
    fake.virtual_device("loop1", "7:1", 0);
    let nbd = fake.virtual_device("nbd0", "43:0", 8_388_608);
    fake.queue(&nbd, "none [mq-deadline] kyber", false, 128);
    fake.mq_deadline(&nbd);
    let zram = fake.virtual_device("zram0", "252:0", 8_388_608);
    fake.queue(&zram, "", false, 128);
    fs::remove_file(fake.path(&format!("{zram}/queue/scheduler"))).expect("a file goes");
    let rom = fake.device("sr0", &format!("{PCI}/ata6/host5/target5:0:0/5:0:0:0"), "11:0", 0);
    fake.read_only_file(&format!("{rom}/removable"), "1\n");
    fake.queue(&rom, "none [mq-deadline]", true, 2);
}

/// A machine at a storage array: a volume of the array with two Fibre Channel paths, above which a
/// multipath device has a scheduler, and an LVM volume on that; and an NVMe drive with two paths,
/// which the kernel hides.
pub fn array() -> Fake {
    let fake = Fake::empty();
    let multipath = fake.virtual_device("dm-0", "253:0", 2_147_483_648);
    fake.queue(&multipath, "none [mq-deadline] kyber bfq", true, 2048);
    fake.mq_deadline(&multipath);
    fake.read_only_file(&format!("{multipath}/dm/name"), "mpatha\n");
    fake.read_only_file(&format!("{multipath}/dm/uuid"), "mpath-3600a0980383030\n");
    for (name, host, number) in [("sda", 1, "8:0"), ("sdb", 2, "8:16")] {
        let device =
            format!("/sys/devices/pci0000:00/0000:00:03.0/host{host}/rport-{host}:0-1/target{host}:0:0/{host}:0:0:1");
        let path = fake.device(name, &device, number, 2_147_483_648);
        fake.link(&format!("{path}/device"), &format!("../../../{host}:0:0:1"));
        fake.queue(&path, "none [mq-deadline] kyber bfq", true, 256);
        fake.mq_deadline(&path);
        fake.read_only_file(&format!("{device}/model"), "LUN\n");
        fake.read_only_file(&format!("{device}/wwid"), "naa.600a0980383030\n");
        fake.file(&format!("{device}/queue_depth"), "64\n");
        fake.stack(&multipath, &path);
    }
    let volume = fake.virtual_device("dm-1", "253:1", 1_047_483_648);
    fake.queue(&volume, "none", true, 128);
    fake.read_only_file(&format!("{volume}/dm/name"), "san-db\n");
    fake.read_only_file(&format!("{volume}/dm/uuid"), "LVM-abcdef\n");
    fake.stack(&volume, &multipath);
    let subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0";
    fake.read_only_file(&format!("{subsystem}/subsysnqn"), "nqn.2014-08.org.nvmexpress:uuid:0\n");
    let head = fake.device("nvme0n1", subsystem, "259:0", 3_750_748_848);
    fake.link(&format!("{head}/device"), "../../../nvme-subsys0");
    fake.queue(&head, "none", false, 128);
    for controller in ["nvme0", "nvme1"] {
        let folder = format!("/sys/devices/virtual/nvme-fabrics/ctl/{controller}");
        fake.read_only_file(&format!("{folder}/transport"), "tcp\n");
        fake.link(&format!("{subsystem}/{controller}"), &format!("../../nvme-fabrics/ctl/{controller}"));
    }
    for path in ["nvme0c0n1", "nvme0c1n1"] {
        let folder = fake.device(path, "/sys/devices/virtual/nvme-fabrics/ctl/nvme0", "0:0", 3_750_748_848);
        fake.read_only_file(&format!("{folder}/hidden"), "1\n");
        fake.queue(&folder, "[none] mq-deadline kyber", false, 127);
    }
    fake
}

fn garbage(fake: &Fake) {
    let sdx = fake.device("sdx", &format!("{PCI}/usb2/2-1/2-1:1.0/host9/target9:0:0/9:0:0:0"), "65:112", 0);
    fake.queue(&sdx, "[none", true, 64);
    for (name, bytes) in [
        ("size", &b"many\n"[..]),
        ("ro", b"\xff\xfe"),
        ("removable", b"2\n"),
        ("queue/rotational", b"perhaps"),
        ("queue/nr_requests", b"-1\n"),
        ("queue/write_cache", b"\0\0\0"),
    ] {
        fake.file(&format!("{sdx}/{name}"), bytes);
    }
    // A device that vanishes during the read: its directory is left, without a number.
    fake.read_only_file("/sys/devices/virtual/block/sdy/size", "1\n");
    fake.link("/sys/block/sdy", "../devices/virtual/block/sdy");
    fake.link("/sys/block/sdz", "../devices/virtual/block/sdz");
}
