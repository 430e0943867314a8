import { randomBytes } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { freePort } from '../../../embedded/ports.ts';
import type { ServerProcess } from '../../../embedded/server-process.ts';
import { createAdminApi } from '../../../harness/admin-api.ts';
import type { AdminApi } from '../../../harness/admin-api.ts';
import { createBatchClient } from '../../../harness/batch-client.ts';
import { assertReady, callJson } from '../../../harness/http.ts';
import { startProgram } from '../../../harness/program.ts';
import { routeToSimulated } from '../../../harness/route-to-simulated.ts';
import { openOwnRedis, superviseMongo } from '../../../harness/stores.ts';
import type { Supervisor } from '../../../harness/supervisor.ts';
import type { Account, AccountTerms, StatefulSystem, Statement } from '../system.ts';
import { stopAll, superviseRestartable, together } from './restartable.ts';
import type { Restartable } from './restartable.ts';

/** What every adapter gets for a system that this benchmark starts itself. */
export interface StartOptions {
  supervisor: Supervisor;
  dataDir: string;
  providerUrl: string;
  log: (line: string) => void;
}

const WORKERS = 2;
/** For tenant limits that are not being measured: the highest that the administration accepts. */
const HIGH = 1_000_000;
const UNLIMITED = { tpm: 1_000_000_000, chat_rpm: HIGH, stream_rpm: HIGH, max_in_flight: null } as const;
const UNLIMITED_TENANT = { tenant_rpm: null, tenant_tpm: null } as const;
/** The settlement takes less than a second. */
const BOOK_SECONDS = 3;
const PAGE = 100;

interface Transaction {
  type: string;
  credits: number;
  request_id: string | null;
}

/** Two ingresses and two workers, as `npm run build && npm start` would run them, on their own stores. */
export async function startParleySystem({
  supervisor,
  providerUrl,
  log,
  ...options
}: StartOptions): Promise<StatefulSystem> {
  const { signal } = supervisor;
  const dataDir = join(options.dataDir, 'parley');
  await mkdir(dataDir);
  const redisPort = await freePort();
  const redis = await superviseRestartable(supervisor, 'Redis', () =>
    openOwnRedis({ dataDir, port: redisPort, signal }),
  );
  const mongo = await superviseMongo({ supervisor, dataDir, log });
  const adminToken = randomBytes(24).toString('hex');
  const env = {
    NODE_ENV: 'production',
    ADMIN_TOKEN: adminToken,
    CREDENTIALS_KEY: randomBytes(32).toString('base64'),
    REDIS_URL: `redis://127.0.0.1:${redisPort}`,
    MONGODB_URI: mongo.uri,
  };
  const program = (name: string, file: string, port: number, more: Record<string, string>): Promise<ServerProcess> =>
    startProgram({
      name,
      file,
      signal,
      env: { ...env, ...more },
      log: { file: join(dataDir, `${name}.log`) },
      ready: () => assertReady(`http://127.0.0.1:${port}/health/ready`),
    });
  const start = async (name: string, file: string, portName: string, more: Record<string, string> = {}) => {
    const port = await freePort();
    const open = () => program(name, file, port, { ...more, [portName]: String(port) });
    return { port, component: await superviseRestartable(supervisor, name, open) };
  };

  const adminPort = await freePort();
  const first = await start('ingress-1', 'api/main.ts', 'PORT', { ADMIN_PORT: String(adminPort) });
  const second = await start('ingress-2', 'api/main.ts', 'PORT', { ADMIN_PORT: String(await freePort()) });
  const gateways = [first.component, second.component];
  const admin = createAdminApi(`http://127.0.0.1:${adminPort}`, adminToken);
  await routeToSimulated(admin, providerUrl, 'sim');
  const workers: Restartable[] = [];
  for (let number = 1; number <= WORKERS; number += 1)
    workers.push((await start(`worker-${number}`, 'workers/main.ts', 'WORKER_PORT')).component);
  const [worker] = workers;
  if (worker === undefined) throw new Error('There is no worker.');
  const urls = [first, second].map(({ port }) => `http://127.0.0.1:${port}/platform/v1`);
  return {
    ...describe(urls),
    openAccount: (terms) => openTenant(admin, terms),
    components: {
      worker,
      'every worker': together(workers),
      gateway: first.component,
      'every gateway': together(gateways),
      redis,
    },
    close: () => stopAll([...workers, ...gateways, redis]),
    async submitBatch({ key }, lines) {
      const batches = createBatchClient({ url: () => urls[0] ?? '', key, signal });
      const { id } = await batches.submit(lines);
      return {
        async cancel() {
          await batches.cancel(id);
          await batches.until(id, ({ status }) => status === 'cancelled' || status === 'completed');
        },
      };
    },
    notes: [`two ingresses, ${WORKERS} workers, Redis (AOF everysec), MongoDB: ${mongo.label}; settings as by default`],
  };
}

