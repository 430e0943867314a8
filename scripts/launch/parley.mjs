#!/usr/bin/env node
/** `npx parley` in a clone; the image runs dist/scripts/parley.js. */
process.argv.splice(2, 0, 'parley');
await import('../launch.mjs');
