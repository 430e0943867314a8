import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { connectMongo } from '../../../shared/mongo/connection.ts';
import type { SentRequest, Tenant } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, isWhole, none, range } from './findings.ts';

const REQUESTS = 24;
/** Written in such portions. */
const PORTION = 500;

/** Puts back what was copied, into stores that have nothing. */
type Restore = () => Promise<void>;

/** Every document as it stands, as mongodump has them; the first process makes the indexes. */
async function copyMongo(uri: string): Promise<Restore> {
  const connection = await connectMongo(uri);
  const collections = (await connection.db?.listCollections().toArray()) ?? [];
  const copies = await Promise.all(
    collections
      .filter(({ name }) => !name.startsWith('system.'))
      // Numbers keep the types that they have in MongoDB.
      .map(async ({ name }) => ({
        name,
        documents: (await connection.db?.collection(name).find({}, { promoteValues: false }).toArray()) ?? [],
      })),
  );
  await connection.close();
  return async () => {
    const fresh = await connectMongo(uri);
    await fresh.dropDatabase();
    for (const { name, documents } of copies) {
      for (let from = 0; from < documents.length; from += PORTION)
        await fresh.db?.collection(name).insertMany(documents.slice(from, from + PORTION));
    }
    await fresh.close();
  };
}

/** The directory of the append-only file after BGREWRITEAOF, as the runbook says. */
async function copyRedis(lab: Lab): Promise<Restore> {
  const { client } = lab.inspector;
  await client.bgrewriteaof();
  const isRewritten = async () =>
    /aof_rewrite_in_progress:0\r?\naof_rewrite_scheduled:0/.test(await client.info('persistence'));
  await lab.waitFor(isRewritten, 'BGREWRITEAOF');
  const copy = join(lab.redisDir, '..', 'redis-copy');
  await cp(lab.redisDir, copy, { recursive: true });
  return async () => {
    await lab.redis.current().kill();
    await rm(lab.redisDir, { recursive: true, force: true });
    await cp(copy, lab.redisDir, { recursive: true });
    await lab.redis.restart();
  };
}

async function ask(lab: Lab, tenant: Tenant, count: number): Promise<SentRequest[]> {
  const sent = range(count, (number) => lab.caller.send({ url: lab.urlOf(number), tenant, stream: number % 3 !== 0 }));
  await Promise.all(sent.map(({ ended }) => ended));
  return sent;
}

/** R5. */
export const backupRestored: Experiment = {
  name: 'R5',
  title: 'MongoDB and Redis restored from copies, as the runbook says',
  lab: { ingresses: 1, workers: 1, provider: 'echo=1', models: { mobius: 'sim?chunks=8&chunk_ms=50' } },
  async run(lab) {
    const tenant = await lab.openTenant(1_000_000);
    const before = await ask(lab, tenant, REQUESTS);
    const isBooked = async () => (await lab.inspector.account(tenant.tenantId)).leftovers['pending charges'] === 0;
    await lab.waitFor(isBooked, 'the charges to be booked');
    const restoreMongo = await copyMongo(lab.mongo.url);
    const restoreRedis = await copyRedis(lab);

    await Promise.all([...lab.ingresses, ...lab.workers].map((victim) => victim.stop()));
    await restoreMongo();
    await restoreRedis();
    await lab.startIngress();
    await lab.startWorker();

    const streamed = before.filter(({ stream }) => stream);
    const reread = await Promise.all(streamed.map((sent) => lab.caller.reread(sent, lab.urlOf(0))));
    const differing = streamed.filter((sent, index) => reread[index]?.text !== sent.last().text);
    const after = await ask(lab, tenant, REQUESTS);
    return {
      verdicts: [
        none(
          'requests before and after are whole',
          [...before, ...after].filter((sent) => !isWhole(sent)),
        ),
        none('streams from before can be read again', differing),
      ],
      judge: ({ ledger }) => {
        const charges = ledger.filter(({ type }) => type === 'usage').length;
        return [expectThat('one charge each', charges === 2 * REQUESTS, `${charges} charges`)];
      },
    };
  },
};
