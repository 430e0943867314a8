/**
 * `node scripts/screenshots.ts [PROGRAM]`: makes the pictures in docs/assets from a running service under load. PROGRAM
 * is Chromium's command, `chromium` by default. Everything runs on this machine; nothing is fetched from elsewhere.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { openChromium } from './screenshots/chromium.ts';
import { ROOT } from './harness/program.ts';
import { openTenant } from './harness/open-tenant.ts';
import { runSupervised } from './harness/run-supervised.ts';
import type { SupervisedTask } from './harness/run-supervised.ts';
import { superviseProvider } from './harness/supervise-provider.ts';
import { startProcesses } from './harness/start-processes.ts';
import { superviseMongo, superviseRedis } from './harness/stores.ts';

const ASSETS = join(ROOT, 'docs', 'assets');
/** Slow enough that requests are seen running. */
const MODEL = 'sim?first_token_ms=300&chunk_ms=150&chunks=80';
const STREAMS = 48;
const LINES = 600;
const WIDTH = 1280;
/** A larger picture makes the page slow to open. */
const BYTES_MAX = 300_000;

const print = (line: string) => {
  console.log(line);
};

function messagesOf(text: string) {
  return { messages: [{ role: 'user', content: text }] };
}

/** Streams that run and a batch that waits, for as long as the pictures take. */
async function load(url: string, key: string): Promise<void> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  const post = (path: string, body: object) =>
    fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const requests = Array.from({ length: LINES }, (_, n) => ({ custom_id: `line-${n}`, body: messagesOf(`Line ${n}`) }));
  await (await post('/batches', { requests })).text();
  await post('/chat', { ...messagesOf('A word, please.'), max_tokens: 1 });
  for (let n = 0; n < STREAMS; n += 1) void post('/chat/stream', messagesOf(`Stream ${n}`)).catch(() => undefined);
}

async function takeAll({ supervisor, dataDir }: SupervisedTask): Promise<number> {
  const redis = await superviseRedis({ supervisor, dataDir, log: print });
  const mongo = await superviseMongo({ supervisor, dataDir, log: print });
  const provider = await superviseProvider(supervisor, dataDir);
  const service = await startProcesses({
    supervisor,
    dataDir,
    redisUrl: redis.url,
    mongodbUri: mongo.uri,
    provider: { url: provider.url, model: MODEL },
  });
  const { key } = await openTenant(service.admin, 'Pictures');
  const take = await openChromium(supervisor, process.argv[2] ?? 'chromium', dataDir);
  await load(service.url, key);
  await sleep(2_000);

  const headers = { Authorization: `Bearer ${service.adminToken}` };
  const shots = [
    { name: 'bull-board.png', url: `${service.adminUrl}/admin/queues/`, height: 300, settleMs: 4_000, headers },
    {
      name: 'api-docs.png',
      url: new URL('/docs/', service.url).href,
      height: 800,
      settleMs: 6_000,
      script: "document.querySelector('.opblock-tag-section')?.scrollIntoView()",
    },
  ];
  for (const { name, ...shot } of shots) {
    const file = join(ASSETS, name);
    await take({ ...shot, file, width: WIDTH });
    const bytes = statSync(file).size;
    print(`${name}: ${Math.round(bytes / 1024)} KiB`);
    if (bytes > BYTES_MAX) throw new Error(`${name} is larger than ${BYTES_MAX} bytes.`);
  }
  return 0;
}

process.exitCode = await runSupervised('screenshots', print, takeAll);
