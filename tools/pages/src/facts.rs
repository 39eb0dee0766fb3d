//! Facts that several pages state: each is generated from one source.
//!
//! - the recorded decisions: from the part `recordings` of docs/conformance.md, which
//!   `hoistway conform` made
//! - the published results: from the summary of docs/reproduced.md, which `hoistway reproduce` made
//! - the elevators that serve and mount use by default: from the crate `config`
//! - the sizes of crates: from the law that checks them

use anyhow::{Context, Result, bail};
use hoistway_config::default_elevators;
use hoistway_workspace::parts;

use super::CONFORMANCE;

const ELEVATORS: &str = "docs/elevators.md";
const REPRODUCED: &str = "docs/reproduced.md";
const LIMITATIONS: &str = "docs/limitations.md";
/// The elevator that no kernel has and no publication specifies.
const OWN: &str = "paternoster";

/// The parts of pages that state the facts: page, name of the part, and the text.
pub fn parts() -> Result<Vec<(&'static str, &'static str, String)>> {
    let decisions = Decisions::parse(parts::of(CONFORMANCE, &parts::read_page(CONFORMANCE)?, "recordings")?)?;
    let results = Results::parse(&parts::read_page(REPRODUCED)?)?;
    let elevators = with_proofs(parts::of(ELEVATORS, &parts::read_page(ELEVATORS)?, "elevators")?, &decisions)?;
    Ok(vec![
        (
            "README.md",
            "facts",
            format!("{}\n{}", decisions.sentences("docs/conformance.md"), results.sentences("docs/reproduced.md")),
        ),
        (
            LIMITATIONS,
            "decisions",
            format!("- **Decisions**: {}", decisions.sentences("conformance.md").replace('\n', " ")),
        ),
        (
            LIMITATIONS,
            "results",
            format!("- **Published results**: {}", results.sentences("reproduced.md").replace('\n', " ")),
        ),
        (
            LIMITATIONS,
            "defaults",
            format!(
                "- **`{OWN}`**, which no kernel has, was measured in the simulator ([arena](arena.md)) and on emulated drives in real time ([server](serve-benchmarks.md#shares-of-a-device), [mount](mount-benchmarks.md#a-reader-beside-copies)), never on a physical disk. In a guest's kernel its decisions were checked, not its speed. {}",
                defaults()
            ),
        ),
        ("docs/serve-devices.md", "default elevator", defaults()),
        ("docs/elevators/paternoster.md", "default elevator", defaults()),
        (ELEVATORS, "elevators", elevators),
        (ELEVATORS, "decisions", decisions.sentences("conformance.md")),
    ])
}

/// States which elevators the commands use by default.
fn defaults() -> String {
    let [rotating, other] = default_elevators();
    format!(
        "`hoistway serve` and `hoistway mount` use `{rotating}` by default where the device rotates (a rotating disk, or \
         the model of one), and `{other}` with groups elsewhere."
    )
}

/// The recorded decisions of the kernels.
#[derive(Debug, PartialEq, Eq)]
struct Decisions {
    scenarios: String,
    identical: String,
    decisions: String,
    /// Each elevator with recordings, the kernel, and the numbers of identical and of all
    /// scenarios, in the order of the page.
    recorded: Vec<(String, String, u32, u32)>,
    /// The elevators without recordings.
    unrecorded: Vec<String>,
}

impl Decisions {
    /// Parses the counts that `hoistway conform --markdown` prints.
    fn parse(part: &str) -> Result<Decisions> {
        let head =
            part.lines().find(|line| line.contains("scenarios are identical")).context("no line of all scenarios")?;
        let words: Vec<&str> = head.split(' ').collect();
        let [identical, "of", scenarios, "scenarios", "are", "identical;", "they", "hold", decisions, "decisions."] =
            words[..]
        else {
            bail!("`{head}` does not count scenarios and decisions");
        };
        let rest = part
            .lines()
            .find_map(|line| line.strip_prefix("No recording is for "))
            .context("no line of elevators without recordings")?;
        let unrecorded = quoted(rest.split(':').next().unwrap_or_default());
        let rows = part.lines().filter(|line| line.starts_with("| linux-"));
        let recorded = rows.map(recorded).collect::<Result<_>>()?;
        let own = str::to_owned;
        Ok(Decisions {
            scenarios: own(scenarios),
            identical: own(identical),
            decisions: own(decisions),
            recorded,
            unrecorded,
        })
    }

