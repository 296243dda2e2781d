#!/usr/bin/env node
import { prepare, runProgram } from './bootstrap.mjs';

await prepare();
await runProgram('shadow-proxy/src/cli/shadow-compare.js', process.argv.slice(2));
