//! Node-API bindings: conversion, jobs, errors; no algorithm.
//!
//! One module for each concept: [`error`], [`params`], [`matrix`], [`io`], [`job`], [`tree`], [`train`], [`xlinear`] with
//! its [`registry`], [`meanings`] and [`query`], [`metrics`], [`eagle`]. Everything here is called by the TypeScript facade
//! alone; its types are not public.

pub mod eagle;
pub mod error;
pub mod io;
pub mod job;
pub mod matrix;
pub mod meanings;
pub mod metrics;
pub mod params;
pub mod query;
pub mod registry;
pub mod train;
pub mod tree;
pub mod xlinear;

use napi_derive::napi;

/// What this build is and runs on.
#[napi(object, object_from_js = false)]
pub struct Runtime {
    /// The engine's version.
    pub version: &'static str,
    /// The instruction set that the kernels use.
    pub simd: &'static str,
    /// Every instruction set this processor can run.
    pub available: Vec<&'static str>,
    /// Threads that a call takes when it is not told how many.
    pub threads: u32,
}

/// Tells what this build is and runs on.
#[napi(catch_unwind)]
pub fn runtime() -> Runtime {
    use aquila::kernels::Isa;
    Runtime {
        version: aquila::VERSION,
        simd: Isa::detect().as_str(),
        available: Isa::available().into_iter().map(Isa::as_str).collect(),
        threads: aquila::Control::default().thread_count() as u32,
    }
}
