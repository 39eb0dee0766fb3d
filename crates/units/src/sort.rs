//! A stable sort whose code all types share: the standard library's sorts are compiled anew for
//! every type and every key, in 4 KB each.

/// Sorts by a whole number; elements with equal keys keep their order.
///
/// ```
/// let mut words = ["bcd", "a", "xyz", "cd"];
/// hoistway_units::sort::by_key(&mut words, |word| word.len() as u64);
/// assert_eq!(words, ["a", "cd", "bcd", "xyz"]);
/// ```
pub fn by_key<T>(elements: &mut [T], key: impl Fn(&T) -> u64) {
    let mut sources: Vec<(u64, u64)> = elements.iter().map(key).zip(0..).collect();
    // Positions differ, so that the order is that of a stable sort.
    sources.sort_unstable();
    for start in 0..sources.len() {
        // Elements move along a cycle of positions; each source is followed once.
        let mut position = start;
        while let Some((_, source)) = sources.get_mut(position) {
            let next = std::mem::replace(source, position as u64) as usize;
            if next == start || next == position {
                break;
            }
            elements.swap(position, next);
            position = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_a_stable_sort() {
        let mut state = 1u64;
        for count in 0..300 {
            let mut elements: Vec<(u64, u32)> = (0..count)
                .map(|index| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (state >> 58, index)
                })
                .collect();
            let mut expected = elements.clone();
            expected.sort_by_key(|element| element.0);
            by_key(&mut elements, |element| element.0);
            assert_eq!(elements, expected);
        }
    }
}
