/** The build of the console: two pages, all addresses relative, not a byte of it inline. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

import { defineConfig } from 'vite';
import type { Plugin } from 'vite';

/** All that a browser ever loads of both faces together, compressed. */
const GZIP_BYTES_MAX = 180_000;

/** A console that grows beyond its limit does not build. */
const limitSize: Plugin = {
  name: 'limit-size',
  generateBundle(_options, bundle) {
    const sizes = Object.values(bundle).map(
      (file) => gzipSync(file.type === 'chunk' ? file.code : file.source).byteLength,
    );
    const total = sizes.reduce((sum, size) => sum + size, 0);
    this.info(`${(total / 1_000).toFixed(1)} kB of at most ${GZIP_BYTES_MAX / 1_000} kB, compressed`);
    if (total > GZIP_BYTES_MAX) this.error(`The console has ${total} bytes, compressed: more than ${GZIP_BYTES_MAX}.`);
  },
};

/** Beside each asset what is sent of it: the ingress compresses nothing while it serves. */
const compressAssets: Plugin = {
  name: 'compress-assets',
  writeBundle({ dir = '' }) {
    const assets = join(dir, 'assets');
    for (const name of readdirSync(assets)) {
      const content = readFileSync(join(assets, name));
      writeFileSync(join(assets, `${name}.br`), brotliCompressSync(content));
      writeFileSync(join(assets, `${name}.gz`), gzipSync(content, { level: 9 }));
    }
  },
};

export default defineConfig({
  root: import.meta.dirname,
  base: './',
  oxc: { jsx: { importSource: 'preact' } },
  plugins: [limitSize, compressAssets],
  build: {
    // All these browsers know light-dark(), nesting and native dialogs.
    target: ['chrome123', 'firefox121', 'safari17.5'],
    // The policy allows no data: URL in styles or scripts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: { input: ['index.html', 'admin.html'].map((page) => `${import.meta.dirname}/${page}`) },
  },
});
