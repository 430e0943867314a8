import { Agent, request } from 'node:http';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';

import { freePort } from '../../scripts/embedded/ports.ts';
import { BUILD } from '../../shared/config/load-config.ts';
import { connectRedis, createRedis } from '../../shared/redis/connection.ts';
import { createKeyspace } from '../../shared/redis/keyspace.ts';
import { createProcessRegistry, PROTOCOL } from '../../shared/redis/stores/process-registry.ts';
import { chatOf, parseSse, waitFor, waitUntil } from '../support/chat.ts';
import { openFleet } from '../support/fleet.ts';
import type { Fleet, WorkerProcess } from '../support/fleet.ts';
import { openStream, post } from '../support/stream-client.ts';
import type { OpenStream } from '../support/stream-client.ts';
import { spawnProcess } from '../support/processes.ts';
import type { TestProcess } from '../support/processes.ts';

const CREDITS = 1_000_000;

const { version } = BUILD;
const OLD_WORKER = {
  kind: 'worker',
  version: '0.0.9',
  commit: 'old',
  protocol: PROTOCOL - 1,
  host: 'elsewhere',
  pid: 1,
  uptimeSeconds: 1,
  running: 0,
  draining: false,
} as const;

describe('a process that is told to stop', () => {
  let fleet: Fleet;
  /** The worker of most of these tests. */
  let worker: WorkerProcess;
  let tenant: Awaited<ReturnType<Fleet['startTenant']>>;
  beforeAll(async () => {
    fleet = await openFleet();
    tenant = await fleet.startTenant(CREDITS);
    await fleet.changeProvider({ chunks: 25, chunk_ms: 80 });
  }, 60_000);
  afterAll(async () => {
    await fleet.close();
  });

  async function openStreams(url: string, count: number): Promise<OpenStream[]> {
    const streams = await Promise.all(
      Array.from({ length: count }, (_, index) => openStream(url, tenant.liveKey, chatOf(`Story ${index}`))),
    );
    await waitUntil(() => streams.every(({ read }) => read.text !== ''), 'text of every stream');
    return streams;
  }

  /** Sends the signal; resolves with how the process ended, and after how many milliseconds. */
  async function end(process: TestProcess, signal: NodeJS.Signals = 'SIGTERM') {
    const startedAt = performance.now();
    process.signal(signal);
    const { code, signal: killedBy } = await process.exited;
    return { code, killedBy, tookMs: performance.now() - startedAt };
  }

  it('a worker: ends what it runs, leaves what comes to another, and exits with 0', async () => {
    const { url } = fleet.api;
    const leaving = await fleet.startWorker();
    const streams = await openStreams(url, 8);

    const ending = end(leaving);
    await waitUntil(() => leaving.stdout().includes('The process is stopping'), 'the stop');
    worker = await fleet.startWorker();
    const fresh = await openStreams(url, 4);
    const reads = await Promise.all([...streams, ...fresh].map(({ ended }) => ended));
    const { code, tookMs } = await ending;

    for (const read of reads) expect(read).toMatchObject({ finishReason: 'stop', isDone: true });
    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(10_000);
    expect(leaving.stdout()).toContain('The process has stopped');
    expect(leaving.stderr()).toBe('');
    await fleet.atRest(tenant.tenantId);
  }, 60_000);

  it('a worker: takes the signal of a supervisor and what npm passes on of it for one', async () => {
    const leaving = await fleet.startWorker();
    const isLeaving = () => (leaving.stdout().includes('The process is stopping') ? true : undefined);
    await end(worker);
    worker = leaving;
    const streams = await openStreams(fleet.api.url, 4);

    const ending = end(leaving);
    await waitFor(isLeaving, 'the stop');
    leaving.signal('SIGTERM');
    worker = await fleet.startWorker();
    const reads = await Promise.all(streams.map(({ ended }) => ended));

    for (const read of reads) expect(read).toMatchObject({ finishReason: 'stop', isDone: true });
    expect((await ending).code).toBe(0);
  }, 60_000);

  it('an ingress: lets open streams end, takes no new connection, and exits with 0', async () => {
    const api = await fleet.startApi();
    const streams = await openStreams(api.url, 8);
    // A client that keeps its connection must not hold up the end once its answer is there.
    const agent = new Agent({ keepAlive: true });
    const kept = await new Promise<number | undefined>((resolve) => {
      request(`${api.url}/health/live`, { agent }, (response) => {
        response.resume().on('end', () => {
          resolve(response.statusCode);
        });
      }).end();
    });
    const callsBefore = (await fleet.providerCounts()).size;
    const complete = post(api.url, tenant.liveKey, '/chat', chatOf('A complete one, please'));
    await waitUntil(async () => (await fleet.providerCounts()).size > callsBefore, 'the call of the complete request');

    const ending = end(api);
    await waitUntil(() => api.stdout().includes('The process is stopping'), 'the stop');
    await expect(fetch(`${api.url}/health/live`)).rejects.toThrow();
    const reads = await Promise.all(streams.map(({ ended }) => ended));
    const answer = await complete;
    const text = await answer.text();
    const lastEndedAt = performance.now();
    const { code } = await ending;

    expect(kept).toBe(200);
    for (const read of reads) expect(read).toMatchObject({ finishReason: 'stop', isDone: true });
    expect([answer.status, JSON.parse(text)]).toMatchObject([200, { object: 'chat.completion' }]);
    expect(code).toBe(0);
    expect(performance.now() - lastEndedAt).toBeLessThan(5_000);
    expect(api.stderr()).toBe('');
    agent.destroy();
  }, 60_000);

  it('an ingress: cuts what lasts longer than its grace', async () => {
    const api = await fleet.startApi({ SHUTDOWN_GRACE_SECONDS: '1' });
    const [stream] = await openStreams(api.url, 1);

    const { code, tookMs } = await end(api);
    const read = await stream?.ended;

    expect(code).toBe(0);
    expect(tookMs).toBeLessThan(6_000);
    // Without an end event: the request goes on, and its stream can be read again elsewhere.
    expect(read).toMatchObject({ finishReason: undefined, isDone: false, end: 'broken' });
    const path = /\n\n: this server restarts; go on with GET (\S+)\n$/.exec(stream?.text() ?? '')?.[1];
    expect(path).toBe(`/platform/v1/chat/stream/${stream?.requestId}?starting_after=${read?.events.at(-1)?.seq}`);
    expect(api.stdout()).toMatch(/The grace is over[^}]*"count":1\b/);
    const more = await fetch(`${fleet.api.url}${path}`, { headers: { Authorization: `Bearer ${tenant.liveKey}` } });
    expect(parseSse(await more.text()).at(-2)?.chunk).toHaveProperty('choices.0.finish_reason', 'stop');
  }, 60_000);

  it('an ingress: is not ready and serves on while it drains, and announces the end of each connection', async () => {
    const api = await fleet.startApi({ DRAIN_SECONDS: '4' });

    const ending = end(api);
    const notReady = await waitFor(async () => {
      const answer = await fetch(`${api.url}/health/ready`);
      return answer.status === 503 ? answer : undefined;
    }, 'readiness to end');
    const listed = await waitFor(async () => {
      const { data } = (await fleet.admin('GET', '/processes')) as { data: Record<string, unknown>[] };
      return data.some(({ pid, draining }) => pid === api.pid && draining === true) ? data : undefined;
    }, 'the list of processes to say that it drains');
    const answer = await post(api.url, tenant.liveKey, '/chat', chatOf('Hi'));
    const { code, tookMs } = await ending;

    expect(listed).toContainEqual(
      expect.objectContaining({ kind: 'worker', version, pid: worker.pid, draining: false, protocol: PROTOCOL }),
    );
    const after = (await fleet.admin('GET', '/processes')) as { data: { pid: number }[] };
    expect(after.data.map(({ pid }) => pid)).not.toContain(api.pid);
    expect(await notReady.json()).toEqual({ status: 'unavailable', checks: { process: 'it is stopping' } });
    expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close']);
    expect(code).toBe(0);
    expect(tookMs).toBeGreaterThan(4_000);
    await expect(fetch(`${api.url}/health/live`)).rejects.toThrow();
  }, 60_000);

  it('an ingress that starts beside older workers: is alive, waits for their end, and says so', async () => {
    const redis = createRedis(fleet.redis.url, 'producer');
    await connectRedis(redis);
    const registry = createProcessRegistry(redis, createKeyspace());
    const beating = setInterval(() => void registry.beat({ ...OLD_WORKER, id: 'wrk_old' }), 1_000);
    await registry.beat({ ...OLD_WORKER, id: 'wrk_old' });
    const ports = { PORT: String(await freePort()), ADMIN_PORT: String(await freePort()) };
    const api = spawnProcess('api/main.ts', { ...fleet.settings, ...ports });
    const at = (path: string) => fetch(`http://127.0.0.1:${ports.PORT}${path}`).catch(() => undefined);

    const waits = await waitFor(() => at('/health/ready'), 'the ingress to open its port', 30_000);
    const live = await at('/health/live');
    clearInterval(beating);
    await registry.remove('wrk_old');
    await waitUntil(async () => (await at('/health/ready'))?.ok === true, 'readiness', 30_000);

    const reason = `1 of 2 workers do not know protocol ${PROTOCOL}; replace the workers first`;
    expect([waits.status, await waits.json()]).toEqual([503, { status: 'unavailable', checks: { workers: reason } }]);
    expect(await live?.json()).toEqual({ status: 'ok', version, commit: 'unknown' });
    expect(api.stdout().split('\n')[0]).toContain(`"version":"${version}"`);
    expect(api.stdout().split(reason)).toHaveLength(2);
    expect(await end(api)).toMatchObject({ code: 0 });
    redis.disconnect();
  }, 60_000);

  it('an ingress whose grace is over: answers who still waits for a complete answer, which goes on', async () => {
    await fleet.changeProvider({ chunks: 25, chunk_ms: 200 });
    const api = await fleet.startApi({ SHUTDOWN_GRACE_SECONDS: '1' });
    const callsBefore = (await fleet.providerCounts()).size;
    const waiting = post(api.url, tenant.liveKey, '/chat', chatOf('A complete one, please'));
    await waitUntil(async () => (await fleet.providerCounts()).size > callsBefore, 'the call of the complete request');

    const { code } = await end(api);
    const answer = await waiting;
    const body = JSON.parse(await answer.text()) as { error: { code: string; message: string; request_id: string } };

    expect([code, answer.status]).toEqual([0, 503]);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(body.error.code).toBe('model_unavailable');
    // Looking up does not keep a request running that nobody reads; who follows the sentence does.
    const path = /\/chat\/stream\/req_\w{24}/.exec(body.error.message)?.[0];
    expect(path).toBe(`/chat/stream/${body.error.request_id}`);
    const read = await fetch(`${fleet.api.url}/platform/v1${path}`, {
      headers: { Authorization: `Bearer ${tenant.liveKey}` },
    });
    expect(parseSse(await read.text()).at(-2)?.chunk).toHaveProperty('choices.0.finish_reason', 'stop');
  }, 60_000);

  it('while Redis does not answer: exits in time all the same, and in order', async () => {
    // Before the next test, whose requests another worker takes over.
    const [api, idle] = await Promise.all([fleet.startApi({ SHUTDOWN_GRACE_SECONDS: '2' }), fleet.startWorker()]);

    process.kill(fleet.redis.pid, 'SIGSTOP');
    const ends = await Promise.all([end(api), end(idle)]);
    process.kill(fleet.redis.pid, 'SIGCONT');
    const isReady = async () => (await fetch(`${fleet.api.url}/health/ready`)).ok || undefined;
    await waitFor(isReady, 'the other ingress to be ready again');

    // Nothing ran, so the worker waits neither for its requests' time limit nor for Redis.
    expect(ends.map(({ code, killedBy }) => [code, killedBy])).toEqual([
      [0, null],
      [0, null],
    ]);
    for (const { tookMs } of ends) expect(tookMs).toBeLessThan(20_000);
  }, 60_000);

  it('twice: ends at once, whatever it was doing', async () => {
    await fleet.changeProvider({ chunks: 25, chunk_ms: 1_000 });
    const streams = await openStreams(fleet.api.url, 2);

    const ends = [worker, fleet.api].map(async (process) => {
      const ending = end(process, 'SIGINT');
      await waitUntil(() => process.stdout().includes('The process is stopping'), 'the stop');
      const secondAt = performance.now();
      process.signal('SIGTERM');
      const { code } = await ending;
      return { code, tookMs: performance.now() - secondAt };
    });

    for (const { code, tookMs } of await Promise.all(ends)) {
      expect(code).toBe(1);
      // Its streams would take 25 s; a busy machine may take seconds to end a process.
      expect(tookMs).toBeLessThan(10_000);
    }
    await Promise.all(streams.map(({ ended }) => ended));
  }, 60_000);
});
