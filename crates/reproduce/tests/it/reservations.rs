//! Rows on reservations. The figures are those of docs/reproduced.md.

use std::sync::atomic::AtomicBool;

use hoistway_reproduce::{Verdict, reproduce, select};

#[test]
fn rows_on_isolation_and_on_unused_reservations_are_reproduced() {
    let names = ["S3-06", "S3-07", "S3-08", "S3-09"].map(str::to_owned);
    let rows = select(&names).expect("rows of published results");
    for result in reproduce(&rows, &|_| {}, &AtomicBool::new(false)).expect("runs") {
        assert_eq!(result.verdict, Verdict::Reproduced, "{}: {}", result.row.id, result.why());
    }
}
