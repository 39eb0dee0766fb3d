//! Storage of single requests: in the page if they are few, in files if they are many.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::chunk::chunk_script;
use super::data::{Chunk, RequestRow, SingleRequests, SpanRow};
use crate::ReportError;

/// Maximum number of requests in a page: at 15 bytes each, about 2 MB.
const IN_PAGE_MAX: u64 = 150_000;
/// Maximum number of spans of elevators in a page.
const SPANS_IN_PAGE_MAX: u64 = 150_000;
/// Number of requests in a chunk, which a page loads at once.
const REQUESTS_A_CHUNK: usize = 8_192;
/// Number of spans in a chunk.
const SPANS_A_CHUNK: usize = 16_384;

/// Destination of requests that exceed the page.
#[derive(Debug)]
pub enum DetailLocation {
    /// No destination: the page then has only sums.
    PageAlone,
    /// A folder beside the page; the page loads its files by the folder's name.
    Beside(PathBuf),
    /// A folder whose files a server delivers below `detail/`.
    Served(PathBuf),
}

/// Collects requests and spans in chunks.
#[derive(Debug)]
pub struct DetailStore {
    location: DetailLocation,
    requests: Vec<RequestRow>,
    spans: Vec<SpanRow>,
    /// Chunks of the page, while they are few.
    kept: Vec<Chunk>,
    seen: u64,
    spans_seen: u64,
    left_out: bool,
    files: Option<ChunkFiles>,
}

/// Chunks in files.
#[derive(Debug)]
struct ChunkFiles {
    folder: PathBuf,
    /// Address of the folder, relative to the page.
    prefix: String,
    chunks: Vec<(u64, u64, u32)>,
    bytes: u64,
}

/// Result of storing the requests.
#[derive(Debug)]
pub struct StoredDetails {
    /// The location for the page.
    pub requests: SingleRequests,
    /// The files that were written.
    pub written: Option<WrittenDetails>,
    /// True if the requests exceed the page and no files were requested.
    pub left_out: bool,
}

/// Files with single requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenDetails {
    /// The folder.
    pub folder: PathBuf,
    /// Number of files.
    pub files: usize,
    /// Size of all files in bytes.
    pub bytes: u64,
}

impl DetailStore {
    /// Creates an empty store.
    pub fn new(location: DetailLocation) -> DetailStore {
        DetailStore {
            location,
            requests: Vec::new(),
            spans: Vec::new(),
            kept: Vec::new(),
            seen: 0,
            spans_seen: 0,
            left_out: false,
            files: None,
        }
    }

    /// Returns true if further requests are stored.
    pub fn accepts_more(&self) -> bool {
        !self.left_out
    }

    /// Adds a request.
    pub fn request(&mut self, row: RequestRow) -> Result<(), ReportError> {
        self.requests.push(row);
        self.seen += 1;
        if self.requests.len() >= REQUESTS_A_CHUNK { self.pack() } else { Ok(()) }
    }

    /// Adds a span of an elevator.
    pub fn span(&mut self, row: SpanRow) -> Result<(), ReportError> {
        self.spans.push(row);
        self.spans_seen += 1;
        if self.spans.len() >= SPANS_A_CHUNK { self.pack() } else { Ok(()) }
    }

    fn pack(&mut self) -> Result<(), ReportError> {
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
        let files = match &self.location {
            DetailLocation::PageAlone => {
                self.left_out = true;
                return Ok(());
            }
            DetailLocation::Beside(folder) => {
                let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                ChunkFiles::new(folder, percent_encoded(&name))?
            }
            DetailLocation::Served(folder) => ChunkFiles::new(folder, "detail".to_owned())?,
        };
        let files = self.files.insert(files);
        kept.iter().try_for_each(|chunk| files.write(chunk))
    }

    /// Ends the collection and returns the location of the requests.
    pub fn finish(&mut self) -> Result<StoredDetails, ReportError> {
        if !self.left_out {
            self.pack()?;
        }
        let nowhere = StoredDetails { requests: SingleRequests::Nowhere, written: None, left_out: self.left_out };
        if self.left_out {
            return Ok(nowhere);
        }
        let Some(files) = self.files.take() else {
            return Ok(StoredDetails { requests: SingleRequests::InPage(std::mem::take(&mut self.kept)), ..nowhere });
        };
        let written = WrittenDetails { folder: files.folder, files: files.chunks.len(), bytes: files.bytes };
        let requests = SingleRequests::Beside { prefix: files.prefix, chunks: files.chunks };
        Ok(StoredDetails { requests, written: Some(written), left_out: false })
    }
}

impl ChunkFiles {
    /// Creates or reuses a folder; files of an earlier page are removed.
    fn new(folder: &Path, prefix: String) -> Result<ChunkFiles, ReportError> {
        fs::create_dir_all(folder).map_err(|source| write_error(folder, source))?;
        for number in 0.. {
            if fs::remove_file(folder.join(format!("{number}.js"))).is_err() {
                break;
            }
        }
        Ok(ChunkFiles { folder: folder.to_owned(), prefix, chunks: Vec::new(), bytes: 0 })
    }

    fn write(&mut self, chunk: &Chunk) -> Result<(), ReportError> {
        let number = self.chunks.len();
        let path = self.folder.join(format!("{number}.js"));
        let script = chunk_script(number, chunk);
        fs::write(&path, &script).map_err(|source| write_error(&path, source))?;
        self.chunks.push((chunk.from_ns, chunk.to_ns, chunk.requests));
        self.bytes += script.len() as u64;
        Ok(())
    }
}

fn write_error(path: &Path, source: io::Error) -> ReportError {
    ReportError::Write { path: path.to_owned(), source }
}

/// Percent-encodes a file name for a URL (RFC 3986).
fn percent_encoded(name: &str) -> String {
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

    fn filled(location: DetailLocation, requests: u64) -> StoredDetails {
        let mut details = DetailStore::new(location);
        for number in 0..requests {
            if details.accepts_more() {
                details.request(row(number)).unwrap();
            }
        }
        details.finish().unwrap()
    }

    #[test]
    fn few_requests_are_in_the_page_and_many_only_in_requested_files() {
        assert!(
            matches!(filled(DetailLocation::PageAlone, 10).requests, SingleRequests::InPage(chunks) if chunks.len() == 1)
        );
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("a page.detail");
        let few = filled(DetailLocation::Beside(beside.clone()), 10);
        assert!(matches!(few.requests, SingleRequests::InPage(_)) && !beside.exists());
        let many = filled(DetailLocation::PageAlone, IN_PAGE_MAX + REQUESTS_A_CHUNK as u64);
        assert!(many.left_out && matches!(many.requests, SingleRequests::Nowhere));
    }

    #[test]
    fn files_hold_every_request_and_those_of_an_earlier_page_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("a page.detail");
        fs::create_dir(&beside).unwrap();
        (0..40).for_each(|number| fs::write(beside.join(format!("{number}.js")), "old").unwrap());
        let all = IN_PAGE_MAX + 20_000;
        let single = filled(DetailLocation::Beside(beside.clone()), all);
        let SingleRequests::Beside { prefix, chunks } = single.requests else { panic!("no files") };
        assert_eq!(prefix, "a%20page.detail");
        assert_eq!(chunks.iter().map(|(_, _, requests)| u64::from(*requests)).sum::<u64>(), all);
        assert_eq!(fs::read_dir(&beside).unwrap().count(), chunks.len());
        assert!(chunks.windows(2).all(|two| two[0].1 <= two[1].1));
    }
}
