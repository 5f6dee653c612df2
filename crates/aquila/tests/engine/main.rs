//! The engine's tests, in one binary: they compile and link once. Those that count allocations, watch the clock or the
//! global thread pool have binaries of their own beside this folder.

#[path = "../common/mod.rs"]
mod common;
#[path = "../search_support/mod.rs"]
mod search_support;
#[path = "../train_support/mod.rs"]
mod train_support;

mod docs_errors;
mod docs_paper_index;
mod eagle_assign;
mod eagle_refine;
mod io_arrays;
mod io_atomic;
mod io_mutations;
mod io_text;
mod metrics_golden;
mod metrics_reference;
mod overlap_projection;
mod overlap_train;
mod progress_stages;
mod search_damage;
mod search_file;
mod search_golden;
mod search_meanings;
mod search_reference;
mod search_scores;
mod train_csr;
mod train_dense;
mod train_edges;
mod train_errors;
mod train_formats;
mod train_model;
mod train_params;
mod train_solver;
mod train_tree;
mod train_weights;
mod tree_exchange;
