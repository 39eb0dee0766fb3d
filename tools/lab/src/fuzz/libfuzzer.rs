//! The output of libFuzzer.

/// The figures of a run; `None` for those that were not printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub runs: Option<u64>,
    /// Edges of the control flow that the corpus covers.
    pub edges: Option<u64>,
    /// Inputs that covered something new and were added to the corpus.
    pub new_inputs: Option<u64>,
}

impl Statistics {
    /// Reads the figures from the output of a run with `-print_final_stats=1`.
    pub fn of(output: &str) -> Statistics {
        let last = |name: &str| output.lines().rev().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Statistics {
            runs: last("stat::number_of_executed_units:"),
            edges: output.lines().rev().find_map(edges),
            new_inputs: last("stat::new_units_added:"),
        }
    }
}

/// Reads the covered edges from a status line such as
/// "#65536 pulse  cov: 2710 ft: 11391 corp: 1288/207Kb lim: 4096 exec/s: 10922 rss: 76Mb".
fn edges(line: &str) -> Option<u64> {
    let mut words = line.strip_prefix('#')?.split_whitespace();
    words.find(|word| *word == "cov:")?;
    words.next()?.parse().ok()
}

/// Returns the file to which a run wrote the input that failed.
pub fn failing_input(output: &str) -> Option<&str> {
    // A slow input has a file too, but does not end the run.
    let mut paths = output.lines().filter_map(|line| Some(line.split_once("Test unit written to ")?.1.trim()));
    paths.rfind(|path| !path.contains("/slow-unit-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_last_status_line_and_of_the_final_statistics() {
        let output = "#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 30Mb\n\
            #1000000\tDONE   cov: 97 ft: 120 corp: 5/9b lim: 4 exec/s: 200 rss: 31Mb\n\
            Done 400 runs in 2 second(s)\n\
            stat::number_of_executed_units: 400\n\
            stat::average_exec_per_sec:     200\n\
            stat::new_units_added:          4\n";
        let expected = Statistics { runs: Some(400), edges: Some(97), new_inputs: Some(4) };
        assert_eq!(Statistics::of(output), expected);
        assert_eq!(Statistics::of("thread panicked"), Statistics::default());
    }

    #[test]
    fn input_of_a_finding_is_found_and_a_slow_one_is_none() {
        let slow = "artifact_prefix='a/'; Test unit written to a/slow-unit-1\n";
        assert_eq!(failing_input(slow), None);
        let output = format!("{slow}artifact_prefix='a/'; Test unit written to a/crash-2\nBase64: AA==\n");
        assert_eq!(failing_input(&output), Some("a/crash-2"));
    }
}
