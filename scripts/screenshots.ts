/**
 * `npx node scripts/screenshots.ts [PROGRAM]`: takes the pictures in docs/assets of a running service under load.
 * PROGRAM is Chromium's command, `chromium` by default. Everything runs on this machine, and nothing is fetched from
 * elsewhere. The load lasts for minutes, so that the charts have data.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { bucketOf } from '../shared/domain/job-tally.ts';
import { connectRedis, createRedis } from '../shared/redis/connection.ts';
import { createKeyspace } from '../shared/redis/keyspace.ts';
import { createQueueHistory, HOUR_MS } from '../shared/redis/stores/queue-history.ts';
import type { AdminApi } from './harness/admin-api.ts';
import { openChromium } from './screenshots/chromium.ts';
import { ROOT } from './harness/program.ts';
import { openTenant } from './harness/open-tenant.ts';
import { readArguments } from './harness/read-arguments.ts';
import { runSupervised } from './harness/run-supervised.ts';
import type { SupervisedTask } from './harness/run-supervised.ts';
import { superviseProvider } from './harness/supervise-provider.ts';
import { startProcesses } from './harness/start-processes.ts';
import { superviseMongo, superviseRedis } from './harness/stores.ts';

const ASSETS = join(ROOT, 'docs', 'assets');
/** Slow enough that running requests are visible. */
const MODEL = 'sim?first_token_ms=300&chunk_ms=150&chunks=80';
const STREAMS = 48;
/** Enough that some still wait when the last picture is taken. */
const LINES = 3_000;
/** Short requests that come and go, so that the charts of the last hour show movement. */
const QUICK = 'sim?first_token_ms=120&chunk_ms=20&chunks=10';
const MOVING_SECONDS = 280;
const PER_SECOND = 8;
const WIDTH = 1280;
/** Larger pictures would make the page open slowly. */
const BYTES_MAX = 300_000;

const PAST_DAYS = 6;
const openChart = `document.querySelector('[class*=collapseToggle][aria-expanded=false]')?.click()`;
const TABS = '[role=tab], [role=radio], button';
const pressLatency = `[...document.querySelectorAll('${TABS}')].find((tab) => tab.textContent === 'Latency')?.click()`;

const print = (line: string) => {
  console.log(line);
};

function messagesOf(text: string) {
  return { messages: [{ role: 'user', content: text }] };
}

/** Routes `oloid` to a provider that fails, and `mobius` to one that answers as `model` says. */
async function setModels(admin: AdminApi, model: string): Promise<void> {
  const target = { provider: 'simulated', weight: 1, priority: 1, context_window: 128_000 };
  const rates = { prompt: 1, completion: 1 };
  const failing = 'sim?fail=status&status=400';
  await admin.send('PUT', '/admin/v1/tiers/mobius', { rates, targets: [{ ...target, model }] });
  await admin.send('PUT', '/admin/v1/tiers/oloid', { rates, targets: [{ ...target, model: failing }] });
  // Workers learn new routes within seconds.
  await pause(6_000);
}

/** A service that was started minutes ago has no past days to show, so these are made up. */
async function addPastDays(redisUrl: string): Promise<void> {
  const client = createRedis(redisUrl, 'producer');
  await connectRedis(client);
  const history = createQueueHistory(client);
  for (const [queue, perHour, waitedMs] of [
    ['interactive', 900, 6],
    ['batch', 300, 3_000],
  ] as const) {
    const place = { prefix: createKeyspace().shard(0).tag, queue };
    for (let hour = 1; hour <= 24 * PAST_DAYS; hour += 1) {
      const completed = Math.round(perHour * (1.5 + Math.sin(hour / 4) + Math.sin(hour / 19)));
      if (completed <= 0) continue;
      const [few, some] = [Math.round(completed * 0.02), Math.round(completed * 0.1)];
      const spread = (ms: number) =>
        new Map([
          [bucketOf(ms), completed - few - some],
          [bucketOf(ms * 5), some],
          [bucketOf(ms * (20 + 15 * Math.sin(hour / 11))), few],
        ]);
      const tally = { completed, failed: Math.round(completed / 70), waited: spread(waitedMs), ran: spread(900) };
      await history.add(place, Date.now() - hour * HOUR_MS, tally);
    }
  }
  await client.quit();
}

type Post = (path: string, body: object) => Promise<Response>;

/** Starts streams, and a batch that waits, for as long as the pictures take. */
async function fill(post: Post): Promise<void> {
  const requests = Array.from({ length: LINES }, (_, n) => ({ custom_id: `line-${n}`, body: messagesOf(`Line ${n}`) }));
  await (await post('/batches', { requests })).text();
  for (let n = 0; n < STREAMS; n += 1) void post('/chat/stream', messagesOf(`Stream ${n}`)).catch(() => undefined);
}

/** Sends requests in waves, with an occasional one that fails at its provider. */
async function move(post: Post): Promise<void> {
  for (let second = 0; second < MOVING_SECONDS; second += 1) {
    const count = Math.round(PER_SECOND * (1 + 0.7 * Math.sin(second / 30)));
    for (let n = 0; n < count; n += 1) {
      const model = second % 10 === 0 && n === 0 ? 'oloid' : 'mobius';
      const asked = post('/chat', { ...messagesOf(`Question ${second}.${n}`), model });
      void asked.then((answer) => answer.text()).catch(() => undefined);
    }
    await pause(1_000);
  }
}

async function takeAll({ supervisor, dataDir }: SupervisedTask, program: string): Promise<number> {
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
  await addPastDays(redis.url);
  const take = await openChromium(supervisor, program, dataDir);
  const keyHeaders = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' };
  const post: Post = (path, body) =>
    fetch(service.url + path, { method: 'POST', headers: keyHeaders, body: JSON.stringify(body) });
  await setModels(service.admin, QUICK);
  await move(post);
  await setModels(service.admin, MODEL);
  await fill(post);
  await pause(2_000);

  const headers = { Authorization: `Bearer ${service.adminToken}` };
  const board = `${service.adminUrl}/admin/queues`;
  const lane = `${board}/queue/shard-0.interactive`;
  const shots = [
    { name: 'bull-board.png', url: `${board}/`, height: 420, settleMs: 4_000, headers },
    { name: 'bull-board-queue.png', url: lane, height: 760, settleMs: 4_000, headers, script: openChart },
    { name: 'bull-board-failed.png', url: `${lane}?status=failed`, height: 760, settleMs: 4_000, headers },
    { name: 'bull-board-history.png', url: `${board}/metrics-history`, height: 620, settleMs: 4_000, headers },
    {
      name: 'bull-board-latency.png',
      url: `${board}/metrics-history`,
      height: 620,
      settleMs: 4_000,
      headers,
      script: pressLatency,
    },
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

const read = readArguments('node scripts/screenshots.ts [PROGRAM]', process.argv.slice(2), (args) => {
  const [program = 'chromium', ...more] = parseArgs({ args, allowPositionals: true }).positionals;
  if (more.length > 0) throw new Error('Name one program.');
  return program;
});
process.exitCode =
  'exitCode' in read ? read.exitCode : await runSupervised('screenshots', print, (task) => takeAll(task, read.options));
