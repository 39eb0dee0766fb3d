//! Recordings as comma-separated values.

use super::{Line, Record, RecordingError};
use crate::command::{Access, Op};

/// The header line.
pub const HEADER: &str = "issue_us,op,sector,sectors,service_us";

/// Parses a recording whose first line is [`HEADER`]. Errors quote `file_name`.
///
/// Each line is a request: time of issue and service time in us, operation, and sectors. Times of
/// issue do not decrease and are counted from the first one. Empty lines are skipped.
///
/// # Errors
/// [`RecordingError`] for the first field that is missing, superfluous or invalid.
pub fn parse_csv(text: &str, file_name: &str) -> Result<Vec<Record>, RecordingError> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (index, header) = lines.next().unwrap_or((0, ""));
    let found: Vec<&str> = header.split(',').map(str::trim).collect();
    for (at, expected) in HEADER.split(',').enumerate() {
        if found.get(at) != Some(&expected) {
            let line = Line { file: file_name, number: index + 1, fields: &found };
            return Err(line.error(at + 1, "the header `issue_us,op,sector,sectors,service_us`"));
        }
    }
    let mut records: Vec<Record> = Vec::new();
    let (mut first_ns, mut before_ns) = (None, 0);
    for (index, text) in lines {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let line = Line { file: file_name, number: index + 1, fields: &fields };
        let issue_ns = line.time_ns(1)?;
        if issue_ns < before_ns {
            return Err(line.error(1, "no earlier than the line before"));
        }
        before_ns = issue_ns;
        let op = match line.field(2) {
            "R" => Op::Read,
            "W" => Op::Write,
            _ => return Err(line.error(2, "R or W")),
        };
        let (sector, sectors) = (line.sector(3)?, line.sectors(4)?);
        let service_ns = line.time_ns(5)?;
        if fields.len() > 5 {
            return Err(line.error(6, "the end of the line after five fields"));
        }
        let issue_ns = issue_ns - *first_ns.get_or_insert(issue_ns);
        records.push(Record { issue_ns, access: Access { op, sector, sectors }, service_ns });
    }
    Ok(records)
}

/// Parses a recording of either format: that of [`parse_csv`] if its first line has a comma, that
/// of [`super::parse`] otherwise.
///
/// # Errors
/// The errors of the two functions.
pub fn parse_any(text: &str, file_name: &str) -> Result<Vec<Record>, RecordingError> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    if first.contains(',') { parse_csv(text, file_name) } else { super::parse(text, file_name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_and_counted_from_the_first() {
        let text = "issue_us,op,sector,sectors,service_us\n\n100.5,R,16,8,6000\n 200 , W , 0 , 1 , 0.25\n";
        let records = parse_any(text, "t.csv").expect("a recording");
        let first = Access { op: Op::Read, sector: 16, sectors: 8 };
        let second = Access { op: Op::Write, sector: 0, sectors: 1 };
        assert_eq!(records[0], Record { issue_ns: 0, access: first, service_ns: 6_000_000 });
        assert_eq!(records[1], Record { issue_ns: 99_500, access: second, service_ns: 250 });
    }

    #[test]
    fn faults_name_line_and_field() {
        for (line, expected) in [
            ("1,R,16,8", "t:2: field 5 is ``: a time in microseconds, 0 to 86400000000"),
            ("1,X,16,8,5", "t:2: field 2 is `X`: R or W"),
            ("1,R,-1,8,5", "t:2: field 3 is `-1`: a sector number"),
            ("1,R,1,0,5", "t:2: field 4 is `0`: a number of sectors, at least 1"),
            ("1,R,1,1,5,6", "t:2: field 6 is `6`: the end of the line after five fields"),
            ("2,R,1,1,5\n1,R,1,1,5", "t:3: field 1 is `1`: no earlier than the line before"),
        ] {
            assert_eq!(parse_csv(&format!("{HEADER}\n{line}"), "t").expect_err(line).to_string(), expected);
        }
        let error = parse_any("time,op\n", "t").expect_err("another header").to_string();
        assert_eq!(error, "t:1: field 1 is `time`: the header `issue_us,op,sector,sectors,service_us`");
    }
}
