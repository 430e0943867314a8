import { setTimeout as pause } from 'node:timers/promises';

import type { SentRequest, Tenant } from '../client/caller.ts';
import { isRefused } from '../checker/requests-by-id.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, isWhole, none, range } from './findings.ts';

/** Requests that the worker runs at once and how long each takes: ten a second. */
const PLACES = 20;
const CHUNKS = 10;
const CHUNK_MS = 200;
const PER_SECOND = (PLACES * 1_000) / (CHUNKS * CHUNK_MS);
const LINE = 100;
/** Callers at any time, of what workers and line together can hold. */
const TIMES = 3;
const CLIENTS = TIMES * (PLACES + LINE);
/** One tenant's requests fill at most half of the line. */
const TENANTS = 6;
/** Of all who came back after the time they were told. */
const LET_IN_MIN = 0.95;
const THROUGHPUT_MIN = 0.85;
/** Until line and promises are full. */
const WARM_MS = 15_000;
/** Who comes late to a promised place finds a tenth more. */
const LINE_MAX = LINE * 1.1;
const SAMPLE_MS = 500;
/** What section 2 of the contract lets a queue say, in seconds. */
const TOLD_MAX = 30;

interface Tries {
  refused: SentRequest[];
  /** Came back when they were told to: let in, or sent away again. */
  letIn: number;
  sentAway: number;
}

/** Sends one request after the other; one that is refused comes back when it was told to. */
async function client(lab: Lab, tenant: Tenant, until: number, first: number, tries: Tries): Promise<void> {
  let number = first;
  let isBack = false;
  while (performance.now() < until) {
    const sent = lab.caller.send({ url: lab.urlOf((number += 1)), tenant, words: 4 });
    await sent.head;
    const refused = sent.last().status !== 200;
    if (isBack) tries[refused ? 'sentAway' : 'letIn'] += 1;
    isBack = refused;
    if (refused) {
      await sent.ended;
      tries.refused.push(sent);
      await pause((sent.last().retryAfterSeconds ?? 1) * 1_000, undefined, { signal: lab.signal });
    } else {
      await sent.ended;
    }
  }
}

/** E28: more callers than there is room for are told when there will be, and whoever is let in is served. */
export const overload: Experiment = {
  name: 'E28',
  title: 'three times as many callers as workers and line can hold, who come back when they are told to',
  lab: {
    workers: 1,
    provider: 'echo=1',
    models: { mobius: `sim?chunks=${CHUNKS}&chunk_ms=${CHUNK_MS}` },
    settings: { WORKER_CONCURRENCY: String(PLACES), QUEUE_MAX_WAITING: String(LINE) },
  },
  async run(lab, size) {
    const durationMs = size === 'full' ? 75_000 : 40_000;
    const tenants = await Promise.all(range(TENANTS, () => lab.openTenant(100_000_000)));
    const tries: Tries = { refused: [], letIn: 0, sentAway: 0 };
    const startedAt = performance.now();
    const until = startedAt + durationMs;
    let longest = 0;
    const watch = async () => {
      while (performance.now() < until) {
        const queues = await lab.inspector.queues();
        longest = Math.max(longest, (queues['interactive prioritized'] ?? 0) + (queues['interactive wait'] ?? 0));
        await pause(SAMPLE_MS, undefined, { signal: lab.signal });
      }
    };
    const clients = range(CLIENTS, (number) => {
      const tenant = tenants[number % TENANTS];
      return tenant === undefined ? Promise.resolve() : client(lab, tenant, until, number, tries);
    });
    await Promise.all([watch(), ...clients]);

    const accepted = lab.caller.requests.filter((sent) => !isRefused(sent));
    const endedBetween = accepted.filter((sent) => {
      const { endedAt } = sent.last();
      return endedAt >= startedAt + WARM_MS && endedAt < until;
    });
    const perSecond = (endedBetween.length * 1_000) / (durationMs - WARM_MS);
    const told = tries.refused.map((sent) => sent.last());
    const letIn = tries.letIn / Math.max(1, tries.letIn + tries.sentAway);
    return {
      figures: {
        accepted: accepted.length,
        refused: tries.refused.length,
        'let in when told to come back': letIn.toFixed(3),
        'longest line': longest,
        'answers a second': perSecond.toFixed(1),
        'longest Retry-After': Math.max(0, ...told.map(({ retryAfterSeconds }) => retryAfterSeconds ?? 0)),
      },
      verdicts: [
        none(
          'everything accepted is answered whole',
          accepted.filter((sent) => !isWhole(sent)),
        ),
        none(
          `every refusal is 503 with Retry-After, at most ${TOLD_MAX}`,
          tries.refused.filter((sent) => {
            const { status, retryAfterSeconds: seconds = 0 } = sent.last();
            return status !== 503 || seconds < 1 || seconds > TOLD_MAX;
          }),
        ),
        expectThat('there is more than fits', tries.refused.length > CLIENTS, `${tries.refused.length} refused`),
        expectThat('who comes back when told to is let in', letIn >= LET_IN_MIN, `${letIn.toFixed(3)} of them`),
        expectThat('the line stays within its limit', longest <= LINE_MAX, `${longest} waited`),
        expectThat(
          'the overload costs no throughput',
          perSecond >= THROUGHPUT_MIN * PER_SECOND,
          `${perSecond.toFixed(1)} a second of ${PER_SECOND}`,
        ),
      ],
      judge: ({ ledger }) => {
        const charged = new Set(ledger.filter(({ type }) => type === 'usage').map(({ requestId }) => requestId));
        const missing = accepted.filter((sent) => !charged.has(sent.id()));
        return [
          none('everything accepted has its ledger entry', missing),
          expectThat(
            'nothing refused has one',
            charged.size === accepted.length,
            `${charged.size} for ${accepted.length}`,
          ),
        ];
      },
    };
  },
};
