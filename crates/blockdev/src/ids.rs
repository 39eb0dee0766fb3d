//! The ids of devices, and the tags of what they start in the engine.

use hoistway_qos::IoId;

/// The id of a device: its index among the devices of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub u32);

impl DeviceId {
    /// Returns the id of the device with an index.
    pub fn of_index(index: usize) -> DeviceId {
        DeviceId(index as u32)
    }

    /// Returns the index of the device.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the device that started an operation of the engine, by its tag.
    pub fn of_tag(tag: u64) -> DeviceId {
        DeviceId((tag >> 32) as u32)
    }

    /// Returns a tag for the engine. The device distinguishes its operations by `low`.
    pub(crate) fn tag(self, low: u32) -> u64 {
        u64::from(self.0) << 32 | u64::from(low)
    }
}

/// The tag of an I/O of a device in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoTag {
    /// The device.
    pub device: DeviceId,
    /// The I/O in the device's queue.
    pub io: IoId,
}

impl IoTag {
    /// Returns the tag from its form in the engine.
    pub fn of(tag: u64) -> IoTag {
        IoTag { device: DeviceId::of_tag(tag), io: IoId::of_number(tag as u32) }
    }

    /// Returns the form of the tag in the engine.
    pub fn number(self) -> u64 {
        self.device.tag(self.io.number())
    }
}
