//! One line of sparse text: `label,label feature:value feature:value`.

use super::number::{float, integer, is_end, word_end};
use crate::error::ErrorCode;

/// What the two text formats differ in, and which ids they allow.
#[derive(Debug, Clone)]
pub(super) struct Grammar {
    /// Feature ids must lie below, counted from 0.
    pub features: u32,
    /// Label ids must lie below.
    pub labels: u32,
    /// Who set these limits, as the end of a sentence: `"the header says"`.
    pub limits: &'static str,
    /// Features count from 1.
    pub one_based: bool,
    /// `#` begins a comment, and a line of nothing else is no row.
    pub comments: bool,
}

/// What is wrong with a line and where.
#[derive(Debug)]
pub(super) struct Fault {
    pub code: ErrorCode,
    pub at: usize,
    pub reason: String,
}

/// Parsed rows, flat.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Labels of each row.
    pub label_counts: Vec<u32>,
    /// Label ids of all rows, ascending in each.
    pub labels: Vec<u32>,
    /// Features of each row.
    pub feature_counts: Vec<u32>,
    /// Feature ids of all rows, ascending in each.
    pub features: Vec<u32>,
    /// One value for each feature.
    pub values: Vec<f32>,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.label_counts.len()
    }

    pub fn clear(&mut self) {
        self.label_counts.clear();
        self.labels.clear();
        self.feature_counts.clear();
        self.features.clear();
        self.values.clear();
    }

    pub fn append(&mut self, other: &Self) {
        self.label_counts.extend_from_slice(&other.label_counts);
        self.labels.extend_from_slice(&other.labels);
        self.feature_counts.extend_from_slice(&other.feature_counts);
        self.features.extend_from_slice(&other.features);
        self.values.extend_from_slice(&other.values);
    }
}

impl Grammar {
    /// Parses the line that begins at `at` into a row and returns where the next line begins.
    pub fn line(&self, text: &[u8], at: usize, rows: &mut Rows) -> Result<usize, Fault> {
        if self.comments {
            let first = skip_blanks(text, at);
            if let Some(next) = self.line_end(text, first) {
                return Ok(next);
            }
        }
        let (first_label, first_feature) = (rows.labels.len(), rows.features.len());
        let after_labels = self.labels(text, at, &mut rows.labels)?;
        let next = self.features(text, after_labels, rows)?;

        tidy_labels(&mut rows.labels, first_label);
        if !rows.features[first_feature..].is_sorted_by(|a, b| a < b)
            && let Some(twice) = sort_features(rows, first_feature)
        {
            return Err(self.twice(text, at..next, twice));
        }
        rows.label_counts.push((rows.labels.len() - first_label) as u32);
        rows.feature_counts.push((rows.features.len() - first_feature) as u32);
        Ok(next)
    }

    /// Where the next line begins if this one ends at `at`.
    #[inline(always)]
    fn line_end(&self, text: &[u8], at: usize) -> Option<usize> {
        match text.get(at) {
            None => Some(at),
            Some(b'\n') => Some(at + 1),
            Some(b'\r') if text.get(at + 1).is_none_or(|b| *b == b'\n') => Some((at + 2).min(text.len())),
            Some(b'#') if self.comments => {
                Some(text[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |n| at + n + 1))
            }
            _ => None,
        }
    }

    /// The label list at the very beginning of a line. A line that begins with a blank has none.
    fn labels(&self, text: &[u8], mut at: usize, labels: &mut Vec<u32>) -> Result<usize, Fault> {
        if text.get(at).is_none_or(|b| is_end(*b)) {
            return Ok(at);
        }
        loop {
            let Some((label, end)) = integer(text, at) else {
                return Err(Fault::parse(
                    at,
                    "expected a label id (a line without labels begins with a space)",
                ));
            };
            match text.get(end) {
                Some(b':') => {
                    return Err(Fault::parse(
                        at,
                        "expected labels before the features (a line without labels begins with a space)",
                    ));
                }
                Some(byte) if *byte != b',' && !is_end(*byte) => {
                    return Err(Fault::parse(at, "expected label ids with commas between"));
                }
                _ => {}
            }
            if label >= u64::from(self.labels) {
                return Err(self.beyond("label", label, self.labels, at));
            }
            labels.push(label as u32);
            if text.get(end) != Some(&b',') {
                return Ok(end);
            }
            at = end + 1;
        }
    }

