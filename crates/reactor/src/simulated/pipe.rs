//! One direction of a connection: bytes that travel for a while, then lie in a bounded buffer until
//! they are taken.

use std::collections::VecDeque;

/// Bytes under way from one side to the other.
#[derive(Debug, Default)]
pub struct Pipe {
    /// The most bytes that are under way or lie at the other end, as the two sockets' buffers bound
    /// them.
    capacity: usize,
    under_way: usize,
    transit: VecDeque<(u64, Vec<u8>)>,
    held: VecDeque<u8>,
    /// When the other side learns that nothing more will come.
    ends_ns: Option<u64>,
    ended: bool,
}

impl Pipe {
    /// An empty pipe that takes so many bytes.
    pub fn new(capacity: usize) -> Pipe {
        Pipe { capacity, ..Pipe::default() }
    }

    /// How many bytes it takes now.
    pub fn room(&self) -> usize {
        if self.ends_ns.is_some() { 0 } else { self.capacity.saturating_sub(self.under_way + self.held.len()) }
    }

    /// Sends bytes that arrive at this time or, as order is kept, when what went before has
    /// arrived; answers when.
    pub fn put(&mut self, bytes: Vec<u8>, arrive_ns: u64) -> u64 {
        let arrive_ns = self.transit.back().map_or(arrive_ns, |(before_ns, _)| arrive_ns.max(*before_ns));
        self.under_way += bytes.len();
        self.transit.push_back((arrive_ns, bytes));
        arrive_ns
    }

    /// Nothing more will be sent; the other side learns it after all bytes. Answers when.
    pub fn end(&mut self, arrive_ns: u64) -> u64 {
        let arrive_ns = self.transit.back().map_or(arrive_ns, |(before_ns, _)| arrive_ns.max(*before_ns));
        *self.ends_ns.get_or_insert(arrive_ns)
    }

    /// Lets what is due by now arrive.
    pub fn arrive(&mut self, now_ns: u64) {
        while let Some((at_ns, _)) = self.transit.front() {
            if *at_ns > now_ns {
                return;
            }
            if let Some((_, bytes)) = self.transit.pop_front() {
                self.under_way -= bytes.len();
                self.held.extend(bytes);
            }
        }
        self.ended |= self.ends_ns.is_some_and(|at_ns| at_ns <= now_ns);
    }

    /// Bytes that have arrived and were not taken.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether everything was taken and nothing more will come.
    pub fn is_over(&self) -> bool {
        self.ended && self.held.is_empty() && self.transit.is_empty()
    }

    /// Takes bytes that have arrived, as many as fit; answers how many.
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
    fn bytes_arrive_in_order_and_the_end_comes_after_them() {
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
