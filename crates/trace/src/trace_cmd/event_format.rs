//! The text that describes the layout of an event: the file `format` of an event in tracefs.

/// Layout of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFormat {
    /// Subsystem, such as `block`.
    pub system: String,
    /// Name, such as `block_rq_issue`.
    pub name: String,
    /// Number of the event in records.
    pub id: u16,
    fields: Vec<Field>,
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// Position in the record in bytes.
    pub offset: usize,
    /// Length in bytes.
    pub size: usize,
    /// True if the record has the position and the length of the contents instead of the contents.
    pub is_dynamic: bool,
}

impl EventFormat {
    /// Parses the text of a format.
    ///
    /// # Errors
    /// Returns a message that names the invalid line.
    pub fn parse(system: &str, text: &[u8]) -> Result<EventFormat, String> {
        let text = String::from_utf8_lossy(text);
        let mut format = EventFormat { system: system.to_owned(), ..EventFormat::default() };
        let mut has_id = false;
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_owned();
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().map_err(|_| format!("\"{line}\" has no number of an event"))?;
                has_id = true;
            } else if line.starts_with("field:") {
                format.fields.push(Field::parse(line)?);
            }
        }
        if format.name.is_empty() || !has_id {
            return Err("the format of an event has no name or no ID".to_owned());
        }
        Ok(format)
    }

    /// Returns the field with a name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// Parses `field:unsigned int bytes; offset:28; size:4; signed:0;`.
    pub(super) fn parse(line: &str) -> Result<Field, String> {
        let invalid = || format!("\"{line}\" is no field such as \"field:int a; offset:8; size:4; signed:1;\"");
        let part = |key: &str| line.split(';').map(str::trim).find_map(|part| part.strip_prefix(key));
        let number = |key: &str| part(key).and_then(|digits| digits.trim().parse::<usize>().ok()).ok_or_else(invalid);
        let declaration = part("field:").ok_or_else(invalid)?;
        // The name is the last word, without the length of an array.
        let name = declaration.rsplit([' ', '*']).find(|word| !word.is_empty() && !word.starts_with('['));
        let name = name.and_then(|name| name.split('[').next()).ok_or_else(invalid)?;
        let is_dynamic = declaration.trim_start().starts_with("__data_loc");
        Ok(Field { name: name.to_owned(), offset: number("offset:")?, size: number("size:")?, is_dynamic })
    }

    /// Returns the number in this field of a record; None if the record is too short.
    pub fn number(&self, data: &[u8], is_big_endian: bool) -> Option<u64> {
        let bytes = data.get(self.offset..self.offset.checked_add(self.size)?)?;
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match bytes.len() {
            1 | 2 | 4 | 8 if is_big_endian => Some(bytes.iter().fold(0, add)),
            1 | 2 | 4 | 8 => Some(bytes.iter().rev().fold(0, add)),
            _ => None,
        }
    }

    /// Returns the text in this field up to a zero byte; None if the record is too short.
    pub fn text<'a>(&self, data: &'a [u8], is_big_endian: bool) -> Option<&'a [u8]> {
        let (offset, size) = if self.is_dynamic {
            let place = self.number(data, is_big_endian)?;
            (usize::try_from(place & 0xFFFF).ok()?, usize::try_from(place >> 16 & 0xFFFF).ok()?)
        } else {
            (self.offset, self.size)
        };
        let bytes = data.get(offset..offset.checked_add(size)?)?;
        bytes.split(|byte| *byte == 0).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: block_rq_issue\nID: 2104\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:char rwbs[10];\toffset:12;\tsize:10;\tsigned:0;\n\
                        \tfield:__data_loc char[] cmd;\toffset:24;\tsize:4;\tsigned:0;\n\nprint fmt: \"%d\", REC->dev\n";

    #[test]
    fn fields_have_names_positions_and_contents() {
        let format = EventFormat::parse("block", TEXT.as_bytes()).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("block_rq_issue", 2104));
        let mut data = vec![0; 28];
        data[8..12].copy_from_slice(&0x0070_0001u32.to_le_bytes());
        data[12..14].copy_from_slice(b"WS");
        data.extend_from_slice(b"28 00\0");
        data[24..28].copy_from_slice(&(6u32 << 16 | 28).to_le_bytes());
        assert_eq!(format.field("dev").unwrap().number(&data, false), Some(0x0070_0001));
        assert_eq!(format.field("dev").unwrap().number(&data, true), Some(0x0100_7000));
        assert_eq!(format.field("rwbs").unwrap().text(&data, false), Some(&b"WS"[..]));
        assert_eq!(format.field("cmd").unwrap().text(&data, false), Some(&b"28 00"[..]));
        assert_eq!(format.field("cmd").unwrap().text(&data[..30], false), None, "it ends behind the record");
        assert_eq!(format.field("sector"), None);
    }

    #[test]
    fn an_invalid_format_names_its_line() {
        let wrong = TEXT.replace("offset:8", "offset:x");
        let what = EventFormat::parse("block", wrong.as_bytes()).unwrap_err();
        assert!(what.contains("dev_t dev") && what.contains("offset:8; size:4"), "{what}");
        assert!(EventFormat::parse("block", b"name: a\n").is_err());
    }
}
