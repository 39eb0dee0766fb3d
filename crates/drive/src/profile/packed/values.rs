//! The compact form of numbers, texts and lists.

use super::Packed;

/// Marks a number by its eight bytes, or as a quotient of two whole numbers. Lower marks are
/// numbers of decimals.
const EIGHT_BYTES: u8 = 255;
const QUOTIENT: u8 = 254;
/// The maximum number of decimals of a number: powers of ten up to 10^22 are exact, as numerators
/// up to 2^53 are, so that the division gives the nearest number.
const DECIMALS_MAX: u8 = 22;
const NUMERATOR_MAX: f64 = 9_007_199_254_740_992.0;
/// The largest divisor of a quotient, such as the sectors of a track.
const DIVISOR_MAX: u32 = 4096;

/// Takes the first `count` bytes.
fn bytes<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (bytes, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(bytes)
}

fn byte(from: &mut &[u8]) -> Option<u8> {
    u8::unpack(from)
}

/// Takes a length, and as many bytes.
pub(super) fn length_and_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::unpack(from)?;
    bytes(from, length)
}

impl Packed for u8 {
    fn pack(&self, to: &mut Vec<u8>) {
        to.push(*self);
    }

    fn unpack(from: &mut &[u8]) -> Option<u8> {
        let (first, rest) = from.split_first()?;
        *from = rest;
        Some(*first)
    }
}

/// Seven bits a byte, the lowest first; the highest bit of a byte says that another byte follows.
impl Packed for u64 {
    fn pack(&self, to: &mut Vec<u8>) {
        let mut rest = *self;
        while rest > 127 {
            to.push(rest as u8 | 128);
            rest >>= 7;
        }
        to.push(rest as u8);
    }

    fn unpack(from: &mut &[u8]) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = byte(from)?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }
}

macro_rules! narrow {
    ($($type:ty),*) => {
        $(impl Packed for $type {
            fn pack(&self, to: &mut Vec<u8>) {
                (*self as u64).pack(to);
            }

            fn unpack(from: &mut &[u8]) -> Option<$type> {
                u64::unpack(from)?.try_into().ok()
            }
        })*
    };
}

narrow!(u32, usize);

