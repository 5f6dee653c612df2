//! Node-API bindings: conversion, tasks, errors; no algorithm.
