import { setTimeout as pause } from 'node:timers/promises';

import type { ProxyMode } from '../../support/tcp-proxy.ts';
import type { SentRequest, Tenant } from '../client/caller.ts';
import { startResumingClients } from '../client/resuming-clients.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab, Worker } from '../lab/lab.ts';
import { callsAtMost, expectThat, hasText, isWhole, none, range, SLACK_MS } from './findings.ts';

/** Longer than leases and locks. */
const REDIS_AWAY_MS = 12_000;
/** By so much later than the worker that starts does the other one find Redis again. */
const LATER_MS = 1_000;
const MONGO_AWAY_MS = 30_000;
/** Longer than leases and locks. */
const ONE_AWAY_MS = 15_000;
const CLIENTS = 6;
/** Records that gather between two rounds of settlement, with some slack. */
const OUTBOX_MAX = 50;
/** docs/spec.md#stores-away: with Redis away, 503 within 2 s. */
const REFUSE_WITHIN_MS = 2_000;
/** Requests that a worker had taken when its path broke wait for its lease and for the sweep. */
const TAKEN_OVER_WITHIN_MS = 15_000;
const SHORT = 'sim?first_token_ms=100&chunks=8&chunk_ms=50';
const STREAMS = 20;

/** E40. */
export const startsAtReturn: Experiment = {
  name: 'E40',
  title: 'kill -9 Redis during 50 streams, back after 12 s; a worker that starts finds it before the one that streams',
  lab: { provider: 'echo=1', models: { mobius: 'sim?chunks=60&chunk_ms=400' }, workers: 1, ownPaths: true },
  async run(lab) {
    const [worker] = lab.workers;
    if (worker === undefined) throw new Error('There is no worker.');
    const path = lab.pathsOf(worker).redis;
    const tenant = await lab.openTenant(1_000_000);
    const streams = range(50, (index) => lab.caller.send({ url: lab.urlOf(index), tenant, words: 120 }));
    await lab.waitFor(() => streams.every(hasText), 'text in the streams');

    await lab.redis.current().kill();
    path.set('reset');
    path.set('silent');
    await pause(REDIS_AWAY_MS, undefined, { signal: lab.signal });
    await lab.redis.restart();
    await lab.startWorker();
    await pause(LATER_MS, undefined, { signal: lab.signal });
    path.set('pass');
    await lab.untilEnded();

    return {
      figures: { 'whole streams': streams.filter(isWhole).length },
      verdicts: [
        none(
          'every stream is whole in the end: its worker lives',
          streams.filter((sent) => !isWhole(sent)),
        ),
      ],
      judge: (evidence) => [callsAtMost(1, evidence)],
    };
  },
};

/** Sends one request after the other by each of `urls` in turn, streamed and complete, until it is ended. */
function startClients(lab: Lab, tenant: Tenant, urlOf: (turn: number) => string, model: 'mobius' | 'oloid') {
  let isOver = false;
  const all: SentRequest[] = [];
  const clients = range(CLIENTS, async (number) => {
    for (let turn = 0; !isOver; turn += 1) {
      const sent = lab.caller.send({ url: urlOf(number + turn), tenant, stream: turn % 2 === 0, model });
      all.push(sent);
      await sent.ended;
    }
  });
  return {
    all,
    async end(): Promise<void> {
      isOver = true;
      await Promise.all(clients);
    },
  };
}

/** The worker that leads everything loses MongoDB, and another one has it. */
function leaderLosesMongo(name: string, title: string, how: ProxyMode): Experiment {
  return {
    ...{ name, title },
    lab: { provider: 'echo=1', models: { mobius: SHORT }, workers: 1, ownPaths: true },
    async run(lab) {
      const [leader] = lab.workers;
      if (leader === undefined) throw new Error('There is no worker.');
      const path = lab.pathsOf(leader).mongo;
      const other = await lab.startWorker();
      const tenant = await lab.openTenant(1_000_000);
      const clients = startClients(lab, tenant, lab.urlOf, 'mobius');
      await lab.waitFor(() => clients.all.filter(isWhole).length > CLIENTS * 4, 'the first answers');

      path.set(how);
      await pause(MONGO_AWAY_MS, undefined, { signal: lab.signal });
      const waiting = await lab.metric(other, 'parley_outbox_length');
      path.set('pass');
      await clients.end();

      return {
        figures: { requests: clients.all.length, 'records that wait after 30 s': waiting },
        verdicts: [
          none(
            'requests go on',
            clients.all.filter((sent) => !isWhole(sent)),
          ),
          expectThat('the other worker books them', waiting <= OUTBOX_MAX, `${waiting} records wait`),
        ],
      };
    },
  };
}

/** E41. */
export const leaderCutOff = leaderLosesMongo(
  'E41',
  'the leading worker’s connections to MongoDB break for 30 s',
  'reset',
);

/** E41b. */
export const leaderUnheard = leaderLosesMongo('E41b', 'MongoDB does not answer the leading worker for 30 s', 'silent');