    /// The elevators with recordings, each once.
    fn elevators(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, ..) in &self.recorded {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// States what is proven by recordings, and what is not; `page` is the link to the counts.
    fn sentences(&self, page: &str) -> String {
        let Decisions { scenarios, identical, decisions, .. } = self;
        let count =
            if identical == scenarios { format!("All {scenarios}") } else { format!("{identical} of {scenarios}") };
        let (proven, others) = (self.elevators().len(), self.unrecorded.len());
        let specified: Vec<String> =
            self.unrecorded.iter().filter(|name| *name != OWN).map(|name| format!("`{name}`")).collect();
        let (last, first) = specified
            .split_last()
            .map_or((String::new(), String::new()), |(last, first)| (last.clone(), first.join(", ")));
        format!(
            "{count} recorded scenarios of the kernels' scheduler code, with {decisions} decisions, come out identical ([conformance]({page})).\n\
             They cover {proven} of the {} elevators. {first} and {last} follow published specifications only, and `{OWN}` is hoistway's own.",
            proven + others
        )
    }

    /// The last column of docs/elevators.md for an elevator.
    fn proof(&self, elevator: &str) -> String {
        if elevator == OWN {
            return "no kernel has it".to_owned();
        }
        let mut kernels: Vec<(&str, u32, u32)> = Vec::new();
        for (_, kernel, identical, all) in self.recorded.iter().filter(|(name, ..)| name == elevator) {
            match kernels.iter_mut().find(|(known, ..)| known == kernel) {
                Some((_, of, total)) => (*of, *total) = (*of + identical, *total + all),
                None => kernels.push((kernel, *identical, *all)),
            }
        }
        let of = |(kernel, identical, all): &(&str, u32, u32)| format!("{identical} of {all} ({kernel})");
        match kernels[..] {
            [] => "by specification only".to_owned(),
            _ => kernels.iter().map(of).collect::<Vec<_>>().join(", "),
        }
    }
}

/// Parses a row such as `| linux-4.19 cfq (groups) | `cfq` | 300 / 300 | 65,796 |`.
fn recorded(row: &str) -> Result<(String, String, u32, u32)> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let parsed = || {
        let kernel = cells.first()?.split(' ').next()?.strip_prefix("linux-")?;
        let elevator = quoted(cells.get(1)?).into_iter().next()?;
        let (identical, all) = cells.get(2)?.split_once(" / ")?;
        let number = |text: &str| text.replace(',', "").parse().ok();
        Some((elevator, kernel.to_owned(), number(identical)?, number(all)?))
    };
    parsed().with_context(|| format!("`{row}` is no row of recordings"))
}

/// The names between backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Replaces the last column of the table of elevators.
fn with_proofs(table: &str, decisions: &Decisions) -> Result<String> {
    let mut text = String::new();
    let mut seen = 0;
    for line in table.trim().lines() {
        let name = quoted(line).into_iter().next();
        match (name, line.trim_end_matches(['|', ' ']).rsplit_once('|')) {
            (Some(name), Some((before, _))) => {
                text.push_str(&format!("{before}| {} |\n", decisions.proof(&name)));
                seen += 1;
            }
            _ => text.push_str(&format!("{line}\n")),
        }
    }
    let elevators = decisions.elevators().len() + decisions.unrecorded.len();
    if seen != elevators {
        bail!("{ELEVATORS} has {seen} elevators and {CONFORMANCE} {elevators}");
    }
    Ok(text)
}

/// The published results that are reproduced.
#[derive(Debug, PartialEq, Eq)]
struct Results {
    /// Rows with a number: reproduced, all, and decided by an unpublished value.
    numbers: [u32; 3],
    /// Figures of these rows within tolerance, and all.
    figures: [u32; 2],
    /// Rows with an order or a rule: reproduced, all, and decided by an unpublished value.
    orders: [u32; 3],
}

