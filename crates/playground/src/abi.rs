//! The functions that a WebAssembly module exports, and the one that it imports.

#![cfg_attr(not(target_arch = "wasm32"), expect(dead_code, reason = "only the module calls these"))]

use std::alloc::{Layout, alloc, dealloc};
use std::{ptr, slice};

#[cfg(target_arch = "wasm32")]
#[link(wasm_import_module = "hoistway")]
unsafe extern "C" {
    #[link_name = "progress"]
    safe fn host_progress(share: f64, virtual_s: f64);
}

fn report(share: f64, virtual_s: f64) {
    #[cfg(target_arch = "wasm32")]
    host_progress(share, virtual_s);
    #[cfg(not(target_arch = "wasm32"))]
    let _ = (share, virtual_s);
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), 1).ok()
}

/// Allocates memory for a request; null if there is none.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
extern "C" fn hoistway_alloc(bytes: usize) -> *mut u8 {
    // SAFETY: the layout has at least one byte.
    layout(bytes).map_or(ptr::null_mut(), |layout| unsafe { alloc(layout) })
}

/// Releases a request or an answer.
///
/// # Safety
/// `address` and `bytes` are those of `hoistway_alloc` or of an answer, and are not used again.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
unsafe extern "C" fn hoistway_free(address: *mut u8, bytes: usize) {
    if let Some(layout) = layout(bytes).filter(|_| !address.is_null()) {
        // SAFETY: the caller passes a block of this layout.
        unsafe { dealloc(address, layout) };
    }
}

/// Answers the request at `address`; the upper half of the value is the address of the answer, the
/// lower half its length.
///
/// # Safety
/// `address` and `bytes` are those of `hoistway_alloc`, and the memory is written.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
unsafe extern "C" fn hoistway_call(address: *const u8, bytes: usize) -> u64 {
    // SAFETY: the caller passes readable memory of this length.
    let request = unsafe { slice::from_raw_parts(address, bytes) };
    let answer = super::answer(&String::from_utf8_lossy(request), &report);
    let answer = Box::leak(answer.into_bytes().into_boxed_slice());
    (answer.as_ptr() as u64) << 32 | answer.len() as u64
}
