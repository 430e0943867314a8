import { expect, it } from '@jest/globals';

import { waitFor } from '../../support/chat.ts';
import { useAdmin, useService } from '../../support/use-service.ts';

const shards = [0];
const admin = useAdmin({
  queues: () => Promise.resolve(shards.map((shard) => admin.queues.queue(shard, 'interactive'))),
});
const service = useService({ env: { QUEUE_SHARDS: '1' }, workers: 0 });

it('the board shows the queues of a shard that is added while the ingress runs', async () => {
  const namesOf = async () => {
    const { body } = await admin.call('get', '/admin/queues/api/queues');
    return (body.queues as { name: string }[]).map(({ name }) => name);
  };
  expect(await namesOf()).toEqual(['shard-0.interactive', 'compliance']);

  shards.push(3);

  expect(await namesOf()).toEqual(['shard-0.interactive', 'shard-3.interactive', 'compliance']);
});

it('figures and metrics have a shard that another process has put a tenant on', async () => {
  const { tenantId } = await service.startTenant();
  const shardsOf = async () => {
    const { body } = await service.admin('get', '/queues?limit=100');
    return new Set((body.data as { shard: number }[]).map(({ shard }) => shard));
  };
  expect(await shardsOf()).toEqual(new Set([0]));

  await service.models.tenants.updateOne({ _id: tenantId }, { $set: { shard: 3 } });
  // What is known of shards may be two seconds old.
  const shards = await waitFor(async () => {
    const known = await shardsOf();
    return known.size === 2 ? known : undefined;
  }, 'the new shard');

  expect(shards).toEqual(new Set([0, 3]));
  expect(await service.metrics()).toMatch(/^parley_queue_waiting\{queue="interactive",shard="3"[^}]*\} 0$/m);
});
