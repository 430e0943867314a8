import { setTimeout as pause } from 'node:timers/promises';

import { isRefused } from '../checker/requests-by-id.ts';
import type { SentRequest } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import { isWhole, none, range } from './findings.ts';

const AWAY_MS = 30_000;
const CLIENTS = 12;
const ASK_EVERY_MS = 1_000;

/** E8. */
export const mongoAway: Experiment = {
  name: 'E8',
  title: 'MongoDB killed under load, back after 30 s',
  needsOwnMongo: true,
  lab: { provider: 'echo=1', models: { mobius: 'sim?first_token_ms=100&chunks=8&chunk_ms=50' } },
  async run(lab) {
    const tenant = await lab.openTenant(1_000_000);
    let isOver = false;
    const stateless: SentRequest[] = [];
    const withEntity: SentRequest[] = [];
    const client = async (number: number) => {
      for (let turn = 0; !isOver; turn += 1) {
        const sent = lab.caller.send({ url: lab.urlOf(number + turn), tenant, stream: (number + turn) % 3 !== 0 });
        stateless.push(sent);
        await sent.ended;
      }
    };
    const pupil = async () => {
      for (let turn = 0; !isOver; turn += 1) {
        const body = { entity_id: `pupil-${turn % 3}` };
        const sent = lab.caller.send({ url: lab.urlOf(turn), tenant, isEchoed: false, body });
        withEntity.push(sent);
        await sent.ended;
        await pause(ASK_EVERY_MS, undefined, { signal: lab.signal });
      }
    };
    const clients = [...range(CLIENTS, client), pupil()];
    // The keys are known to both ingresses, and the routes to both workers.
    await lab.waitFor(() => stateless.filter(isWhole).length > CLIENTS * 4, 'the first answers');

    const killedAt = performance.now();
    await lab.mongo.current().kill();
    await pause(AWAY_MS, undefined, { signal: lab.signal });
    await lab.mongo.restart();
    const backAt = performance.now();
    await lab.waitFor(
      () => withEntity.some((sent) => isWhole(sent) && sent.last().sentAt > backAt),
      'an entity’s turn',
    );
    isOver = true;
    await Promise.all(clients);

    const during = stateless.filter((sent) => sent.last().sentAt > killedAt && sent.last().sentAt < backAt);
    return {
      figures: { 'stateless meanwhile': during.length, 'with an entity': withEntity.length },
      verdicts: [
        none(
          'stateless requests go on',
          stateless.filter((sent) => !isWhole(sent)),
        ),
        none(
          'those with an entity are answered, or refused with 503',
          withEntity.filter((sent) => (isRefused(sent) ? sent.last().status !== 503 : !isWhole(sent))),
        ),
      ],
    };
  },
};
