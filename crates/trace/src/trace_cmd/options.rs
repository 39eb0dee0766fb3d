//! Options of both versions that describe times, and limits.

use super::fields::FieldReader;
use super::layout::Layout;

/// Maximum number of CPUs of a file; Linux supports 8,192.
pub(super) const CPUS_MAX: u32 = 1 << 16;

const OPTION_TRACE_CLOCK: u16 = 4;
const OPTION_OFFSET: u16 = 7;
const OPTION_TSC: u16 = 14;

/// Takes an option that describes the times; other options are left out.
pub(super) fn take_option(layout: &mut Layout, option: u16, data: &[u8]) {
    match option {
        OPTION_TRACE_CLOCK => layout.set_clock(data),
        OPTION_OFFSET => {
            let text = String::from_utf8_lossy(data);
            layout.offset_ns = text.trim_matches(['\0', ' ', '\n']).parse().unwrap_or(0);
        }
        OPTION_TSC => {
            let mut fields = FieldReader::new(data, layout.is_big_endian, 0);
            if let (Ok(factor), Ok(shift)) = (fields.u32("the factor"), fields.u32("the shift")) {
                layout.scale = Some((factor, shift));
            }
        }
        _ => {}
    }
}
