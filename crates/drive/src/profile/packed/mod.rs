//! The compact form of the built-in profiles: the checked values of all fields, one after the
//! other, without names.
//!
//! `profiles/packed.bin` has it, so that a program that reads no drive files needs neither their
//! text nor the reader of TOML. `cargo xtask pages write` writes it from the drive files.

mod fields;
mod values;

/// A value with a compact form.
pub(crate) trait Packed: Sized {
    /// Appends the value.
    fn pack(&self, to: &mut Vec<u8>);

    /// Reads the value from the start of `from`, which then begins after it; `None` if there
    /// is no such value.
    fn unpack(from: &mut &[u8]) -> Option<Self>;

    /// Appends the values of a list. Lists of rows that resemble the row before have a shorter form
    /// than their rows have.
    fn pack_list(list: &[Self], to: &mut Vec<u8>) {
        list.iter().for_each(|value| value.pack(to));
    }

    /// Reads `count` values that [`Packed::pack_list`] appended.
    fn unpack_list(count: u64, from: &mut &[u8]) -> Option<Vec<Self>> {
        (0..count).map(|_| Self::unpack(from)).collect()
    }
}

/// Appends a value with its length.
pub(crate) fn pack_block(value: &impl Packed, to: &mut Vec<u8>) {
    let mut block = Vec::new();
    value.pack(&mut block);
    block.len().pack(to);
    to.append(&mut block);
}

/// Reads the value of block `index`; `None` if there is no such block, or it is invalid.
pub(crate) fn unpack_block<T: Packed>(mut blocks: &[u8], index: usize) -> Option<T> {
    for _ in 0..index {
        values::length_and_bytes(&mut blocks)?;
    }
    let mut block = values::length_and_bytes(&mut blocks)?;
    let value = T::unpack(&mut block)?;
    block.is_empty().then_some(value)
}
