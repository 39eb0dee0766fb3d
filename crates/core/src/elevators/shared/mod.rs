//! The rules that several elevators share.

pub mod async_queues;
pub mod chooser;
pub mod direction;
pub mod driver_list;
pub mod idling;
pub mod read_write_queues;
pub mod slice_tunables;
pub mod sorted_fifo;
pub mod stored_time;
pub mod turns;
pub mod wf2q;
