import { setTimeout as pause } from 'node:timers/promises';

import { beforeEach, describe, expect, it } from '@jest/globals';

import { DEFAULT_BREAKER } from '../../../shared/domain/breaker.ts';
import { waitUntil } from '../../support/wait-for.ts';
import { SCRIPTED_ANSWER, useScriptedBatches } from '../../support/use-scripted-batches.ts';
import { useTenantPerTest } from '../../support/use-service.ts';

const POISON = 'poison';
/** As an administrator leaves it, but for the pause, which a test has no time for. */
const BREAKER = { min_attempts: DEFAULT_BREAKER.minAttempts, open_ms: 1_000, max_open_ms: 2_000 };

const { server, service, lab, setProvider } = useScriptedBatches();
const tenant = useTenantPerTest(service);
beforeEach(async () => {
  server.requests.length = 0;
  await service.resetBreakers();
});

/** The provider fails what `fails` says, by the text of the call, and answers everything else. */
function serve(fails: (body: string) => boolean): void {
  server.answer((res) => {
    const isFailing = fails(server.requests.at(-1)?.body ?? '');
    res.writeHead(isFailing ? 503 : 200, { 'Content-Type': 'application/json' });
    res.end(isFailing ? '{"error":{"message":"Overloaded"}}' : SCRIPTED_ANSWER);
  });
}

const contents = (count: number) => Array.from({ length: count }, (_, index) => `Question ${index}`);

/** How often lines that wait have been tried in vain. */
async function tries(batchId: string): Promise<number> {
  return (await lab.lines(batchId)).reduce((sum, { retry }) => sum + (retry?.tries ?? 0), 0);
}

const charged = async () => (await lab.chargedAtRest(tenant)).sort();

describe('a batch whose provider is away', () => {
  it.each([
    ['with a breaker that opens', BREAKER],
    ['with a breaker that never opens', { min_attempts: 1_000_000 }],
  ])(
    'waits for it and fails no line: %s',
    async (_what, breaker) => {
      await setProvider({ breaker });
      serve(() => true);
      const batchId = await lab.submit(tenant, contents(200));
      await lab.until(batchId, 'to wait', ({ waitingFor }) => waitingFor === 'provider');
      // Lines on their way when it began fail once; afterwards one goes now and then.
      let before = -1;
      await waitUntil(async () => {
        const last = before;
        before = await tries(batchId);
        await pause(1_000);
        return before > 0 && before - last <= 1;
      }, 'those to fail');
      await pause(4_000);
      const row = await lab.row(batchId);
      expect(row).toMatchObject({ status: 'in_progress', completed: 0, failed: 0 });
      expect((await tries(batchId)) - before).toBeLessThanOrEqual(10);

      serve(() => false);

      expect(await lab.until(batchId, 'to end', ({ status }) => status === 'completed', 60_000)).toMatchObject({
        completed: 200,
        failed: 0,
        waitingFor: null,
      });
      const lines = await lab.lines(batchId);
      expect(await charged()).toEqual(lines.map(({ requestId }) => requestId).sort());
      expect(lines.filter(({ retry }) => retry !== undefined)).toEqual([]);
    },
    90_000,
  );

  it('can be cancelled', async () => {
    serve(() => true);
    const batchId = await lab.submit(tenant, contents(60));
    await lab.until(batchId, 'to wait', ({ waitingFor }) => waitingFor === 'provider');
    await lab.cancel(batchId);
    const row = await lab.until(batchId, 'to end', ({ status }) => status === 'cancelled');
    expect(row).toMatchObject({ completed: 0, failed: 60, waitingFor: null });
    expect(await charged()).toEqual([]);
    serve(() => false);
  });
});

describe('a line that fails while others succeed', () => {
  it('is given up after five tries, with its last error and without a charge', async () => {
    await setProvider();
    serve((body) => body.includes(POISON));
    const batchId = await lab.submit(tenant, [POISON, ...contents(20)]);
    const others = setInterval(() => void lab.submit(tenant, ['More']), 500);
    const row = await lab.until(batchId, 'to end', ({ status }) => status === 'completed', 60_000);
    clearInterval(others);

    expect(row).toMatchObject({ completed: 20, failed: 1 });
    const [poison] = await lab.lines(batchId);
    expect(poison?.state).toBe('failed');
    expect(poison?.entries?.at(-1)?.payload).toContain('model_unavailable');
    const calls = server.requests.filter(({ body }) => body.includes(POISON));
    // The first failure counts only if somebody was answered after the line was accepted.
    expect([5, 6]).toContain(calls.length);
    expect(await charged()).not.toContain(poison?.requestId);
  }, 90_000);

  it('succeeds when its provider answers in time, with one charge', async () => {
    let left = 3;
    serve((body) => body.includes(POISON) && left-- > 0);
    const batchId = await lab.submit(tenant, [POISON, ...contents(5)]);
    const row = await lab.until(batchId, 'to end', ({ status }) => status === 'completed', 60_000);
    expect(row).toMatchObject({ completed: 6, failed: 0 });
    expect(await charged()).toEqual((await lab.lines(batchId)).map(({ requestId }) => requestId).sort());
  });

  it('is not tried again where the failure is its own', async () => {
    server.answer((res) => {
      res.writeHead(400, { 'Content-Type': 'application/json' }).end('{"error":{"message":"No."}}');
    });
    const batchId = await lab.submit(tenant, ['Wrong']);
    await lab.until(batchId, 'to end', ({ status }) => status === 'completed');
    expect(server.requests.filter(({ body }) => body.includes('Wrong'))).toHaveLength(1);
  });
});
