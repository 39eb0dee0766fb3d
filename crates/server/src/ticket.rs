//! Tickets: the 64-bit numbers by which the server recognises the completions of its devices.

use hoistway_blockdev::DeviceId;
use hoistway_reactor::ConnId;

/// The connection slot of tickets of the server's own flushes. No connection has this slot.
const FLUSH_SLOT: u32 = u32::MAX;

/// The owner of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TicketOwner {
    /// A request of a connection.
    Request {
        /// The connection, with the lowest 16 bits of its generation.
        connection: ConnId,
        /// The key of the request in the connection's table.
        key: usize,
    },
    /// The final flush of a device.
    Flush {
        /// The device.
        device: DeviceId,
    },
}

/// Returns the ticket of a request: 32 bits of connection slot, 16 of its generation, 16 of the
/// request's key.
pub(crate) fn request_ticket(id: ConnId, key: usize) -> u64 {
    u64::from(id.slot) << 32 | u64::from(id.generation & 0xffff) << 16 | (key as u64 & 0xffff)
}

/// Returns the ticket of the server's own flush of a device.
pub(crate) fn flush_ticket(device: DeviceId) -> u64 {
    u64::from(FLUSH_SLOT) << 32 | u64::from(device.0)
}

/// Returns the owner of a ticket.
pub(crate) fn owner_of(ticket: u64) -> TicketOwner {
    let slot = (ticket >> 32) as u32;
    if slot == FLUSH_SLOT {
        return TicketOwner::Flush { device: DeviceId(ticket as u32) };
    }
    let connection = ConnId { slot, generation: (ticket >> 16 & 0xffff) as u32 };
    TicketOwner::Request { connection, key: (ticket & 0xffff) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_names_its_request_or_the_flushed_device() {
        let id = ConnId { slot: 7, generation: 0x1_0002 };
        let connection = ConnId { slot: 7, generation: 2 };
        assert_eq!(owner_of(request_ticket(id, 3)), TicketOwner::Request { connection, key: 3 });
        let device = DeviceId(70_000);
        assert_eq!(owner_of(flush_ticket(device)), TicketOwner::Flush { device });
    }
}
