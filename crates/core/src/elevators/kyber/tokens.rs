//! The tokens of one domain: as many requests of it may be in the device as there are.
//!
//! Tokens have numbers, since a domain's depth changes while they are out: after it has shrunk, those at or above the new depth
//! no longer count against it. The kernel keeps them in a map of bits, a quarter of the largest depth a word, and is lazy about
//! giving back: a token is only marked as freed, and free again when its word is found full. Which number is given out next
//! therefore depends on history; decisions show it when many tokens are out while the depth falls.

/// The words of the map.
const WORDS: usize = 4;

/// The tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    /// How many there are.
    depth: u32,
    /// A word has 2 to this power of them.
    shift: u32,
    /// Where the next one is looked for. The kernel begins at a random place, one for each CPU; this is one, and begins at 0.
    hint: u32,
    words: [Word; WORDS],
}

/// A bit a token.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// It is out, or marked as freed.
    taken: u64,
    /// It was given back.
    freed: u64,
}

impl Tokens {
    /// So many tokens, at most 256: a power of two of 4 or more.
    pub const fn new(depth: u32) -> Tokens {
        Tokens {
            depth,
            shift: (depth / WORDS as u32).trailing_zeros(),
            hint: 0,
            words: [Word { taken: 0, freed: 0 }; WORDS],
        }
    }

    /// How many there are.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Takes a token, if one is free.
    pub fn take(&mut self) -> Option<u32> {
        debug_assert!(self.depth > 0);
        if self.hint >= self.depth {
            self.hint = 0;
        }
        let words = self.words_in_use();
        let mut index = self.hint.wrapping_shr(self.shift);
        for _ in 0..words {
            if let Some(bit) = self.take_in(index) {
                let token = self.first_of(index).saturating_add(bit);
                debug_assert!(token < self.depth);
                if token == self.hint {
                    let after = token.saturating_add(1);
                    self.hint = if after >= self.depth.saturating_sub(1) { 0 } else { after };
                }
                return Some(token);
            }
            index = index.saturating_add(1);
            if index >= words {
                index = 0;
            }
        }
        self.hint = 0;
        None
    }

    /// Gives a token back.
    pub fn put(&mut self, token: u32) {
        let index = token.wrapping_shr(self.shift);
        let bit = 1u64.wrapping_shl(token.wrapping_sub(self.first_of(index)));
        if let Some(word) = self.words.get_mut(index as usize) {
            debug_assert!(word.taken & bit != 0 && word.freed & bit == 0, "token {token} is out");
            word.freed |= bit;
        }
        if token < self.depth {
            self.hint = token;
        }
    }

    /// Changes how many there are, up to the largest depth. Tokens that are out stay out.
    pub fn resize(&mut self, depth: u32) {
        let in_use = self.words_in_use() as usize;
        for word in self.words.iter_mut().take(in_use) {
            word.release();
        }
        self.depth = depth;
    }

    /// The lowest free one of a word.
    fn take_in(&mut self, index: u32) -> Option<u32> {
        let allowed = mask(self.depth.saturating_sub(self.first_of(index)).min(1u32.wrapping_shl(self.shift)));
        let word = self.words.get_mut(index as usize)?;
        if word.taken & allowed == allowed {
            word.release();
        }
        let free = !word.taken & allowed;
        if free == 0 {
            return None;
        }
        let bit = free.trailing_zeros();
        word.taken |= 1u64.wrapping_shl(bit);
        Some(bit)
    }

    /// The number of a word's first token.
    fn first_of(&self, index: u32) -> u32 {
        index.wrapping_shl(self.shift)
    }

    fn words_in_use(&self) -> u32 {
        let bits = 1u32.wrapping_shl(self.shift);
        self.depth.saturating_add(bits).saturating_sub(1).wrapping_shr(self.shift)
    }
}

impl Word {
    /// What was marked as freed is free.
    fn release(&mut self) {
        debug_assert_eq!(self.freed & !self.taken, 0, "only what was taken is freed");
        self.taken &= !self.freed;
        self.freed = 0;
    }
}

/// The lowest `bits` bits, of 64.
fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { 1u64.wrapping_shl(bits).wrapping_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_tokens_come_out_as_there_are() {
        let mut tokens = Tokens::new(128);
        let mut out: std::vec::Vec<u32> = core::iter::from_fn(|| tokens.take()).collect();
        assert_eq!(out.len(), 128);
        out.sort_unstable();
        assert!(out.iter().copied().eq(0..128), "each once");
        tokens.put(77);
        assert_eq!((tokens.take(), tokens.take()), (Some(77), None));
    }

    #[test]
    fn after_a_shrink_only_the_tokens_below_the_new_depth_count() {
        // 6 of 16 are out, 0 to 5; of the four that there are afterwards all are out, though 4 and 5 come back first.
        let mut tokens = Tokens::new(16);
        for token in 0..6 {
            assert_eq!(tokens.take(), Some(token));
        }
        tokens.resize(4);
        assert_eq!(tokens.take(), None);
        tokens.put(4);
        tokens.put(5);
        assert_eq!(tokens.take(), None);
        tokens.put(2);
        assert_eq!(tokens.take(), Some(2));
    }

    #[test]
    fn a_token_that_came_back_is_free_only_once_its_word_is_full() {
        // A word of four: 0 comes back, 1 to 3 go out before it does again.
        let mut tokens = Tokens::new(16);
        assert_eq!(tokens.take(), Some(0));
        tokens.put(0);
        assert_eq!([tokens.take(), tokens.take(), tokens.take()], [Some(1), Some(2), Some(3)]);
        assert_eq!(tokens.take(), Some(0));
    }
}
