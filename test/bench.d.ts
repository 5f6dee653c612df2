// The benchmark's own modules are plain JavaScript.
declare module '*.mjs'
