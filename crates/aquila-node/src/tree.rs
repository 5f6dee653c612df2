//! Label trees: made by training or by the user, exchanged as JSON or as a chain of matrices.

use crate::error::{IntoJs, Result};
use crate::matrix::Matrix;
use aquila::Csr;
use aquila::tree::LabelTree;
use napi::Env;
use napi::bindgen_prelude::ClassInstance;
use napi_derive::napi;

/// A label tree.
#[napi]
pub struct TreeHandle {
    inner: LabelTree,
}

impl TreeHandle {
    /// Takes a tree.
    pub fn new(inner: LabelTree) -> Self {
        Self { inner }
    }

    /// The tree.
    pub fn tree(&self) -> &LabelTree {
        &self.inner
    }
}

#[napi]
impl TreeHandle {
    /// Reads the engine's JSON text of a tree.
    #[napi(catch_unwind, factory)]
    pub fn from_json(text: String) -> Result<Self> {
        LabelTree::from_json(&text).js().map(Self::new)
    }

    /// The tree as JSON text.
    #[napi(catch_unwind)]
    pub fn to_json(&self) -> String {
        self.inner.to_json()
    }

    /// Reads a chain of matrices, children × parents.
    #[napi(catch_unwind, factory)]
    pub fn from_chain(chain: Vec<ClassInstance<'_, Matrix>>) -> Result<Self> {
        let chain: Vec<Csr> =
            chain.iter().map(|m| m.features().map(|f| f.sparse().clone())).collect::<Result<_>>()?;
        LabelTree::from_chain(&chain).js().map(Self::new)
    }

    /// The tree as a chain of matrices, children × parents.
    #[napi(catch_unwind)]
    pub fn to_chain(&self, env: Env) -> Result<Vec<Matrix>> {
        let chain = self.inner.to_chain().js()?;
        Ok(chain.into_iter().map(|csr| Matrix::new(&env, csr.into())).collect())
    }

    /// Number of labels.
    #[napi(catch_unwind, getter)]
    pub fn labels(&self) -> u32 {
        self.inner.labels() as u32
    }

    /// Number of slots: at least one a label.
    #[napi(catch_unwind, getter)]
    pub fn slots(&self) -> u32 {
        self.inner.slots() as u32
    }

    /// Columns of each layer, root first.
    #[napi(catch_unwind, getter)]
    pub fn layers(&self) -> Vec<u32> {
        self.inner.layers().iter().map(|layer| layer.columns() as u32).collect()
    }
}
