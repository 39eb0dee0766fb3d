//! Single requests: in the page while they are few, in files once they are many.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hoistway_report::{Chunk, RequestRow, SingleRequests, SpanRow, chunk_script};
use tempfile::TempDir;

/// So many requests are in a page at most: with 15 bytes each some 2 MB of it.
const IN_PAGE_MAX: u64 = 150_000;
/// Slices and such of elevators count as requests do, but there are as many in a page at most.
const SPANS_IN_PAGE_MAX: u64 = 150_000;
/// So many requests are loaded at a time.
const REQUESTS_A_CHUNK: usize = 8_192;
const SPANS_A_CHUNK: usize = 16_384;

/// Where requests go that are too many for the page.
#[derive(Debug)]
pub enum Where {
    /// Nowhere: the page has sums alone then.
    PageAlone,
    /// Into a folder beside the page.
    Beside(PathBuf),
    /// Into a folder that is gone when the command ends.
    Temporary,
}

/// Takes requests in, and keeps them.
#[derive(Debug)]
pub struct Details {
    place: Where,
    requests: Vec<RequestRow>,
    spans: Vec<SpanRow>,
    /// Those in the page, as long as they are few.
    kept: Vec<Chunk>,
    seen: u64,
    spans_seen: u64,
    left_out: bool,
    files: Option<Files>,
}

/// What is in files.
#[derive(Debug)]
struct Files {
    folder: PathBuf,
    temporary: Option<TempDir>,
    chunks: Vec<(u64, u64, u32)>,
    bytes: u64,
}

/// What became of them.
#[derive(Debug)]
pub struct Single {
    /// Where the page finds them.
    pub requests: SingleRequests,
    /// The folder that goes with the command.
    pub folder: Option<TempDir>,
    /// The folder beside the page, its files, and their bytes.
    pub written: Option<(PathBuf, usize, u64)>,
    /// They were too many for the page, and nobody asked for files.
    pub left_out: bool,
}

impl Details {
    /// None yet.
    pub fn new(place: Where) -> Details {
        Details {
            place,
            requests: Vec::new(),
            spans: Vec::new(),
            kept: Vec::new(),
            seen: 0,
            spans_seen: 0,
            left_out: false,
            files: None,
        }
    }

    /// Whether anything becomes of more of them.
    pub fn are_wanted(&self) -> bool {
        !self.left_out
    }

    /// Takes in a request.
    pub fn request(&mut self, row: RequestRow) -> Result<()> {
        self.requests.push(row);
        self.seen += 1;
        if self.requests.len() >= REQUESTS_A_CHUNK { self.pack() } else { Ok(()) }
    }

    /// Takes in what the elevator's notes tell of.
    pub fn span(&mut self, row: SpanRow) -> Result<()> {
        self.spans.push(row);
        self.spans_seen += 1;
        if self.spans.len() >= SPANS_A_CHUNK { self.pack() } else { Ok(()) }
    }

    fn pack(&mut self) -> Result<()> {
        if self.requests.is_empty() && self.spans.is_empty() {
            return Ok(());
        }
        let chunk = Chunk::new(&self.requests, &self.spans);
        self.requests.clear();
        self.spans.clear();
        if let Some(files) = &mut self.files {
            return files.write(&chunk);
        }
        self.kept.push(chunk);
        if self.seen <= IN_PAGE_MAX && self.spans_seen <= SPANS_IN_PAGE_MAX {
            return Ok(());
        }
        let kept = std::mem::take(&mut self.kept);
        let files = match &self.place {
            Where::PageAlone => {
                self.left_out = true;
                return Ok(());
            }
            Where::Beside(folder) => Files::beside(folder)?,
            Where::Temporary => Files::temporary()?,
        };
        let files = self.files.insert(files);
        kept.iter().try_for_each(|chunk| files.write(chunk))
    }

