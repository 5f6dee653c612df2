#!/usr/bin/env node
// Starts the command line. What it depends on is loaded here, so that a missing native library is one line too.

import { fail } from './ending.js'

await import('./program.js').catch((error) => fail(error))
