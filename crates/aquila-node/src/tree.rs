//! Label trees: made by training or by the user, exchanged as JSON or as a chain of matrices.

use crate::error::{IntoJs, Result, closed};
use crate::job;
use crate::matrix::{Matrix, account};
use aquila::Csr;
use aquila::tree::LabelTree;
use napi::Env;
use napi::bindgen_prelude::{ClassInstance, ObjectFinalize};
use napi_derive::napi;
use std::sync::Arc;

/// A label tree.
#[napi(custom_finalize)]
pub struct TreeHandle {
    inner: Option<Arc<LabelTree>>,
    counted: i64,
}

impl ObjectFinalize for TreeHandle {
    fn finalize(mut self, env: Env) -> napi::Result<()> {
        self.close(env);
        Ok(())
    }
}

impl TreeHandle {
    /// Takes a tree and tells V8 of its memory.
    pub fn new(env: &Env, inner: LabelTree) -> Self {
        let layers = inner.layers().iter();
        let counted =
            layers.map(|l| size_of_val(&l.starts[..]) + size_of_val(&l.labels[..])).sum::<usize>() as i64;
        account(env, counted);
        Self { inner: Some(Arc::new(inner)), counted }
    }

    /// The tree; it stays alive for a running job though the handle is closed.
    pub fn tree(&self) -> Result<Arc<LabelTree>> {
        self.inner.clone().ok_or_else(|| closed("the tree"))
    }
}

#[napi]
impl TreeHandle {
    /// Reads the engine's JSON text of a tree.
    #[napi(catch_unwind, factory)]
    pub fn from_json(env: Env, text: String) -> Result<Self> {
        LabelTree::from_json(&text).js().map(|tree| Self::new(&env, tree))
    }

    /// The tree as JSON text.
    #[napi(catch_unwind)]
    pub fn to_json(&self) -> Result<String> {
        Ok(self.tree()?.to_json())
    }

    /// Reads a chain of matrices, children × parents.
    #[napi(catch_unwind, factory)]
    pub fn from_chain(env: Env, chain: Vec<ClassInstance<'_, Matrix>>) -> Result<Self> {
        let chain: Vec<Csr> =
            chain.iter().map(|m| m.features().map(|f| f.sparse().clone())).collect::<Result<_>>()?;
        LabelTree::from_chain(&chain).js().map(|tree| Self::new(&env, tree))
    }

    /// The tree as a chain of matrices, children × parents.
    #[napi(catch_unwind)]
    pub fn to_chain(&self, env: Env) -> Result<Vec<Matrix>> {
        let chain = self.tree()?.to_chain().js()?;
        Ok(chain.into_iter().map(|csr| Matrix::new(&env, csr.into())).collect())
    }

    /// Number of labels.
    #[napi(catch_unwind, getter)]
    pub fn labels(&self) -> Result<u32> {
        Ok(self.tree()?.labels() as u32)
    }

    /// Number of slots: at least one a label.
    #[napi(catch_unwind, getter)]
    pub fn slots(&self) -> Result<u32> {
        Ok(self.tree()?.slots() as u32)
    }

    /// Columns of each layer, root first.
    #[napi(catch_unwind, getter)]
    pub fn layers(&self) -> Result<Vec<u32>> {
        Ok(self.tree()?.layers().iter().map(|layer| layer.columns() as u32).collect())
    }

    /// Whether it is not closed.
    #[napi(catch_unwind, getter)]
    pub fn is_open(&self) -> bool {
        self.inner.is_some()
    }

    /// Lets go of the memory; running jobs keep theirs.
    #[napi(catch_unwind)]
    pub fn close(&mut self, env: Env) {
        let counted = std::mem::take(&mut self.counted);
        account(&env, -counted);
        job::free(self.inner.take(), counted as usize);
    }
}
