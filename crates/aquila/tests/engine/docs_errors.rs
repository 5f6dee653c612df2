//! The guide's table of error codes and TypeScript's list of them are the engine's.

use aquila::ErrorCode;
use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn engine() -> Vec<String> {
    ErrorCode::ALL.iter().map(|code| code.to_string()).collect()
}

#[test]
fn the_guide_lists_every_code_with_meaning_and_cure() {
    let page = read("docs/guide/errors.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let codes: Vec<String> = rows.iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    assert_eq!(codes, engine());
    for row in rows {
        assert_eq!(row.len(), 3, "{row:?}");
        assert!(row[1].len() > 10 && row[2].len() > 10, "{row:?}");
    }
}

#[test]
fn typescript_lists_every_code() {
    let source = read("ts/errors.ts");
    let codes: Vec<String> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("| '"))
        .map(|rest| rest.trim_end_matches('\'').to_owned())
        .collect();
    assert_eq!(codes, engine());
}
