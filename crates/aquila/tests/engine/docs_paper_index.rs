//! The paper index names files, functions, tests and headings that exist, and its terms are found where it says.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The links of a Markdown text: label and target.
fn links(text: &str) -> Vec<(&str, &str)> {
    let mut out = Vec::new();
    for (at, _) in text.match_indices("](") {
        let Some(begin) = text[..at].rfind('[') else { continue };
        let Some(end) = text[at..].find(')') else { continue };
        out.push((&text[begin + 1..at], &text[at + 2..at + end]));
    }
    out
}

/// A heading as GitHub's anchors spell it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
}

fn defines(source: &str, name: &str) -> bool {
    ["fn", "struct", "enum", "trait", "mod", "const"].iter().any(|kind| {
        source.match_indices(&format!("{kind} {name}")).any(|(at, found)| {
            let next = source[at + found.len()..].chars().next();
            next.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    })
}

/// What is wrong with an index.
fn faults(index: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (label, target) in links(index) {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let Ok(text) = fs::read_to_string(docs().join(file)) else {
            faults.push(format!("{target} does not exist"));
            continue;
        };
        let name = label.trim_matches('`');
        let is_program = file.ends_with(&format!("/examples/{name}.rs"));
        if label.starts_with('`') && !is_program && !defines(&text, name) {
            faults.push(format!("{file} defines no {name}"));
        }
        let headings =
            text.lines().filter(|l| l.starts_with('#')).map(|l| anchor(l.trim_start_matches('#').trim()));
        if !heading.is_empty() && !headings.collect::<BTreeSet<_>>().contains(heading) {
            faults.push(format!("{file} has no heading {heading}"));
        }
    }
    for row in index.lines().filter(|l| l.starts_with("| ") && l.contains("**")) {
        let term = row.split("**").nth(1).unwrap_or_default().to_lowercase();
        let Some((_, file)) = links(row).into_iter().find(|(_, target)| target.ends_with(".rs")) else {
            faults.push(format!("{term} has no code"));
            continue;
        };
        let text = fs::read_to_string(docs().join(file)).unwrap_or_default().to_lowercase();
        // A term may be broken over two lines of a comment.
        let words = text.replace("//!", " ").replace("///", " ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        if !words.contains(&term) {
            faults.push(format!("{file} does not speak of {term}"));
        }
    }
    faults
}

#[test]
fn everything_that_the_paper_index_names_exists() {
    let index = fs::read_to_string(docs().join("paper-index.md")).unwrap();
    assert!(links(&index).len() > 90, "the index was not read");
    assert_eq!(faults(&index), Vec::<String>::new());
}

#[test]
fn wrong_names_are_found() {
    let row = |term: &str, code: &str, page: &str| format!("| **{term}** | x | {code} | {page} |\n");
    let code = "[`pii`](../crates/aquila/src/tree/vectors.rs)";
    let page = "[training](guide/training.md#the-tree-tree)";
    assert_eq!(faults(&row("PII", code, page)), Vec::<String>::new());
    assert_eq!(faults(&row("no such term", code, page)).len(), 1);
    assert_eq!(faults(&row("PII", &code.replace("`pii`", "`pi`"), page)).len(), 1);
    assert_eq!(faults(&row("PII", code, &page.replace("#the-tree-tree", "#the-tree"))).len(), 1);
    assert_eq!(faults(&row("PII", "none", page)).len(), 1);
    assert!(!faults(&row("PII", &code.replace("vectors", "nowhere"), page)).is_empty());
}
