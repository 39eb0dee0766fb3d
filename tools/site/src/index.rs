//! The index of the search: which section of which page has which word.
//!
//! It is a script that calls `hoistwaySearchIndex`, because pages that are opened as files may load
//! scripts but no data. Words are lower case and sorted, so that the search finds all words with a
//! beginning. Numbers of tables are left out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The weight of a word in a title, in a term of the glossary, in a heading, and its largest weight
/// in text. A term outweighs a section whose heading, text and title all have the word (12).
const IN_TITLE: u32 = 12;
const IN_TERM: u32 = 13;
const IN_HEADING: u32 = 6;
const IN_TEXT_MAX: u32 = 4;
/// The length of the text that a result shows.
const EXCERPT: usize = 150;

/// The index while it grows.
#[derive(Default)]
pub struct Index {
    sections: Vec<Value>,
    words: BTreeMap<String, BTreeMap<usize, u32>>,
}

impl Index {
    /// Adds a section of a page. `heading` is empty for the text at the top of the page.
    pub fn add(&mut self, address: &str, title: &str, heading: &str, text: &str) {
        self.add_weighted(address, title, heading, text, IN_HEADING);
    }

    /// Adds a term of a glossary with its meaning.
    pub fn add_term(&mut self, address: &str, title: &str, term: &str, meaning: &str) {
        self.add_weighted(address, title, term, meaning, IN_TERM);
    }

    fn add_weighted(&mut self, address: &str, title: &str, heading: &str, text: &str, in_heading: u32) {
        let number = self.sections.len();
        let mut weights: BTreeMap<String, u32> = BTreeMap::new();
        for word in words(text) {
            let weight = weights.entry(word).or_insert(0);
            *weight = (*weight + 1).min(IN_TEXT_MAX);
        }
        for word in words(heading) {
            *weights.entry(word).or_insert(0) += in_heading;
        }
        for word in words(title) {
            *weights.entry(word).or_insert(0) += if heading.is_empty() { IN_TITLE } else { 2 };
        }
        for (word, weight) in weights {
            self.words.entry(word).or_default().insert(number, weight);
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = text.strip_prefix(if heading.is_empty() { title } else { heading }).unwrap_or(&text).trim();
        let excerpt: String = text.chars().take(EXCERPT).collect();
        self.sections.push(json!([address, title, heading, excerpt]));
    }

    /// Writes the script. The sections of a word are numbers and weights in turn; a number is the
    /// difference from the one before.
    pub fn script(&self) -> String {
        let words: Vec<&str> = self.words.keys().map(String::as_str).collect();
        let places: Vec<Vec<u32>> = self.words.values().map(delta).collect();
        let data = json!({ "sections": self.sections, "words": words.join(" "), "places": places });
        format!("hoistwaySearchIndex({data});\n")
    }
}

fn delta(places: &BTreeMap<usize, u32>) -> Vec<u32> {
    let mut last = 0;
    let mut list = Vec::with_capacity(places.len() * 2);
    for (&number, &weight) in places {
        list.extend([u32::try_from(number - last).unwrap_or(u32::MAX), weight]);
        last = number;
    }
    list
}

/// The words of a text: letters, digits and `_`, and the parts of names with `-`.
fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    parts.flat_map(|part| {
        let whole = part.trim_matches('-').to_lowercase();
        let pieces: Vec<String> =
            if whole.contains('-') { whole.split('-').map(str::to_owned).collect() } else { Vec::new() };
        std::iter::once(whole).chain(pieces).filter(|word| is_word(word))
    })
}

fn is_word(word: &str) -> bool {
    let length = word.chars().count();
    (2..=40).contains(&length) && word.chars().any(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_parts_and_no_numbers() {
        let found: Vec<_> = words("The mq-deadline, 123.4 slice_idle a").collect();
        assert_eq!(found, ["the", "mq-deadline", "mq", "deadline", "slice_idle"]);
    }

    #[test]
    fn a_section_is_found_by_its_words() {
        let mut index = Index::default();
        index.add("a.html", "Alpha", "", "Alpha beta");
        index.add("a.html#b", "Alpha", "Beta", "beta beta");
        let script = index.script();
        assert!(script.contains("\"words\":\"alpha beta\""), "{script}");
        assert!(script.contains("\"places\":[[0,13,1,2],[0,1,1,8]]"), "{script}");
    }

    #[test]
    fn a_term_comes_before_headings_and_texts_with_its_word() {
        let mut index = Index::default();
        index.add("a.html#p99", "p99 of a run", "The p99", "p99 p99 p99 p99 p99");
        index.add_term("g.html#p50-p99", "Glossary", "p50, p99", "The median and the 99th percentile.");
        let script = index.script();
        assert!(script.contains("[\"g.html#p50-p99\",\"Glossary\",\"p50, p99\",\"The median"), "{script}");
        assert_eq!(delta(&index.words["p99"]), [0, 12, 1, 13], "the term has more weight");
    }
}
