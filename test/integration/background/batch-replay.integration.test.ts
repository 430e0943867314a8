import { expect, it } from '@jest/globals';

import { replayLab } from '../../support/replay-lab.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { SCRIPTED_ANSWER, useScriptedBatches } from '../../support/use-scripted-batches.ts';
import { waitFor, waitUntil } from '../../support/wait-for.ts';

const POISON = 'poison';
const SLOW = 'slow';

const { server, service, lab } = useScriptedBatches();

/** Answers everything but what poisons; what is slow waits for `release`. */
function serve(isBroken: () => boolean): { release: () => void } {
  const held: (() => void)[] = [];
  server.answer((res) => {
    const body = server.requests.at(-1)?.body ?? '';
    const fails = body.includes(POISON) && isBroken();
    const send = () => {
      res.writeHead(fails ? 503 : 200, { 'Content-Type': 'application/json' });
      res.end(fails ? '{"error":{"message":"Overloaded"}}' : SCRIPTED_ANSWER);
    };
    if (body.includes(SLOW)) held.push(send);
    else send();
  });
  return {
    release: () => {
      for (const send of held) send();
    },
  };
}

/** docs/spec.md#replay. */
it('a line that was given up is not replayed once its entity is deleted', async () => {
  const { replay } = replayLab(service);
  const tenant = await service.startTenant();
  const api = apiOf(service, tenant.key);
  await api('put', '/entities/pupil', {});
  const { release } = serve(() => true);
  const batchId = await lab.submit(tenant, [SLOW, POISON], { entityId: 'pupil' });
  const others = setInterval(() => void lab.submit(tenant, ['More']), 500);
  await lab.until(batchId, 'to give the line up', ({ failed }) => failed === 1, 60_000);
  clearInterval(others);
  await api('delete', '/entities/pupil');

  const { data } = await replay({ tenant_id: tenant.tenantId, kind: 'batch' });
  release();

  expect(data).toMatchObject([{ outcome: 'skipped', reason: 'entity_deleted' }]);
}, 120_000);

/** docs/spec.md#replay. */
it('a line that was given up is replayed while its batch runs, once, and is final afterwards', async () => {
  const { replay } = replayLab(service);
  const tenant = await service.startTenant();
  let isBroken = true;
  const { release } = serve(() => isBroken);
  const batchId = await lab.submit(tenant, [SLOW, `${POISON} one`, `${POISON} two`]);
  const others = setInterval(() => void lab.submit(tenant, ['More']), 500);
  await lab.until(batchId, 'to give lines up', ({ failed }) => failed === 2, 60_000);
  clearInterval(others);
  isBroken = false;
  const own = { tenant_id: tenant.tenantId, kind: 'batch' };

  const first = await replay({ ...own, limit: 1 });
  const second = await replay({ ...own, page: first.next_page, dry_run: true });
  const again = await replay({ ...own, limit: 1 });
  release();
  const row = await lab.until(batchId, 'to end', ({ status }) => status === 'completed', 60_000);

  expect(first).toMatchObject({ matched: 2, replayed: 1 });
  expect(first.data).toMatchObject([{ kind: 'batch', error_code: 'model_unavailable', outcome: 'replayed' }]);
  expect(second.data.map(({ outcome }) => outcome)).toEqual(['matched']);
  expect(again.data.map(({ id }) => id)).toEqual(second.data.map(({ id }) => id));
  expect(row).toMatchObject({ completed: 3, failed: 0, total: 3 });
  const lines = await waitFor(async () => {
    const found = await lab.lines(batchId);
    return found.every(({ requestJson, failedAt }) => requestJson === undefined && failedAt === undefined)
      ? found
      : undefined;
  }, 'nothing of the requests to be left');
  expect(lines.map(({ state }) => state)).toEqual(['completed', 'completed', 'completed']);
  const usage = () =>
    service.models.ledger.countDocuments({
      tenantId: tenant.tenantId,
      type: 'usage',
      requestId: { $in: lines.map(({ requestId }) => requestId) },
    });
  await waitUntil(async () => (await usage()) === 3, 'one charge for each');
  expect((await replay({ ...own })).matched).toBe(0);
}, 120_000);
