import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { findProgram } from '../../../scripts/embedded/find-program.ts';
import { freePort } from '../../../scripts/embedded/ports.ts';
import { installSystemPackages } from '../../../scripts/embedded/system-package.ts';
import { ROOT } from '../../../scripts/harness/program.ts';
import type { Ingress } from './lab.ts';
import { until } from './until.ts';

export type ProxyKind = 'nginx' | 'haproxy';

const START_MS = 10_000;

/** The block of the guide's page for a proxy. */
async function pageBlock(kind: ProxyKind): Promise<string> {
  const page = await readFile(join(ROOT, 'docs/guide/proxies.md'), 'utf8');
  const block = new RegExp(`^\`\`\`${kind}\\n([^]*?)^\`\`\``, 'm').exec(page)?.[1];
  if (block === undefined) throw new Error(`docs/guide/proxies.md has no block for ${kind}.`);
  return block;
}

/** Addresses and the certificate are all that is changed of the page. */
function withAddresses(block: string, port: number, ingresses: readonly Ingress[]): string {
  const hosts = ingresses.map(({ url }) => new URL(url).host);
  const placed = block
    .replace('10.0.0.11:8080', hosts[0] ?? '')
    .replace('10.0.0.12:8080', hosts[1] ?? '')
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replace('bind :443 ssl crt /etc/haproxy/parley.pem', `bind 127.0.0.1:${port}`);
  if (/10\.0\.0\.|443/.test(placed)) throw new Error('The block of docs/guide/proxies.md has other addresses.');
  return placed;
}

/** Beside the page's block: what Debian's own main file would say. */
function aroundNginx(block: string, folder: string): string {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const http = ['access_log off;', ...temporary, block].join('\n');
  return `user root;\nworker_processes 2;\npid ${folder}/pid;\nevents { worker_connections 1024; }\nhttp {\n${http}\n}\n`;
}

/** The program, which root installs. A proxy that cannot be had fails the experiment: it is never left out unsaid. */
async function findProxy(kind: ProxyKind): Promise<string> {
  const found = await findProgram(kind);
  if (found !== undefined) return found;
  const packages = { apt: [kind === 'nginx' ? 'nginx-light' : kind], apk: [kind], dnf: [kind] };
  const failure = await installSystemPackages({ packages, log: () => undefined });
  const installed = await findProgram(kind);
  if (installed === undefined)
    throw new Error(`${kind} is not here, so nothing was tested: ${failure ?? 'not on the PATH'}.`);
  return installed;
}

/** The real proxy with the page's settings, before two ingresses. */
export async function startProxy(kind: ProxyKind, ingresses: readonly Ingress[], signal: AbortSignal) {
  const program = await findProxy(kind);
  const folder = await mkdtemp(join(tmpdir(), `parley-${kind}-`));
  const [port, file] = [await freePort(), join(folder, 'conf')];
  const block = withAddresses(await pageBlock(kind), port, ingresses);
  await writeFile(file, kind === 'nginx' ? aroundNginx(block, folder) : block);
  const args = kind === 'nginx' ? ['-e', 'stderr', '-p', folder, '-c', file, '-g', 'daemon off;'] : ['-db', '-f', file];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const exited = new Promise((resolve) => child.once('close', resolve));
  const url = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${url}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
    await rm(folder, { recursive: true, force: true });
  };
  if (!(await until(answers, { timeoutMs: START_MS, signal }))) {
    await stop();
    throw new Error(`${kind} does not serve: ${said.slice(0, 500)}`);
  }
  return { url, stop };
}
