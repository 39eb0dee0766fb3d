//! Opens the files of a trace: in the order of a set, or in order of time.

use std::collections::{BTreeMap, VecDeque};

use super::reader::{Contents, Footer, Reader};
use crate::batch::Batch;
use crate::merge::Merge;
use crate::source::{InputPosition, Notice, ReadError, Source};

/// Files whose events follow one another, with their smallest and largest time.
struct Lane {
    files: Vec<Reader>,
    times_ns: (u64, u64),
}

/// A file of a set.
struct Part {
    index: u64,
    reader: Reader,
    is_last: bool,
    times_ns: Option<(u64, u64)>,
}

/// Opens files. The files of a set follow in the order in which they were written. Sets and other
/// files whose times overlap are merged by time; the others follow one another.
///
/// # Errors
/// Fails if a file cannot be read, has no footer, lacks a column, or is a copy of another part.
pub(crate) fn open_set(inputs: Vec<(String, Contents)>) -> Result<Box<dyn Source + Send>, ReadError> {
    let (mut lanes, mut sets) = (Vec::new(), BTreeMap::<String, Vec<Part>>::new());
    for (index, (name, contents)) in inputs.into_iter().enumerate() {
        let (reader, Footer { part, is_last, times_ns }) = Reader::new(name, contents, index == 0)?;
        match part {
            Some((set, index)) => sets.entry(set).or_default().push(Part { index, reader, is_last, times_ns }),
            None => lanes.push(Lane { files: vec![reader], times_ns: times_ns.unwrap_or((0, u64::MAX)) }),
        }
    }
    let mut notices = Vec::new();
    for mut parts in sets.into_values() {
        parts.sort_by_key(|part| part.index);
        check_parts(&parts, &mut notices)?;
        let times =
            |end: fn((u64, u64)) -> u64| parts.iter().filter_map(|part| part.times_ns).map(end).collect::<Vec<_>>();
        let least = times(|(least, _)| least).into_iter().min().unwrap_or(0);
        let most = times(|(_, most)| most).into_iter().max().unwrap_or(0);
        lanes.push(Lane { files: parts.into_iter().map(|part| part.reader).collect(), times_ns: (least, most) });
    }
    Ok(Box::new(Sequence { sources: sequence(lanes), notices }))
}

/// Checks that no part of a set is there twice, and notes missing parts.
fn check_parts(parts: &[Part], notices: &mut Vec<Notice>) -> Result<(), ReadError> {
    for pair in parts.windows(2) {
        if let [first, second] = pair
            && first.index == second.index
        {
            let (index, first) = (first.index, first.reader.name());
            let what = format!("it is part {index} of the same set as {first}: remove one of them");
            return Err(ReadError::Bad { file: second.reader.name().to_owned(), position: InputPosition::All, what });
        }
    }
    let Some(last) = parts.last() else { return Ok(()) };
    let missing: Vec<String> = (0..=last.index)
        .filter(|index| parts.binary_search_by_key(index, |part| part.index).is_err())
        .take(6)
        .map(|index| index.to_string())
        .collect();
    let mut note = |what: String| {
        notices.push(Notice { file: last.reader.name().to_owned(), position: InputPosition::All, what });
    };
    if !missing.is_empty() {
        let more = if missing.len() > 5 { " and more" } else { "" };
        let missing = missing.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
        note(format!("parts of its set are missing ({missing}{more}, counted from 0): their events are left out"));
    }
    if !last.is_last {
        note("it is not the last part of its set: the end of the trace is missing".to_owned());
    }
    Ok(())
}

/// Orders lanes by time, and merges those that overlap.
fn sequence(mut lanes: Vec<Lane>) -> VecDeque<Box<dyn Source + Send>> {
    lanes.sort_by_key(|lane| lane.times_ns);
    let mut clusters: Vec<(u64, Vec<Lane>)> = Vec::new();
    for lane in lanes {
        match clusters.last_mut() {
            Some((end_ns, cluster)) if lane.times_ns.0 <= *end_ns => {
                *end_ns = lane.times_ns.1.max(*end_ns);
                cluster.push(lane);
            }
            _ => clusters.push((lane.times_ns.1, vec![lane])),
        }
    }
    clusters.into_iter().flat_map(|(_, cluster)| sources_of(cluster)).collect()
}

fn sources_of(mut cluster: Vec<Lane>) -> Vec<Box<dyn Source + Send>> {
    if cluster.len() == 1 {
        let files = cluster.pop().map_or_else(Vec::new, |lane| lane.files);
        return files.into_iter().map(|file| Box::new(file) as Box<dyn Source + Send>).collect();
    }
    let source = |lane: Lane| {
        let sources = lane.files.into_iter().map(|file| Box::new(file) as Box<dyn Source + Send>).collect();
        (Box::new(Sequence { sources, notices: Vec::new() }) as Box<dyn Source + Send>, 0)
    };
    vec![Box::new(Merge::new(cluster.into_iter().map(source).collect()))]
}

/// Sources that follow one another. A source that has ended is dropped.
struct Sequence {
    sources: VecDeque<Box<dyn Source + Send>>,
    notices: Vec<Notice>,
}

impl Source for Sequence {
    fn next(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        batch.clear();
        while let Some(source) = self.sources.front_mut() {
            source.next(batch)?;
            if !batch.is_empty() {
                break;
            }
            self.notices.extend(source.notices());
            self.sources.pop_front();
        }
        Ok(())
    }

    fn notices(&mut self) -> Vec<Notice> {
        let mut notices = std::mem::take(&mut self.notices);
        notices.extend(self.sources.iter_mut().flat_map(|source| source.notices()));
        notices
    }
}
