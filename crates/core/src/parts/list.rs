//! Doubly linked lists through the entries of an arena.

use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

use super::{NIL, Slot};

/// The neighbours of an entry in one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The entry before, or [`NIL`].
    pub prev: Slot,
    /// The entry after, or [`NIL`].
    pub next: Slot,
}

impl Default for Link {
    fn default() -> Self {
        Link { prev: NIL, next: NIL }
    }
}

/// Which link of an entry `T` a list runs through: an entry can be on as many lists as it has links.
pub trait LinkOf<T> {
    /// The link of `entry` for this kind of list.
    fn link(entry: &T) -> &Link;
    /// The same, to be changed.
    fn link_mut(entry: &mut T) -> &mut Link;
}

/// A doubly linked list through the links `K` of entries that lie in an arena.
///
/// The list does not know whether an entry is on it: whoever owns the entry does.
#[derive(Debug)]
pub struct List<K> {
    head: Slot,
    tail: Slot,
    kind: PhantomData<K>,
}

impl<K> Clone for List<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for List<K> {}

impl<K> Default for List<K> {
    fn default() -> Self {
        List { head: NIL, tail: NIL, kind: PhantomData }
    }
}

impl<K> List<K> {
    /// Whether nothing is on the list.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// The first entry, or [`NIL`].
    #[inline]
    pub fn head(&self) -> Slot {
        self.head
    }

    /// The last entry, or [`NIL`].
    #[inline]
    pub fn tail(&self) -> Slot {
        self.tail
    }

    /// Appends `slot`.
    #[inline]
    pub fn push_back<T, A>(&mut self, arena: &mut A, slot: Slot)
    where
        K: LinkOf<T>,
        A: IndexMut<Slot> + Index<Slot, Output = T>,
    {
        *K::link_mut(&mut arena[slot]) = Link { prev: self.tail, next: NIL };
        match self.tail {
            NIL => self.head = slot,
            tail => K::link_mut(&mut arena[tail]).next = slot,
        }
        self.tail = slot;
    }

    /// Puts `slot` before all others.
    #[inline]
    pub fn push_front<T, A>(&mut self, arena: &mut A, slot: Slot)
    where
        K: LinkOf<T>,
        A: IndexMut<Slot> + Index<Slot, Output = T>,
    {
        *K::link_mut(&mut arena[slot]) = Link { prev: NIL, next: self.head };
        match self.head {
            NIL => self.tail = slot,
            head => K::link_mut(&mut arena[head]).prev = slot,
        }
        self.head = slot;
    }

    /// Puts `slot` right after `before`; with `before` [`NIL`], first.
    pub fn insert_after<T, A>(&mut self, arena: &mut A, before: Slot, slot: Slot)
    where
        K: LinkOf<T>,
        A: IndexMut<Slot> + Index<Slot, Output = T>,
    {
        if before == NIL {
            return self.push_front(arena, slot);
        }
        let next = K::link(&arena[before]).next;
        if next == NIL {
            return self.push_back(arena, slot);
        }
        *K::link_mut(&mut arena[slot]) = Link { prev: before, next };
        K::link_mut(&mut arena[before]).next = slot;
        K::link_mut(&mut arena[next]).prev = slot;
    }

    /// Puts `slot` right before `after`; with `after` [`NIL`], last.
    pub fn insert_before<T, A>(&mut self, arena: &mut A, after: Slot, slot: Slot)
    where
        K: LinkOf<T>,
        A: IndexMut<Slot> + Index<Slot, Output = T>,
    {
        if after == NIL {
            return self.push_back(arena, slot);
        }
        let before = K::link(&arena[after]).prev;
        self.insert_after(arena, before, slot);
    }

    /// Takes `slot` off the list; it must be on it.
    #[inline]
    pub fn remove<T, A>(&mut self, arena: &mut A, slot: Slot)
    where
        K: LinkOf<T>,
        A: IndexMut<Slot> + Index<Slot, Output = T>,
    {
        let Link { prev, next } = core::mem::take(K::link_mut(&mut arena[slot]));
        match prev {
            NIL => self.head = next,
            prev => K::link_mut(&mut arena[prev]).next = next,
        }
        match next {
            NIL => self.tail = prev,
            next => K::link_mut(&mut arena[next]).prev = prev,
        }
    }

    /// Takes the first entry off the list and returns it, or [`NIL`].
    #[inline]
    pub fn pop_front<T, A>(&mut self, arena: &mut A) -> Slot
    where
        K: LinkOf<T>,
        A: IndexMut<Slot> + Index<Slot, Output = T>,
    {
        let head = self.head;
        if head == NIL {
            return NIL;
        }
        let next = K::link(&arena[head]).next;
        *K::link_mut(&mut arena[head]) = Link::default();
        match next {
            NIL => self.tail = NIL,
            next => K::link_mut(&mut arena[next]).prev = NIL,
        }
        self.head = next;
        head
    }

    /// The entry after `slot`, or [`NIL`].
    #[inline]
    pub fn next<T, A>(&self, arena: &A, slot: Slot) -> Slot
    where
        K: LinkOf<T>,
        A: Index<Slot, Output = T>,
    {
        K::link(&arena[slot]).next
    }

    /// The entry before `slot`, or [`NIL`].
    #[inline]
    pub fn prev<T, A>(&self, arena: &A, slot: Slot) -> Slot
    where
        K: LinkOf<T>,
        A: Index<Slot, Output = T>,
    {
        K::link(&arena[slot]).prev
    }
}
