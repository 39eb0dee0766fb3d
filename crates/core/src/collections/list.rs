//! Doubly linked lists through the entries of an arena.

use core::marker::PhantomData;
use core::ops::DerefMut;

use super::{Arena, NIL, Slot};

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

/// Selects the link of an entry `T` through which a list runs. An entry can be on one list for each
/// link.
pub trait LinkOf<T> {
    /// The link of `entry` for this kind of list.
    fn link(entry: &T) -> &Link;
    /// The link of `entry` for this kind of list, mutable.
    fn link_mut(entry: &mut T) -> &mut Link;
}

/// A doubly linked list through the links `K` of entries in an arena.
///
/// A list does not record which entries are on it; the code that uses the list does.
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
    /// Returns true if the list is empty.
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

    /// The link to the entry after `slot`; for [`NIL`] the link to the head. In short lists it is
    /// unpredictable whether there is a neighbour, so both links are written through one reference,
    /// without a branch.
    #[inline(always)]
    fn link_after<'a, T, S>(&'a mut self, arena: &'a mut Arena<T, S>, slot: Slot) -> &'a mut Slot
    where
        K: LinkOf<T>,
        T: Copy + Default,
        S: DerefMut<Target = [T]>,
    {
        match arena.get_mut(slot) {
            Some(entry) => &mut K::link_mut(entry).next,
            None => &mut self.head,
        }
    }

    /// The link to the entry before `slot`; for [`NIL`] the link to the tail.
    #[inline(always)]
    fn link_before<'a, T, S>(&'a mut self, arena: &'a mut Arena<T, S>, slot: Slot) -> &'a mut Slot
    where
        K: LinkOf<T>,
        T: Copy + Default,
        S: DerefMut<Target = [T]>,
    {
        match arena.get_mut(slot) {
            Some(entry) => &mut K::link_mut(entry).prev,
            None => &mut self.tail,
        }
    }

    /// Appends `slot`.
    #[inline]
    pub fn push_back<T, S>(&mut self, arena: &mut Arena<T, S>, slot: Slot)
    where
        K: LinkOf<T>,
        T: Copy + Default,
        S: DerefMut<Target = [T]>,
    {
        let tail = core::mem::replace(&mut self.tail, slot);
        *K::link_mut(&mut arena[slot]) = Link { prev: tail, next: NIL };
        *self.link_after(arena, tail) = slot;
    }

    /// Prepends `slot`.
    #[inline]
    pub fn push_front<T, S>(&mut self, arena: &mut Arena<T, S>, slot: Slot)
    where
        K: LinkOf<T>,
        T: Copy + Default,
        S: DerefMut<Target = [T]>,
    {
        let head = core::mem::replace(&mut self.head, slot);
        *K::link_mut(&mut arena[slot]) = Link { prev: NIL, next: head };
        *self.link_before(arena, head) = slot;
    }

    /// Inserts `slot` directly after `before`, or at the head if `before` is [`NIL`].
    pub fn insert_after<T, S>(&mut self, arena: &mut Arena<T, S>, before: Slot, slot: Slot)
    where
        K: LinkOf<T>,
        T: Copy + Default,
        S: DerefMut<Target = [T]>,
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

    /// Inserts `slot` directly before `after`, or at the tail if `after` is [`NIL`].
    pub fn insert_before<T, S>(&mut self, arena: &mut Arena<T, S>, after: Slot, slot: Slot)
    where
        K: LinkOf<T>,
        T: Copy + Default,
        S: DerefMut<Target = [T]>,
    {
        if after == NIL {
            return self.push_back(arena, slot);
        }
        let before = K::link(&arena[after]).prev;
        self.insert_after(arena, before, slot);
    }

    /// Removes `slot`, which must be on the list.
    #[inline]
    pub fn remove<T, S>(&mut self, arena: &mut Arena<T, S>, slot: Slot)
    where
        K: LinkOf<T>,
        T: Copy + Default,
        S: DerefMut<Target = [T]>,
    {
        // Both halves are read separately, as neighbours wrote them: the processor forwards a store
        // only to a load that it covers.
        let link = K::link_mut(&mut arena[slot]);
        let (prev, next) = (link.prev, link.next);
        *link = Link::default();
        *self.link_after(arena, prev) = next;
        *self.link_before(arena, next) = prev;
    }

    /// Removes and returns the first entry, or [`NIL`].
    #[inline]
    pub fn pop_front<T, S>(&mut self, arena: &mut Arena<T, S>) -> Slot
    where
        K: LinkOf<T>,
        T: Copy + Default,
        S: DerefMut<Target = [T]>,
    {
        let head = self.head;
        let Some(entry) = arena.get_mut(head) else { return NIL };
        let next = K::link(entry).next;
        *K::link_mut(entry) = Link::default();
        *self.link_before(arena, next) = NIL;
        self.head = next;
        head
    }

    /// The entry after `slot`, or [`NIL`].
    #[inline]
    pub fn next<T, S>(&self, arena: &Arena<T, S>, slot: Slot) -> Slot
    where
        K: LinkOf<T>,
        T: Copy + Default,
        S: DerefMut<Target = [T]>,
    {
        K::link(&arena[slot]).next
    }

    /// The entry before `slot`, or [`NIL`].
    #[inline]
    pub fn prev<T, S>(&self, arena: &Arena<T, S>, slot: Slot) -> Slot
    where
        K: LinkOf<T>,
        T: Copy + Default,
        S: DerefMut<Target = [T]>,
    {
        K::link(&arena[slot]).prev
    }
}
