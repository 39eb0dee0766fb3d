//! PAX records of extended headers (POSIX.1-2001): `LENGTH KEY=VALUE\n`. The length includes its
//! own digits.

/// Appends a record. The value may contain any bytes, including newlines.
pub(super) fn append(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    // The space, the equals sign and the newline.
    let rest = key.len() + value.len() + 3;
    let mut length = rest + digits(rest);
    if digits(length) > digits(rest) {
        length += 1;
    }
    append_number(records, length as u64);
    records.push(b' ');
    records.extend_from_slice(key);
    records.push(b'=');
    records.extend_from_slice(value);
    records.push(b'\n');
}

/// Appends a record with a decimal number.
pub(super) fn append_decimal(records: &mut Vec<u8>, key: &[u8], value: u64) {
    let mut text = Vec::with_capacity(20);
    append_number(&mut text, value);
    append(records, key, &text);
}

/// Appends a record with a time: seconds since 1970 and nanoseconds. Half a second before the last
/// second of 1969 is `-1.5`.
pub(super) fn append_time(records: &mut Vec<u8>, key: &[u8], seconds: i64, ns: u32) {
    let (sign, whole, ns) = match (seconds < 0, ns) {
        (true, 0) => (true, seconds.unsigned_abs(), 0),
        // 0.5 s after -2 s is -1.5 s.
        (true, ns) => (true, seconds.unsigned_abs() - 1, 1_000_000_000 - ns),
        (false, ns) => (false, seconds.unsigned_abs(), ns),
    };
    let mut text = Vec::with_capacity(32);
    if sign {
        text.push(b'-');
    }
    append_number(&mut text, whole);
    if ns > 0 {
        text.push(b'.');
        let mut left = ns;
        let mut unit = 100_000_000;
        while left > 0 {
            text.push(b'0' + (left / unit) as u8);
            left %= unit;
            unit /= 10;
        }
    }
    append(records, key, &text);
}

/// Appends a number in decimal digits.
pub(super) fn append_number(text: &mut Vec<u8>, value: u64) {
    let mut digits = [0; 20];
    let mut begins = digits.len();
    let mut left = value;
    loop {
        begins -= 1;
        digits[begins] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[begins..]);
}

fn digits(value: usize) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str, value: &str) -> String {
        let mut records = Vec::new();
        append(&mut records, key.as_bytes(), value.as_bytes());
        String::from_utf8(records).unwrap()
    }

    fn time(seconds: i64, ns: u32) -> String {
        let mut records = Vec::new();
        append_time(&mut records, b"mtime", seconds, ns);
        String::from_utf8(records).unwrap()
    }

    #[test]
    fn the_length_counts_its_own_digits() {
        assert_eq!(record("a", "b"), "6 a=b\n");
        // 3 + 2 + 4 is 9 with one digit. One more byte makes 11, since 10 has two digits.
        assert_eq!(record("ab", "cde"), "9 ab=cde\n");
        assert_eq!(record("ab", "cdef"), "11 ab=cdef\n");
        for length in 0..1100 {
            let record = record("key", &"v".repeat(length));
            let length_field: usize = record.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(length_field, record.len());
        }
    }

    #[test]
    fn times_are_exact_to_the_nanosecond_before_1970_too() {
        assert_eq!(time(0, 0), "11 mtime=0\n");
        assert_eq!(time(1_700_000_000, 1), "30 mtime=1700000000.000000001\n");
        assert_eq!(time(3, 250_000_000), "14 mtime=3.25\n");
        assert_eq!(time(-2, 500_000_000), "14 mtime=-1.5\n");
        assert_eq!(time(-1, 0), "12 mtime=-1\n");
        assert_eq!(time(-1, 999_999_999), "22 mtime=-0.000000001\n");
    }
}
