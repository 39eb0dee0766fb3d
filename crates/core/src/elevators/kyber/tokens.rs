//! The tokens of one domain, which limit its requests in the device.
//!
//! Tokens have numbers, because the depth changes while tokens are in use: after it has shrunk,
//! tokens with numbers from the new depth on no longer count. The kernel keeps them in a bitmap of
//! four words and frees lazily: a returned token is only marked, and is free again when its word is
//! found full. The next number therefore depends on the history; decisions show it when many tokens
//! are in use while the depth falls.

use crate::collections::Count;

/// The words of the bitmap.
const WORDS: usize = 4;

/// The tokens of a domain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    /// The number of tokens.
    depth: u32,
    /// The binary logarithm of the number of tokens per word.
    shift: u32,
    /// The position at which the search starts. The kernel starts at a random position per CPU;
    /// here there is one, and it starts at 0.
    hint: u32,
    words: [Word; WORDS],
}

/// One bit per token.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// In use, or marked as freed.
    taken: u64,
    /// Marked as freed.
    freed: u64,
}

impl Tokens {
    /// Creates this many tokens: a power of two from 4 to 256.
    pub const fn new(depth: u32) -> Tokens {
        Tokens {
            depth,
            shift: (depth / WORDS as u32).trailing_zeros(),
            hint: 0,
            words: [Word { taken: 0, freed: 0 }; WORDS],
        }
    }

    /// The number of tokens.
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
            if let Some(bit) = self.take_from_word(index) {
                let token = self.first_of(index).saturating_add(bit);
                debug_assert!(token < self.depth);
                if token == self.hint {
                    let after = token.saturating_add(1);
                    self.hint = if after >= self.depth.saturating_sub(1) { 0 } else { after };
                }
                return Some(token);
            }
            index.increment();
            if index >= words {
                index = 0;
            }
        }
        self.hint = 0;
        None
    }

    /// Returns a token.
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

    /// Changes the number of tokens, up to the maximum depth. Tokens in use stay in use.
    pub fn resize(&mut self, depth: u32) {
        let in_use = self.words_in_use() as usize;
        for word in self.words.iter_mut().take(in_use) {
            word.release();
        }
        self.depth = depth;
    }

    /// Takes the lowest free token of a word.
    fn take_from_word(&mut self, index: u32) -> Option<u32> {
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
    /// Frees the tokens marked as freed.
    fn release(&mut self) {
        debug_assert_eq!(self.freed & !self.taken, 0, "only taken tokens are freed");
        self.taken &= !self.freed;
        self.freed = 0;
    }
}

/// The lowest `bits` bits of 64.
fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { 1u64.wrapping_shl(bits).wrapping_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_tokens_can_be_taken_as_exist() {
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
        // 6 of 16 are in use, 0 to 5; of the four afterwards all are in use, although 4 and 5 are
        // returned first.
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
    fn a_returned_token_is_free_only_when_its_word_is_full() {
        // A word of four: 0 is returned, and 1 to 3 are taken before 0 is taken again.
        let mut tokens = Tokens::new(16);
        assert_eq!(tokens.take(), Some(0));
        tokens.put(0);
        assert_eq!([tokens.take(), tokens.take(), tokens.take()], [Some(1), Some(2), Some(3)]);
        assert_eq!(tokens.take(), Some(0));
    }
}
