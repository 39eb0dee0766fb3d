//! Pages of a column, checked before they are decoded: the decoders of `parquet` panic on some
//! damaged pages.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// A reader of pages that refuses those that no decoder can take.
pub struct CheckedPages {
    pages: Box<dyn PageReader>,
    has_dictionary: bool,
}

impl CheckedPages {
    /// Creates a reader of the pages of another.
    pub fn new(pages: Box<dyn PageReader>) -> CheckedPages {
        CheckedPages { pages, has_dictionary: false }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let bad = |what: &str| Err(ParquetError::General(format!("a page of its values {what}")));
        let encoding = match page {
            Page::DictionaryPage { .. } => {
                self.has_dictionary = true;
                return Ok(());
            }
            Page::DataPage { encoding, def_level_encoding, rep_level_encoding, .. } => {
                if [def_level_encoding, rep_level_encoding].into_iter().any(|levels| !is_of_levels(*levels)) {
                    return bad("has levels that are neither RLE nor bits");
                }
                encoding
            }
            Page::DataPageV2 { buf, encoding, def_levels_byte_len, rep_levels_byte_len, .. } => {
                if u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len) > buf.len() as u64 {
                    return bad("is shorter than its levels");
                }
                encoding
            }
        };
        let needs_dictionary = matches!(encoding, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
        if needs_dictionary && !self.has_dictionary {
            return bad("needs a dictionary, and no page before it is one");
        }
        Ok(())
    }
}

#[expect(deprecated, reason = "old files have levels of this encoding")]
fn is_of_levels(encoding: Encoding) -> bool {
    matches!(encoding, Encoding::RLE | Encoding::BIT_PACKED)
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        page.as_ref().map_or(Ok(()), |page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use bytes::Bytes;

    use super::*;

    /// Pages in memory.
    struct Pages(vec::IntoIter<Page>);

    impl PageReader for Pages {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok(self.0.next())
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    impl Iterator for Pages {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Result<Page>> {
            self.0.next().map(Ok)
        }
    }

    fn read(pages: Vec<Page>) -> std::result::Result<usize, String> {
        let checked = CheckedPages::new(Box::new(Pages(pages.into_iter())));
        let read: Result<Vec<Page>> = checked.collect();
        read.map(|pages| pages.len()).map_err(|error| error.to_string())
    }

    fn dictionary() -> Page {
        Page::DictionaryPage { buf: Bytes::new(), num_values: 0, encoding: Encoding::PLAIN, is_sorted: false }
    }

    fn page(encoding: Encoding, levels: Encoding) -> Page {
        let (def_level_encoding, rep_level_encoding) = (levels, Encoding::RLE);
        let buf = Bytes::new();
        Page::DataPage { buf, num_values: 0, encoding, def_level_encoding, rep_level_encoding, statistics: None }
    }

    fn second_page(def_levels_byte_len: u32, rep_levels_byte_len: u32) -> Page {
        Page::DataPageV2 {
            buf: Bytes::from_static(&[0; 3]),
            num_values: 1,
            encoding: Encoding::PLAIN,
            num_nulls: 0,
            num_rows: 1,
            def_levels_byte_len,
            rep_levels_byte_len,
            is_compressed: false,
            statistics: None,
        }
    }

    #[test]
    fn a_page_that_needs_a_missing_dictionary_is_refused() {
        let of_dictionary = || page(Encoding::RLE_DICTIONARY, Encoding::RLE);
        assert_eq!(read(vec![dictionary(), of_dictionary()]), Ok(2));
        let error = read(vec![of_dictionary()]).unwrap_err();
        assert!(error.contains("needs a dictionary, and no page before it is one"), "{error}");
    }

    #[test]
    fn levels_of_another_encoding_are_refused() {
        assert_eq!(read(vec![page(Encoding::PLAIN, Encoding::RLE)]), Ok(1));
        let error = read(vec![page(Encoding::PLAIN, Encoding::PLAIN)]).unwrap_err();
        assert!(error.contains("neither RLE nor bits"), "{error}");
    }

    #[test]
    fn levels_that_are_longer_than_their_page_are_refused() {
        assert_eq!(read(vec![second_page(1, 2)]), Ok(1));
        let error = read(vec![second_page(u32::MAX, u32::MAX)]).unwrap_err();
        assert!(error.contains("shorter than its levels"), "{error}");
        assert!(read(vec![second_page(2, 2)]).is_err());
    }
}
