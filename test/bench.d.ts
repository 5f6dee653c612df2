// The modules of the benchmark and of the scripts are plain JavaScript.
declare module '*.mjs'
