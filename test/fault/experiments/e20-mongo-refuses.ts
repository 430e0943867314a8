import { setTimeout as pause } from 'node:timers/promises';

import { callJson } from '../../../scripts/harness/http.ts';
import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { expectThat, isWhole, none, range } from './findings.ts';

const REFUSING_MS = 60_000;
const CLIENTS = 8;
const PAUSE_MS = 200;
const WRITE_EVERY_MS = 2_000;
const WRITES = ['insert', 'update', 'findAndModify', 'delete'];
/** What MongoDB says to a user without the role. */
const UNAUTHORIZED = { code: 13, codeName: 'Unauthorized' };
/** Settlement tries again within seconds; on a busy machine it takes some more. */
const BOOKED_WITHIN_MS = 30_000;

/** E20. MongoDB is there, answers what is read, and may not write. */
export const mongoRefuses: Experiment = {
  name: 'E20',
  title: 'MongoDB without the right to write for 60 s, under load',
  needsOwnMongo: true,
  lab: { provider: 'echo=1', models: { mobius: 'sim?first_token_ms=100&chunks=8&chunk_ms=50' }, ownPaths: true },
  async run(lab) {
    const paths = [...lab.ingresses, ...lab.workers].map((process) => lab.pathsOf(process).mongo);
    const tenant = await lab.openTenant(1_000_000);
    const chats: SentRequest[] = [];
    let isOver = false;
    const client = async (number: number) => {
      for (let turn = 0; !isOver; turn += 1) {
        const sent = lab.caller.send({ url: lab.urlOf(number + turn), tenant, stream: (number + turn) % 3 !== 0 });
        chats.push(sent);
        await sent.ended;
        await pause(PAUSE_MS, undefined, { signal: lab.signal });
      }
    };
    const write = (index: number) =>
      callJson('POST', `${lab.urlOf(index)}/platform/v1/keys`, {
        token: tenant.key,
        body: { name: `key-${index}`, mode: 'live' },
      });
    const clients = range(CLIENTS, client);
    await lab.waitFor(() => chats.filter(isWhole).length > CLIENTS * 2, 'the first answers');
    const before = (await write(0)).status;

    for (const path of paths) path.failCommands((command) => (WRITES.includes(command) ? UNAUTHORIZED : undefined));
    const statuses: number[] = [];
    for (let index = 1; index <= REFUSING_MS / WRITE_EVERY_MS; index += 1) {
      statuses.push((await write(index)).status);
      await pause(WRITE_EVERY_MS, undefined, { signal: lab.signal });
    }
    const waiting = await lab.inspector.client.xlen(lab.inspector.keys.outbox);
    for (const path of paths) path.failCommands(undefined);
    const backAt = performance.now();
    isOver = true;
    await Promise.all(clients);
    const isBooked = async () => (await lab.inspector.client.xlen(lab.inspector.keys.outbox)) === 0;
    await lab.waitFor(isBooked, 'all charges to be booked', BOOKED_WITHIN_MS);
    const bookedMs = performance.now() - backAt;
    const after = (await write(0)).status;
    const deadLetters = await lab.inspector.client.xlen(lab.inspector.keys.deadLetters);

    return {
      figures: {
        'commands refused': paths.reduce((sum, path) => sum + path.failed(), 0),
        'charges that waited': waiting,
        'booked after (s)': (bookedMs / 1000).toFixed(1),
      },
      verdicts: [
        none(
          'chat goes on',
          chats.filter((sent) => !isWhole(sent)),
        ),
        expectThat('charges wait', waiting > CLIENTS, `${waiting}`),
        expectThat('no charge becomes a dead letter', deadLetters === 0, `${deadLetters}`),
        expectThat(
          'what writes is 503 meanwhile',
          statuses.every((status) => status === 503),
          statuses.join(', '),
        ),
        expectThat('what writes works before and afterwards', before < 300 && after < 300, `${before}, ${after}`),
      ],
      judge: ({ ledger }) => {
        const booked = new Set(ledger.map(({ requestId }) => requestId));
        return [
          none(
            'everything is booked',
            chats.filter((sent) => !booked.has(sent.id())),
          ),
        ];
      },
    };
  },
};
