//! Parsing and printing of sizes, times and rates.

use hoistway_fio::units::{
    KbBase, Prefixes, TimeUnit, UnitError, human_iops, human_rate, human_size, parse_size, parse_time_ns, print_size,
    print_time,
};
use proptest::prelude::*;

#[test]
fn prefixes_are_powers_of_two_unless_the_base_is_standard() {
    for (text, compatible, standard) in [
        ("4096", 4096, 4096),
        ("4096b", 4096, 4096),
        ("4k", 4096, 4000),
        ("4kb", 4096, 4000),
        ("4KB", 4096, 4000),
        ("4ki", 4000, 4096),
        ("4KiB", 4000, 4096),
        ("1m", 1 << 20, 1_000_000),
        ("1mi", 1_000_000, 1 << 20),
        ("1g", 1 << 30, 1_000_000_000),
        ("1gib", 1_000_000_000, 1 << 30),
        ("1t", 1 << 40, 1_000_000_000_000),
        ("1p", 1 << 50, 1_000_000_000_000_000),
        ("1pi", 1_000_000_000_000_000, 1 << 50),
        ("0x1000", 4096, 4096),
        ("0X10k", 16_384, 16_000),
        (" 4k ", 4096, 4000),
    ] {
        assert_eq!(parse_size(text, KbBase::Compatible), Ok(compatible), "{text}");
        assert_eq!(parse_size(text, KbBase::Standard), Ok(standard), "{text}");
    }
}

#[test]
fn the_letter_b_of_a_hexadecimal_number_is_a_digit() {
    assert_eq!(parse_size("0x1b", KbBase::Compatible), Ok(27));
}

#[test]
fn times_have_units_of_either_case() {
    for (text, ns) in [
        ("7", 7_000_000_000),
        ("7s", 7_000_000_000),
        ("7sec", 7_000_000_000),
        ("7S", 7_000_000_000),
        ("7ms", 7_000_000),
        ("7msec", 7_000_000),
        ("7us", 7_000),
        ("7USEC", 7_000),
        ("7m", 420_000_000_000),
        ("7M", 420_000_000_000),
        ("7h", 25_200_000_000_000),
        ("7d", 604_800_000_000_000),
    ] {
        assert_eq!(parse_time_ns(text, TimeUnit::Seconds), Ok(ns), "{text}");
    }
    assert_eq!(parse_time_ns("7", TimeUnit::Microseconds), Ok(7_000));
}

#[test]
fn values_that_are_no_numbers_have_different_errors() {
    let size = |text| parse_size(text, KbBase::Compatible).expect_err(text);
    assert_eq!(size(""), UnitError::Empty);
    assert_eq!(size("-1"), UnitError::Negative("-1".into()));
    assert_eq!(size("x"), UnitError::NotANumber("x".into()));
    assert_eq!(size("1.5"), UnitError::Fraction("1.5".into()));
    assert_eq!(size("(1)"), UnitError::Expression("(1)".into()));
    assert!(matches!(size("18446744073709551616"), UnitError::TooLarge { .. }));
    assert_eq!(parse_size("18446744073709551615", KbBase::Compatible), Ok(u64::MAX));
    assert!(matches!(size("16384p"), UnitError::TooLarge { text, .. } if text == "16384p"));
    assert!(matches!(size("1ms"), UnitError::Unit { kind: "size", .. }));
    assert!(matches!(parse_time_ns("1k", TimeUnit::Seconds), Err(UnitError::Unit { kind: "time", .. })));
}

#[test]
fn reports_show_figures_as_fio_shows_them() {
    // Each pair was printed by fio 3.33 for a job of so many bytes.
    for (bytes, binary, decimal) in [
        (1, "1B", "1B"),
        (1_023, "1023B", "1023B"),
        (9_999, "9999B", "9999B"),
        (10_240, "10.0KiB", "10.2kB"),
        (102_400, "100KiB", "102kB"),
        (1_023_999, "1000KiB", "1024kB"),
        (1_048_575, "1024KiB", "1049kB"),
        (1_500_000, "1465KiB", "1500kB"),
        (10_737_418, "10.2MiB", "10.7MB"),
        (107_374_182, "102MiB", "107MB"),
        (1_073_741_824, "1024MiB", "1074MB"),
    ] {
        assert_eq!(human_size(bytes, Prefixes::Binary), binary);
        assert_eq!(human_size(bytes, Prefixes::Decimal), decimal);
    }
    assert_eq!(human_rate(1_000_000), "977KiB/s (1000kB/s)");
    assert_eq!(human_rate(10_240_000), "9.77MiB/s (10.2MB/s)");
    assert_eq!(human_iops(6_000), "6000");
    assert_eq!(human_iops(999_000), "999k");
    assert_eq!(human_iops(8_333_250), "8333k");
    assert_eq!(human_size(u64::MAX, Prefixes::Binary), "16.0EiB");
}

proptest! {
    #[test]
    fn printed_sizes_are_read_back(bytes: u64) {
        prop_assert_eq!(parse_size(&print_size(bytes), KbBase::Compatible), Ok(bytes));
    }

    #[test]
    fn round_sizes_are_printed_short_and_read_back(count in 1u64..1024, shift in 0u32..50) {
        let bytes = count << shift;
        let printed = print_size(bytes);
        prop_assert_eq!(parse_size(&printed, KbBase::Compatible), Ok(bytes));
        prop_assert!(printed.len() <= 8, "{} is not short", printed);
    }

    #[test]
    fn printed_times_are_read_back(us in 0u64..=u64::MAX / 1_000) {
        prop_assert_eq!(parse_time_ns(&print_time(us * 1_000), TimeUnit::Seconds), Ok(us * 1_000));
    }

    #[test]
    fn arbitrary_text_does_not_panic_in_units(text in "[-0-9a-zA-Z.()x$ ]{0,24}|\\PC*") {
        let _ = parse_size(&text, KbBase::Standard);
        let _ = parse_time_ns(&text, TimeUnit::Microseconds);
    }

    #[test]
    fn figures_keep_at_most_four_digits(bytes: u64) {
        for prefixes in [Prefixes::Binary, Prefixes::Decimal] {
            let printed = human_size(bytes, prefixes);
            let digits = printed.chars().filter(char::is_ascii_digit).count();
            // 9.999 with two decimals is 10.00, as in fio; and 9999.5 of a prefix is 10000.
            prop_assert!((1..=5).contains(&digits), "{}", printed);
        }
    }
}