/** How to call Parley, wherever it runs. */
function describe(urls: readonly string[]) {
  const bearer = ({ key }: Account) => ({ Authorization: `Bearer ${key}` });
  return {
    name: 'parley',
    version: 'this commit',
    urls,
    missing: {},
    requestIdHeader: 'x-request-id',
    bookSeconds: BOOK_SECONDS,
    ask: (account, { content, stream, maxTokens }) => ({
      path: stream ? '/chat/stream' : '/chat',
      headers: { ...bearer(account), 'Content-Type': 'application/json' },
      body: JSON.stringify({
        model: 'mobius',
        messages: [{ role: 'user', content }],
        ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
      }),
    }),
    resume: (account, requestId, lastEventId) => ({
      path: `/chat/stream/${requestId}`,
      headers: { ...bearer(account), ...(lastEventId === '' ? {} : { 'Last-Event-ID': lastEventId }) },
    }),
    statement: (account) => readStatement(urls[1] ?? urls[0] ?? '', account),
  } satisfies Partial<StatefulSystem>;
}

async function openTenant(admin: AdminApi, terms: AccountTerms): Promise<Account> {
  const { requestsPerMinute: rpm = HIGH, tokens: credits = HIGH * 1_000 } = terms;
  const body = { name: 'Benchmark', rpm, credits, ...UNLIMITED, ...UNLIMITED_TENANT };
  const tenant = await admin.send('POST', '/admin/v1/tenants', body);
  const id = String(tenant['id']);
  const key = await admin.send('POST', `/admin/v1/tenants/${id}/keys`, { name: 'bench', mode: 'live', scopes: ['*'] });
  return { id, key: String(key['value']) };
}

/** Uses the tenant's own billing endpoints; a token of mobius costs one credit. */
async function readStatement(url: string, { key }: Account): Promise<Statement> {
  const get = async (path: string) => {
    const { status, body } = await callJson('GET', `${url}${path}`, { token: key });
    if (status !== 200) throw new Error(`GET ${path} answered ${status}.`);
    return body;
  };
  const transactions: Transaction[] = [];
  for (let after = ''; ;) {
    const page = await get(`/billing/transactions?limit=${PAGE}${after}`);
    // docs/guide/billing.md.
    const data = page['data'] as (Transaction & { id: string })[];
    transactions.push(...data);
    if (page['has_more'] !== true) break;
    after = `&after=${data.at(-1)?.id ?? ''}`;
  }
  const usage = transactions.filter(({ type }) => type === 'usage');
  const sum = (rows: readonly Transaction[]) => rows.reduce((total, { credits }) => total + credits, 0);
  return {
    granted: sum(transactions.filter(({ type }) => type !== 'usage')),
    charged: -sum(usage),
    balance: Number((await get('/billing'))['balance']),
    bookings: usage.flatMap(({ request_id: id }) => id ?? []),
  };
}
