import { expect, it } from '@jest/globals';
import type { Connection } from 'mongoose';

import { ensureIndexes } from '../../../shared/mongo/administration/catalogue.ts';
import { usageRollUpModel } from '../../../shared/mongo/accounts/usage-repository.ts';
import { createRecordEraser } from '../../../shared/mongo/compliance/record-eraser.ts';
import { createPseudonyms } from '../../../shared/domain/pseudonyms.ts';
import { BUCKET_MS, rollUpIdOf, USAGE_COUNTS } from '../../../shared/domain/roll-up.ts';
import { openTestMongo, uniqueName } from '../../support/stores.ts';
import { useStarted } from '../../support/use-service.ts';

const TENANT = { tenantId: 'ten_1', mode: 'any', entityId: undefined } as const;
const names = createPseudonyms(Buffer.alloc(32, 7));
const mongo = useStarted('mongo', () => openTestMongo(uniqueName('records-')));

/** The connection, which is lost after the first transaction. */
function dyingAfterOne(connection: Connection): Connection {
  let left = 1;
  const transaction: Connection['transaction'] = (work) => {
    left -= 1;
    return left < 0 ? Promise.reject(new Error('Killed')) : connection.transaction(work);
  };
  return new Proxy(connection, {
    get: (target, name) => (name === 'transaction' ? transaction : (Reflect.get(target, name) as unknown)),
  });
}

it('finds the sums of an entity again where the deletion of its tenant was killed between them', async () => {
  await ensureIndexes(mongo);
  const usage = usageRollUpModel(mongo);
  const rows = (['1d', '1h', '1m'] as const).flatMap((width) =>
    Array.from({ length: 100 }, (_, index) => {
      const place = { width, startMs: index * BUCKET_MS[width], scope: 'entity', entityId: 'pupil' } as const;
      const target = { keyId: 'key_1', tier: 'mobius', mode: 'live', endpoint: 'chat' } as const;
      const key = { tenantId: 'ten_1', ...place, ...target, provider: '', model: '', currency: '' };
      return { _id: rollUpIdOf(key), ...key, ...Object.fromEntries(USAGE_COUNTS.map((name) => [name, 1])) };
    }),
  );
  await usage.insertMany(rows);

  await expect(createRecordEraser(dyingAfterOne(mongo), names).usage(TENANT)).rejects.toThrow('Killed');
  expect(await createRecordEraser(mongo, names).usage(TENANT)).toEqual({ usage_rollups: 100 });

  const left = await usage.find({ tenantId: 'ten_1' }, { entityId: 1, requests: 1 }).lean();
  expect(left.map(({ entityId }) => entityId)).toEqual(rows.map(() => names.of('ten_1', 'pupil')));
});
