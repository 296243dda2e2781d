#!/usr/bin/env node
import './node-version.mjs';

// Not a static import: an old Node could not read that file.
import('./start.mjs').then(({ start }) => start('shadow-proxy/programs/main.js'));