    /// `feature:value` until the line ends. Returns where the next line begins.
    #[inline(always)]
    fn features(&self, text: &[u8], mut at: usize, rows: &mut Rows) -> Result<usize, Fault> {
        let base = u64::from(self.one_based);
        loop {
            at = skip_blanks(text, at);
            if let Some(next) = self.line_end(text, at) {
                return Ok(next);
            }
            let Some((given, colon)) = integer(text, at) else {
                return Err(Fault::parse(at, "expected feature:value"));
            };
            if text.get(colon) != Some(&b':') {
                return Err(Fault::parse(at, "expected a colon after the feature id"));
            }
            let Some((value, end)) = float(text, colon + 1) else {
                return Err(Fault::parse(at, "expected a number after the colon"));
            };
            let feature = given.wrapping_sub(base);
            if feature >= u64::from(self.features) {
                return Err(self.beyond("feature", given, self.features, at));
            }
            if !value.is_finite() {
                let reason =
                    format!("the value is {value}, beyond what a 32-bit float holds: replace or drop it");
                return Err(Fault { code: ErrorCode::NotFinite, at, reason });
            }
            rows.features.push(feature as u32);
            rows.values.push(value);
            at = end;
        }
    }

    #[cold]
    fn beyond(&self, what: &str, id: u64, limit: u32, at: usize) -> Fault {
        let reason = if self.one_based && what == "feature" {
            match id {
                0 => "feature 0, but the ids of this file are said to count from 1: read it as 0-based"
                    .to_owned(),
                _ => {
                    format!("feature {id} passes the last feature, {limit} ({}, counted from 1)", self.limits)
                }
            }
        } else {
            format!("{what} {id} is not below {limit}, the number of {what}s ({})", self.limits)
        };
        Fault { code: ErrorCode::IndexOutOfRange, at, reason }
    }

    /// The error of a feature that stands twice in a line, at its second place.
    #[cold]
    fn twice(&self, text: &[u8], line: std::ops::Range<usize>, feature: u32) -> Fault {
        let given = u64::from(feature) + u64::from(self.one_based);
        let mut seen = false;
        let mut at = word_end(text, line.start);
        while at < line.end {
            at = skip_blanks(text, at);
            if integer(text, at).is_some_and(|(id, _)| id == given) {
                if seen {
                    break;
                }
                seen = true;
            }
            at = word_end(text, at).max(at + 1);
        }
        let reason = format!("feature {given} stands twice in this row: sum its values or drop one");
        Fault { code: ErrorCode::DuplicateIndex, at: at.min(line.end), reason }
    }
}

impl Fault {
    #[cold]
    pub fn parse(at: usize, reason: &str) -> Self {
        Self { code: ErrorCode::Parse, at, reason: reason.to_owned() }
    }
}

#[inline(always)]
fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

/// Sorts the labels from `first` on and drops repeats.
fn tidy_labels(labels: &mut Vec<u32>, first: usize) {
    if labels[first..].is_sorted_by(|a, b| a < b) {
        return;
    }
    labels[first..].sort_unstable();
    let mut end = first;
    for i in first..labels.len() {
        if end == first || labels[end - 1] != labels[i] {
            labels[end] = labels[i];
            end += 1;
        }
    }
    labels.truncate(end);
}

/// Sorts the features from `first` on with their values. Returns a feature that stands twice.
#[cold]
fn sort_features(rows: &mut Rows, first: usize) -> Option<u32> {
    let (features, values) = (&mut rows.features[first..], &mut rows.values[first..]);
    let mut pairs: Vec<(u32, f32)> = features.iter().copied().zip(values.iter().copied()).collect();
    pairs.sort_by_key(|pair| pair.0);
    for (i, pair) in pairs.iter().enumerate() {
        (features[i], values[i]) = *pair;
    }
    features.windows(2).find(|w| w[0] == w[1]).map(|w| w[0])
}

/// The word at `at` for an error message: shortened, on one line, whatever its bytes.
pub(super) fn excerpt(text: &[u8], at: usize) -> String {
    const LONGEST: usize = 40;
    let at = at.min(text.len());
    let end = word_end(text, at).max((at + 1).min(text.len()));
    let shown = &text[at..end.min(at + LONGEST)];
    let dots = if end > at + LONGEST { "…" } else { "" };
    format!("\"{}{dots}\"", String::from_utf8_lossy(shown).escape_debug())
}