    /// Where all of them are.
    pub fn finish(&mut self) -> Result<Single> {
        if !self.left_out {
            self.pack()?;
        }
        let nowhere =
            Single { requests: SingleRequests::Nowhere, folder: None, written: None, left_out: self.left_out };
        if self.left_out {
            return Ok(nowhere);
        }
        let Some(files) = self.files.take() else {
            return Ok(Single { requests: SingleRequests::InPage(std::mem::take(&mut self.kept)), ..nowhere });
        };
        let name = files.folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let prefix = if files.temporary.is_some() { "detail".to_owned() } else { address_of(&name) };
        let count = files.chunks.len();
        let requests = SingleRequests::Beside { prefix, chunks: files.chunks };
        let written = files.temporary.is_none().then_some((files.folder, count, files.bytes));
        Ok(Single { requests, folder: files.temporary, written, left_out: false })
    }
}

impl Files {
    /// In a folder of its own: what an earlier page left in it goes.
    fn beside(folder: &Path) -> Result<Files> {
        fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        for number in 0.. {
            if fs::remove_file(folder.join(format!("{number}.js"))).is_err() {
                break;
            }
        }
        Ok(Files { folder: folder.to_owned(), temporary: None, chunks: Vec::new(), bytes: 0 })
    }

    fn temporary() -> Result<Files> {
        let folder = tempfile::tempdir().context("a temporary folder cannot be made")?;
        Ok(Files { folder: folder.path().to_owned(), temporary: Some(folder), chunks: Vec::new(), bytes: 0 })
    }

    fn write(&mut self, chunk: &Chunk) -> Result<()> {
        let number = self.chunks.len();
        let path = self.folder.join(format!("{number}.js"));
        let script = chunk_script(number, chunk);
        fs::write(&path, &script).with_context(|| format!("{} cannot be written", path.display()))?;
        self.chunks.push((chunk.from_ns, chunk.to_ns, chunk.requests));
        self.bytes += script.len() as u64;
        Ok(())
    }
}

/// A file's name as a part of an address: what means something there is escaped (RFC 3986).
fn address_of(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at_ns: u64) -> RequestRow {
        RequestRow {
            op: 1,
            bytes: 512,
            steps_ns: [Some(at_ns), None, None, None, Some(at_ns + 1)],
            ..RequestRow::default()
        }
    }

    fn filled(place: Where, requests: u64) -> Single {
        let mut details = Details::new(place);
        for number in 0..requests {
            if details.are_wanted() {
                details.request(row(number)).unwrap();
            }
        }
        details.finish().unwrap()
    }

    #[test]
    fn a_few_requests_are_in_the_page_and_many_only_where_somebody_asked_for_files() {
        assert!(matches!(filled(Where::PageAlone, 10).requests, SingleRequests::InPage(chunks) if chunks.len() == 1));
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("a page.detail");
        let few = filled(Where::Beside(beside.clone()), 10);
        assert!(matches!(few.requests, SingleRequests::InPage(_)) && !beside.exists());
        let many = filled(Where::PageAlone, IN_PAGE_MAX + REQUESTS_A_CHUNK as u64);
        assert!(many.left_out && matches!(many.requests, SingleRequests::Nowhere));
    }

    #[test]
    fn files_hold_every_request_and_those_of_an_earlier_page_go() {
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("a page.detail");
        fs::create_dir(&beside).unwrap();
        (0..40).for_each(|number| fs::write(beside.join(format!("{number}.js")), "old").unwrap());
        let all = IN_PAGE_MAX + 20_000;
        let single = filled(Where::Beside(beside.clone()), all);
        let SingleRequests::Beside { prefix, chunks } = single.requests else { panic!("no files") };
        assert_eq!(prefix, "a%20page.detail");
        assert_eq!(chunks.iter().map(|(_, _, requests)| u64::from(*requests)).sum::<u64>(), all);
        assert_eq!(fs::read_dir(&beside).unwrap().count(), chunks.len());
        assert!(chunks.windows(2).all(|two| two[0].1 <= two[1].1));
    }
}