impl Packed for bool {
    fn pack(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn unpack(from: &mut &[u8]) -> Option<bool> {
        Some(byte(from)? != 0)
    }
}

/// Decimals or a quotient if that gives the same number to the bit, else the eight bytes.
impl Packed for f64 {
    fn pack(&self, to: &mut Vec<u8>) {
        let numerator = |divisor| exact_numerator(*self, divisor);
        let decimal = (0..=DECIMALS_MAX).find_map(|decimals| Some((decimals, numerator(power_of_ten(decimals))?)));
        let quotient = (2..=DIVISOR_MAX).find_map(|divisor| Some((divisor, numerator(f64::from(divisor))?)));
        match (decimal, quotient) {
            (Some((decimals, numerator)), quotient) if decimals < 9 || quotient.is_none() => {
                to.push(decimals);
                zigzag(numerator).pack(to);
            }
            (_, Some((divisor, numerator))) => {
                to.push(QUOTIENT);
                divisor.pack(to);
                zigzag(numerator).pack(to);
            }
            _ => {
                to.push(EIGHT_BYTES);
                to.extend_from_slice(&self.to_le_bytes());
            }
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<f64> {
        let divisor = match byte(from)? {
            EIGHT_BYTES => return Some(f64::from_le_bytes(bytes(from, 8)?.try_into().ok()?)),
            QUOTIENT => f64::from(u32::unpack(from)?),
            decimals => power_of_ten(decimals),
        };
        Some(unzigzag(u64::unpack(from)?) as f64 / divisor)
    }
}

/// A signed number as an unsigned one: small numbers stay small.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// The numerator of the quotient that is the number to the bit.
fn exact_numerator(number: f64, divisor: f64) -> Option<i64> {
    let product = (number * divisor).round();
    let numerator = product as i64;
    let is_exact = product.abs() < NUMERATOR_MAX && (numerator as f64 / divisor).to_bits() == number.to_bits();
    is_exact.then_some(numerator)
}

fn power_of_ten(exponent: u8) -> f64 {
    (0..exponent).fold(1.0, |power, _| power * 10.0)
}

impl Packed for String {
    fn pack(&self, to: &mut Vec<u8>) {
        self.len().pack(to);
        to.extend_from_slice(self.as_bytes());
    }

    fn unpack(from: &mut &[u8]) -> Option<String> {
        std::str::from_utf8(length_and_bytes(from)?).ok().map(str::to_owned)
    }
}

impl<T: Packed> Packed for Option<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.is_some().pack(to);
        if let Some(value) = self {
            value.pack(to);
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Option<T>> {
        Some(if bool::unpack(from)? { Some(T::unpack(from)?) } else { None })
    }
}

impl<T: Packed> Packed for Vec<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.len().pack(to);
        T::pack_list(self, to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Vec<T>> {
        let count = u64::unpack(from)?;
        T::unpack_list(count, from)
    }
}

impl<T: Packed> Packed for Box<T> {
    fn pack(&self, to: &mut Vec<u8>) {
        self.as_ref().pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<Box<T>> {
        T::unpack(from).map(Box::new)
    }
}

/// A sector, or a distance in cylinders, with its value.
impl Packed for (u64, u32) {
    fn pack(&self, to: &mut Vec<u8>) {
        self.0.pack(to);
        self.1.pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<(u64, u32)> {
        Some((u64::unpack(from)?, u32::unpack(from)?))
    }
}

/// Lists are the differences of the first values, and then those of the second ones if all are
/// numbers of as many decimals.
impl Packed for (u32, f64) {
    fn pack(&self, to: &mut Vec<u8>) {
        self.0.pack(to);
        self.1.pack(to);
    }

    fn unpack(from: &mut &[u8]) -> Option<(u32, f64)> {
        Some((u32::unpack(from)?, f64::unpack(from)?))
    }

    fn pack_list(list: &[(u32, f64)], to: &mut Vec<u8>) {
        let mut firsts = Difference::default();
        list.iter().for_each(|(first, _)| firsts.pack(i64::from(*first), to));
        let numerators = |decimals: u8| -> Option<Vec<i64>> {
            list.iter().map(|(_, second)| exact_numerator(*second, power_of_ten(decimals))).collect()
        };
        match (0..=DECIMALS_MAX).find_map(|decimals| Some((decimals, numerators(decimals)?))) {
            Some((decimals, numerators)) => {
                to.push(decimals);
                let mut seconds = Difference::default();
                numerators.into_iter().for_each(|numerator| seconds.pack(numerator, to));
            }
            None => {
                to.push(EIGHT_BYTES);
                list.iter().for_each(|(_, second)| second.pack(to));
            }
        }
    }

    fn unpack_list(count: u64, from: &mut &[u8]) -> Option<Vec<(u32, f64)>> {
        let mut firsts = Difference::default();
        let mut list = Vec::new();
        for _ in 0..count {
            list.push((u32::try_from(firsts.unpack(from)?).ok()?, 0.0));
        }
        let (decimals, mut seconds) = (byte(from)?, Difference::default());
        for (_, second) in &mut list {
            *second = match decimals {
                EIGHT_BYTES => f64::unpack(from)?,
                decimals => seconds.unpack(from)? as f64 / power_of_ten(decimals),
            };
        }
        Some(list)
    }
}

/// The value before, of which the next one is the sum with a small number.
#[derive(Default)]
pub(super) struct Difference(i64);

impl Difference {
    pub(super) fn pack(&mut self, value: i64, to: &mut Vec<u8>) {
        zigzag(value.wrapping_sub(self.0)).pack(to);
        self.0 = value;
    }

    pub(super) fn unpack(&mut self, from: &mut &[u8]) -> Option<i64> {
        self.0 = self.0.wrapping_add(unzigzag(u64::unpack(from)?));
        Some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(value: &impl Packed) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.pack(&mut bytes);
        bytes
    }

    fn again<T: Packed>(value: &T) -> T {
        let bytes = packed(value);
        let mut rest = &bytes[..];
        let value = T::unpack(&mut rest).expect("a value");
        assert!(rest.is_empty());
        value
    }

    #[test]
    fn numbers_keep_every_bit() {
        for whole in [0, 1, 127, 128, 1 << 35, u64::MAX] {
            assert_eq!(again(&whole), whole);
        }
        let numbers = [0.0, -0.0, 1.0, -2.5, 0.1, 8_333_333.333_333_333, 1.0 / 3.0, 12.345 / 567.0, 1e300, 5e-324];
        for number in numbers.into_iter().chain([f64::INFINITY, f64::MAX, -1.0 / 7.0]) {
            assert_eq!(again(&number).to_bits(), number.to_bits(), "{number}");
        }
        assert_eq!(packed(&0.25), [2, 50]);
        assert_eq!(packed(&(56.0 / 567.0)), [QUOTIENT, 81, 16], "8/81");
    }

    #[test]
    fn lists_and_texts_stay() {
        let value = vec![Some("ä".to_owned()), None];
        assert_eq!(again(&value), value);
        let decimals = vec![(1, 0.5), (3, 0.75), (2, -1.0)];
        assert_eq!(again(&decimals), decimals);
        let quotients = vec![(u32::MAX, 1.0 / 3.0), (0, f64::INFINITY)];
        assert_eq!(again(&quotients), quotients);
    }

    #[test]
    fn damaged_bytes_are_no_value() {
        assert_eq!(u64::unpack(&mut &[128u8; 11][..]), None);
        assert_eq!(u32::unpack(&mut &packed(&(1u64 << 32))[..]), None);
        assert_eq!(String::unpack(&mut &[2u8, b'a'][..]), None);
        assert_eq!(String::unpack(&mut &[1u8, 255][..]), None);
        assert_eq!(Vec::<f64>::unpack(&mut &packed(&u64::MAX)[..]), None);
    }
}
