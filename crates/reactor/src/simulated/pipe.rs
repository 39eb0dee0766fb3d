//! One direction of a connection: bytes are in transit for the latency, then wait in a bounded
//! buffer until they are read.

use std::collections::VecDeque;

/// The bytes from one side to the other.
#[derive(Debug, Default)]
pub struct Pipe {
    /// Maximum number of bytes in transit and in the buffer, the sum of both sockets' buffers.
    capacity: usize,
    in_transit: usize,
    /// Bytes in transit, with their arrival times.
    transit: VecDeque<(u64, Vec<u8>)>,
    held: VecDeque<u8>,
    /// Arrival time of the end of the stream.
    ends_ns: Option<u64>,
    ended: bool,
}

impl Pipe {
    /// Creates an empty pipe with a capacity in bytes.
    pub fn new(capacity: usize) -> Pipe {
        Pipe { capacity, ..Pipe::default() }
    }

    /// Returns the number of bytes that the pipe accepts now.
    pub fn room(&self) -> usize {
        if self.ends_ns.is_some() { 0 } else { self.capacity.saturating_sub(self.in_transit + self.held.len()) }
    }

    /// Sends bytes. They arrive at `arrive_ns`, or together with earlier bytes that arrive later.
    /// Returns the arrival time.
    pub fn put(&mut self, bytes: Vec<u8>, arrive_ns: u64) -> u64 {
        let arrive_ns = self.transit.back().map_or(arrive_ns, |(before_ns, _)| arrive_ns.max(*before_ns));
        self.in_transit += bytes.len();
        self.transit.push_back((arrive_ns, bytes));
        arrive_ns
    }

    /// Ends the stream after all sent bytes. Returns the arrival time of the end.
    pub fn end(&mut self, arrive_ns: u64) -> u64 {
        let arrive_ns = self.transit.back().map_or(arrive_ns, |(before_ns, _)| arrive_ns.max(*before_ns));
        *self.ends_ns.get_or_insert(arrive_ns)
    }

    /// Moves bytes that have arrived into the buffer.
    pub fn arrive(&mut self, now_ns: u64) {
        while let Some((at_ns, _)) = self.transit.front() {
            if *at_ns > now_ns {
                return;
            }
            if let Some((_, bytes)) = self.transit.pop_front() {
                self.in_transit -= bytes.len();
                self.held.extend(bytes);
            }
        }
        self.ended |= self.ends_ns.is_some_and(|at_ns| at_ns <= now_ns);
    }

    /// Returns the number of bytes in the buffer.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns true if the stream has ended and all bytes were read.
    pub fn is_over(&self) -> bool {
        self.ended && self.held.is_empty() && self.transit.is_empty()
    }

    /// Reads bytes from the buffer, as many as fit. Returns their number.
    pub fn take(&mut self, into: &mut [u8]) -> usize {
        let count = into.len().min(self.held.len());
        let (front, back) = self.held.as_slices();
        let first = front.len().min(count);
        into[..first].copy_from_slice(&front[..first]);
        into[first..count].copy_from_slice(&back[..count - first]);
        self.held.drain(..count);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_in_order_and_before_the_end() {
        let mut pipe = Pipe::new(10);
        pipe.put(vec![1, 2, 3], 100);
        assert_eq!(pipe.put(vec![4], 50), 100);
        assert_eq!((pipe.room(), pipe.end(0)), (6, 100));
        pipe.arrive(99);
        assert_eq!((pipe.held(), pipe.is_over()), (0, false));
        pipe.arrive(100);
        let mut bytes = [0; 8];
        assert_eq!((pipe.take(&mut bytes[..3]), pipe.is_over()), (3, false));
        assert_eq!((pipe.take(&mut bytes[3..]), pipe.is_over()), (1, true));
        assert_eq!(bytes[..4], [1, 2, 3, 4]);
    }
}