impl Results {
    /// Parses the summary that `hoistway reproduce --page` writes.
    fn parse(page: &str) -> Result<Results> {
        let line =
            page.lines().find(|line| line.starts_with("**Numbers: ")).context("docs/reproduced.md has no summary")?;
        let mut numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok());
        let mut next = || numbers.next().with_context(|| format!("`{line}` lacks a number"));
        let (first, figures) = ([next()?, next()?, next()?], [next()?, next()?]);
        Ok(Results { numbers: first, figures, orders: [next()?, next()?, next()?] })
    }

    /// States what is reproduced; `page` is the link to the rows.
    fn sentences(&self, page: &str) -> String {
        let Results { numbers, figures, orders } = self;
        format!(
            "Of the published results that state a number, {} of {} are reproduced ({} of {} figures within tolerance); of those that state orders or rules, {} of {} ([reproduced]({page})).\n\
             Of the results that differ, {} with a number and {} with an order or a rule match if a parameter that the publication does not state is changed. They are not counted as reproduced.",
            numbers[0], numbers[1], figures[0], figures[1], orders[0], orders[1], numbers[2], orders[2]
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str = "1,200 of 1,200 scenarios are identical; they hold 9,001 decisions.\n\n\
        | recorded from | elevator | identical | decisions |\n|---|---|---|---|\n\
        | linux-4.19 noop | `noop` | 480 / 480 | 1 |\n\
        | linux-4.19 cfq | `cfq`, `groups` 0 | 420 / 420 | 2 |\n\
        | linux-4.19 cfq (groups) | `cfq` | 300 / 300 | 3 |\n\n\
        No recording is for `linus`, `sfq`, `paternoster`: they follow their specifications only.\n";

    #[test]
    fn counts_of_decisions_are_stated_alike_on_every_page() {
        let decisions = Decisions::parse(PART).expect("counts");
        assert_eq!(
            decisions.sentences("c.md"),
            "All 1,200 recorded scenarios of the kernels' scheduler code, with 9,001 decisions, come out identical \
             ([conformance](c.md)).\nThey cover 2 of the 5 elevators. `linus` and `sfq` follow published specifications \
             only, and `paternoster` is hoistway's own."
        );
        let table = "| name | idea | identical |\n|---|---|---|\n| [`linus`](l.md) | a | old |\n| [`noop`](n.md) | b | old |\n\
                     | [`sfq`](s.md) | c | old |\n| [`cfq`](c.md) | d | 1 of 2 |\n| [`paternoster`](p.md) | e | old |\n";
        let new = with_proofs(table, &decisions).expect("all elevators");
        assert!(new.contains("| [`cfq`](c.md) | d | 720 of 720 (4.19) |\n"), "{new}");
        assert!(new.contains("| c | by specification only |\n") && new.contains("| e | no kernel has it |\n"), "{new}");
        assert_eq!(with_proofs(&new, &decisions).expect("still"), new);
        assert!(with_proofs(&table.replace("| [`sfq`](s.md) | c | old |\n", ""), &decisions).is_err());
        assert!(Decisions::parse(&PART.replace("they hold", "with")).is_err());
    }

    #[test]
    fn published_results_are_read_from_their_summary() {
        let page = "# P\n\n**Numbers: 21 of 51 rows reproduced, 9 more decided by an unpublished value (458 of 602 figures \
                    within tolerance). Orders and rules: 28 of 34, 4 more decided by an unpublished value. Outside: 7.**\n";
        let results = Results::parse(page).expect("a summary");
        assert_eq!(results, Results { numbers: [21, 51, 9], figures: [458, 602], orders: [28, 34, 4] });
        assert!(results.sentences("r.md").contains("21 of 51 are reproduced (458 of 602 figures within tolerance)"));
        assert!(Results::parse("# P\n").is_err() && Results::parse("**Numbers: 21 of**\n").is_err());
    }

    #[test]
    fn a_page_that_states_another_number_is_not_current() {
        for (page, name, text) in parts().expect("the pages have their parts") {
            let old = parts::read_page(page).expect("a page");
            assert_eq!(parts::with(page, &old, name, &text).expect("a part"), old, "{page}: {name}");
            let other = parts::with(page, &old, name, &format!("{text} 7,331")).expect("a part");
            assert!(super::super::first_difference(&other, &old).is_some(), "{page}: {name}");
        }
    }
}
