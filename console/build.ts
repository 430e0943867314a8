/** The build of the console: two pages, all addresses relative, not a byte of it inline. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

import { build } from 'esbuild';

/** All that a browser ever loads of both faces together, compressed. */
const GZIP_BYTES_MAX = 180_000;
const PAGES = ['index.html', 'admin.html'];
/** A page names each file that becomes an asset like this. */
const ADDRESS = /(?<=(?:src|href)=")\.\/(src\/[^"]+)/gu;

const at = (path: string) => join(import.meta.dirname, path);
const pages = PAGES.map((name) => ({ name, html: readFileSync(at(name), 'utf8') }));
const entries = new Set(pages.flatMap(({ html }) => Array.from(html.matchAll(ADDRESS), ([, path = '']) => path)));

rmSync(at('dist'), { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: import.meta.dirname,
  // An entry's name is that of its path: `tenant-main`.
  entryPoints: Array.from(entries, (path) => ({
    in: path,
    out: path
      .replace(/^src\//u, '')
      .replaceAll('/', '-')
      .replace(/\.\w+$/u, ''),
  })),
  outdir: 'dist/assets',
  entryNames: '[name]-[hash]',
  chunkNames: 'shared-[hash]',
  bundle: true,
  splitting: true,
  minify: true,
  format: 'esm',
  loader: { '.svg': 'copy' },
  // All these browsers know light-dark(), nesting and native dialogs.
  target: ['chrome123', 'firefox121', 'safari17.5'],
  logLevel: 'warning',
  metafile: true,
});

/** Beside each asset what is sent of it: the ingress compresses nothing while it serves. */
function compress(file: string): number {
  const content = readFileSync(at(file));
  const zipped = gzipSync(content, { level: 9 });
  writeFileSync(at(`${file}.br`), brotliCompressSync(content));
  writeFileSync(at(`${file}.gz`), zipped);
  return zipped.byteLength;
}

const assets = Object.entries(metafile.outputs);
const size = assets.reduce((sum, [file]) => sum + compress(file), 0);
if (size > GZIP_BYTES_MAX) throw new Error(`The console has ${size} bytes, compressed: more than ${GZIP_BYTES_MAX}.`);

for (const { name, html } of pages) {
  const preloads = new Set<string>();
  const page = html.replace(ADDRESS, (_match, path: string) => {
    const [file, output] = assets.find(([, { entryPoint }]) => entryPoint === path) ?? [];
    for (const { path: chunk } of output?.imports ?? []) preloads.add(basename(chunk));
    return `./assets/${basename(file ?? '')}`;
  });
  const links = Array.from(preloads, (chunk) => `  <link rel="modulepreload" href="./assets/${chunk}" />\n  `);
  writeFileSync(
    at(`dist/${name}`),
    page.replace('</head>', () => `${links.join('')}</head>`),
  );
}
