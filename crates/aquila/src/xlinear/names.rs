//! Names in a model: one for each label or feature, or none at all.
//!
//! One section holds all names one after another as UTF-8, and another the start of each, so that one name among
//! millions is found without reading the others.

use super::Model;
use super::file::Kind;
use crate::error::{Result, fail};

/// What the names refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    Labels,
    Features,
}

impl Named {
    /// The sections of the starts of names and of the names themselves.
    pub const fn kinds(self) -> (Kind, Kind) {
        match self {
            Self::Labels => (Kind::NameStarts, Kind::Names),
            Self::Features => (Kind::FeatureNameStarts, Kind::FeatureNames),
        }
    }

    /// Their name in messages.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Labels => "labels",
            Self::Features => "features",
        }
    }

    /// Refuses names unless there are none or one each.
    pub fn check(self, names: &[String], count: usize) -> Result<()> {
        if !names.is_empty() && names.len() != count {
            let (one, all) = match self {
                Self::Labels => ("label", "labels"),
                Self::Features => ("feature", "features"),
            };
            fail!(ShapeMismatch, "{} {one} names for {count} {all}", names.len());
        }
        Ok(())
    }
}

/// Appends the start of each name, and their total length.
pub(super) fn write_starts(names: &[String], image: &mut Vec<u8>) {
    let mut at = 0u64;
    image.extend_from_slice(&at.to_le_bytes());
    for name in names {
        at += name.len() as u64;
        image.extend_from_slice(&at.to_le_bytes());
    }
}

impl Model {
    /// The name of a label, if the model has label names.
    pub fn label_name(&self, label: u32) -> Option<&str> {
        self.name(Named::Labels, label)
    }

    /// The name of a feature, if the model has feature names.
    pub fn feature_name(&self, feature: u32) -> Option<&str> {
        self.name(Named::Features, feature)
    }

    fn name(&self, of: Named, id: u32) -> Option<&str> {
        let (starts, names) = of.kinds();
        let (starts, id) = (self.section(starts)?.as_chunks::<8>().0, id as usize);
        let (from, to) = (starts.get(id)?, starts.get(id + 1)?);
        let span = u64::from_le_bytes(*from) as usize..u64::from_le_bytes(*to) as usize;
        std::str::from_utf8(self.section(names)?.get(span)?).ok()
    }

    /// The names of all labels; empty if the model has none.
    pub fn label_names(&self) -> Vec<String> {
        self.names(Named::Labels)
    }

    /// The names of all features; empty if the model has none.
    pub fn feature_names(&self) -> Vec<String> {
        self.names(Named::Features)
    }

    fn names(&self, of: Named) -> Vec<String> {
        let count = if of == Named::Labels { self.labels } else { self.features };
        if self.section(of.kinds().0).is_none() {
            return Vec::new();
        }
        (0..count as u32).map(|id| self.name(of, id).unwrap_or_default().to_owned()).collect()
    }
}
