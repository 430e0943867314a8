/**
 * `npm run sbom [FILE]` writes the software bill of materials of the running service (CycloneDX, `sbom.cdx.json`),
 * based on package-lock.json. `npm run audit` asks the registry for known weaknesses of these packages.
 */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';

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

/** The result of `npm audit`. `unanswered`: the registry was not reached, or provides no advisories. */
export type AuditVerdict =
  | { kind: 'clean' }
  | { kind: 'vulnerable'; packages: string[] }
  /** Known weaknesses of lower severity: reported, but no reason to fail. */
  | { kind: 'minor'; packages: string[] }
  | { kind: 'unanswered'; reason: string };

/** These fail the check. */
const SEVERE: ReadonlySet<unknown> = new Set(['high', 'critical']);

type Fields = Readonly<Record<string, unknown>>;
const isRecord = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reads the output of `npm audit --json`, whose exit code is the same for a weakness and for no answer. */
export function judgeAudit(output: string): AuditVerdict {
  const report = parse(output);
  if (!isRecord(report)) return { kind: 'unanswered', reason: 'npm audit gave no report' };
  const { vulnerabilities, message } = report;
  if (!isRecord(vulnerabilities))
    return { kind: 'unanswered', reason: typeof message === 'string' ? message : 'npm audit gave no report' };
  const found = Object.entries(vulnerabilities).map(([name, details]) => {
    const severity = isRecord(details) ? details['severity'] : undefined;
    return { text: `${name} (${String(severity)})`, isSevere: SEVERE.has(severity) };
  });
  const severe = found.filter(({ isSevere }) => isSevere);
  if (severe.length > 0) return { kind: 'vulnerable', packages: severe.map(({ text }) => text) };
  return found.length === 0 ? { kind: 'clean' } : { kind: 'minor', packages: found.map(({ text }) => text) };
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
if (import.meta.main) process.exitCode = task === 'sbom' ? await writeBom(file) : await audit();