/** It ended with an event of its stream, or with an error status that names the error. */
const isTyped = (sent: SentRequest) => isWhole(sent) || sent.last().errorCode !== undefined;

const tookMs = (sent: SentRequest) => sent.last().endedAt - sent.last().sentAt;

type Role = 'worker' | 'ingress';

/** Streams and short requests run; one process's path to Redis breaks for 15 s, and everybody else's holds. */
function oneLosesRedis(name: string, role: Role, how: ProxyMode, said: string): Experiment {
  return {
    name,
    title: `Redis ${said} one ${role} for 15 s, under load`,
    lab: { provider: 'echo=1', models: { mobius: 'sim?chunks=60&chunk_ms=400', oloid: SHORT }, ownPaths: true },
    async run(lab) {
      const cut: Worker | undefined = role === 'worker' ? lab.workers[0] : lab.ingresses[0];
      const sound = role === 'worker' ? lab.urlOf : () => lab.ingresses[1]?.url ?? '';
      if (cut === undefined) throw new Error('There is no such process.');
      const tenant = await lab.openTenant(10_000_000);
      const streams = range(STREAMS, (index) => lab.caller.send({ url: lab.urlOf(index), tenant, words: 120 }));
      const ofCut = role === 'ingress' ? streams.filter((_, index) => index % 2 === 0) : [];
      const resuming = startResumingClients(lab, CLIENTS, { tenant, words: 40 });
      const clients = startClients(lab, tenant, sound, 'oloid');
      await lab.waitFor(() => streams.every(hasText), 'text in the streams');
      await lab.waitFor(() => clients.all.filter(isWhole).length > CLIENTS * 2, 'the first answers');

      const path = lab.pathsOf(cut).redis;
      path.set(how);
      const awayAt = performance.now();
      const asked = role === 'ingress' ? await askMeanwhile() : [];
      await pause(Math.max(0, awayAt + ONE_AWAY_MS - performance.now()), undefined, { signal: lab.signal });
      path.set('pass');
      const backAt = performance.now();
      await clients.end();
      await resuming.end();
      await lab.untilEnded();

      async function askMeanwhile(): Promise<SentRequest[]> {
        const requests: SentRequest[] = [];
        while (performance.now() < awayAt + ONE_AWAY_MS) {
          requests.push(lab.caller.send({ url: lab.ingresses[0]?.url ?? '', tenant, model: 'oloid' }));
          await pause(LATER_MS, undefined, { signal: lab.signal });
        }
        return requests;
      }

      const meanwhile = clients.all.filter((sent) => sent.last().sentAt > awayAt && sent.last().sentAt < backAt);
      // Requests that a worker had under way end as if it had died.
      const later = clients.all.filter((sent) => sent.last().sentAt > awayAt);
      const slowestMs = Math.max(0, ...later.map(tookMs));
      const others = streams.filter((sent) => !ofCut.includes(sent));
      return {
        figures: {
          'requests meanwhile': meanwhile.length,
          'slowest request (s)': (slowestMs / 1000).toFixed(1),
          'whole streams': `${streams.filter(isWhole).length} of ${streams.length}`,
          ...(role === 'ingress' ? { 'whole ones of the ingress': ofCut.filter(isWhole).length } : {}),
          'requests resumed': resuming.finished.filter(({ readings }) => readings.length > 1).length,
        },
        verdicts: [
          none(
            'what comes to the others is answered whole',
            later.filter((sent) => !isWhole(sent)),
          ),
          none(
            'what they had ends whole or typed',
            clients.all.filter((sent) => !isTyped(sent)),
          ),
          expectThat(
            'none waits for the one that is cut off',
            slowestMs < TAKEN_OVER_WITHIN_MS + SLACK_MS,
            `${(slowestMs / 1000).toFixed(1)} s`,
          ),
          expectThat('the others serve on', meanwhile.length > CLIENTS * 4, `${meanwhile.length} requests`),
          none(
            'every stream ends whole or typed',
            streams.filter((sent) => !isTyped(sent)),
          ),
          ...(role === 'ingress'
            ? [
                none(
                  'streams of the other ingress are whole',
                  others.filter((sent) => !isWhole(sent)),
                ),
                none(
                  'the ingress without Redis says 503 in time',
                  asked.filter(
                    (sent) =>
                      !isWhole(sent) && (sent.last().status !== 503 || tookMs(sent) > REFUSE_WITHIN_MS + SLACK_MS),
                  ),
                ),
              ]
            : []),
          none(
            'clients that resume end',
            resuming.finished.filter((sent) => !isTyped(sent)),
          ),
        ],
        judge: (evidence) => [callsAtMost(2, evidence)],
      };
    },
  };
}

/** E42 to E42c, E43 to E43c. */
export const onePathToRedis: Experiment[] = (['worker', 'ingress'] as const).flatMap((role, index) => [
  oneLosesRedis(`E4${2 + index}`, role, 'reset', 'breaks the connections of'),
  oneLosesRedis(`E4${2 + index}b`, role, 'refuse', 'refuses'),
  oneLosesRedis(`E4${2 + index}c`, role, 'silent', 'does not answer'),
]);
