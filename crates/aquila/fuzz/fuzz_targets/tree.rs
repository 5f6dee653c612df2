//! Any text as a tree in JSON: a tree that survives the round trip, or an error, never a crash.

#![no_main]

use aquila::tree::LabelTree;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(tree) = LabelTree::from_json(text) else { return };
    assert_eq!(LabelTree::from_json(&tree.to_json()).unwrap(), tree);
    if let Ok(chain) = tree.to_chain() {
        let _ = LabelTree::from_chain(&chain);
    }
});
