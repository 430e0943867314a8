/**
 * `npm run sbom [FILE]` writes the software bill of materials of the running service (CycloneDX, `sbom.cdx.json`),
 * based on package-lock.json. `npm run audit` asks the registry for known weaknesses of these packages.
 */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';

import { judgeAudit } from './judge-audit.ts';

const NPM_MS = 120_000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/** Returns npm's output, whatever its exit code; npm prints its own errors to standard error. */
function npm(...args: string[]): Promise<string> {
  const cli = process.env['npm_execpath'];
  const [command, rest] = cli?.endsWith('.js') === true ? [process.execPath, [cli]] : ['npm', []];
  return new Promise((resolve) => {
    const options = { timeout: NPM_MS, maxBuffer: OUTPUT_BYTES_MAX };
    execFile(command, [...rest, ...args], options, (_error, stdout) => {
      resolve(stdout);
    });
  });
}

interface Bom {
  metadata: { component: { name: string } };
  components: unknown[];
}

async function writeBom(file = 'sbom.cdx.json'): Promise<number> {
  const options = ['--sbom-format=cyclonedx', '--sbom-type=application', '--omit=dev', '--package-lock-only'];
  // npm's own format; anything else throws.
  const bom = JSON.parse(await npm('sbom', ...options)) as Bom;
  const { name } = JSON.parse(await readFile('package.json', 'utf8')) as { name: string };
  // npm uses the folder's name.
  bom.metadata.component.name = name;
  await writeFile(file, `${JSON.stringify(bom, undefined, 2)}\n`);
  console.log(`sbom: ${bom.components.length} packages in ${file}`);
  return 0;
}

async function audit(): Promise<number> {
  const verdict = judgeAudit(await npm('audit', '--json', '--omit=dev'));
  switch (verdict.kind) {
    case 'clean':
      console.log('audit: no known weakness');
      return 0;
    case 'minor':
      console.log(`audit: known weaknesses of low or moderate severity: ${verdict.packages.join(', ')}`);
      return 0;
    case 'vulnerable':
      console.error(`audit: known weaknesses of high or critical severity: ${verdict.packages.join(', ')}`);
      return 1;
    case 'unanswered':
      console.log(`audit: NOT DONE, because the registry did not answer (${verdict.reason})`);
      return 0;
  }
}

const [task, file] = process.argv.slice(2);
process.exitCode = task === 'sbom' ? await writeBom(file) : await audit();
