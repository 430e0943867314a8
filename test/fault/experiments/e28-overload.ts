import { setTimeout as pause } from 'node:timers/promises';

import type { SentRequest, Tenant } from '../client/caller.ts';
import { isRefused } from '../checker/requests-by-id.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, isWhole, none, range } from './findings.ts';

/** Requests that the worker runs at once and how long each takes: 15 a second. */
const PLACES = 30;
const CHUNKS = 10;
const CHUNK_MS = 200;
const PER_SECOND = (PLACES * 1_000) / (CHUNKS * CHUNK_MS);
const LINE = 120;
/** Callers at any time, of what workers and line together can hold. */
const TIMES = 1.4;
const CLIENTS = TIMES * (PLACES + LINE);
/** Tenants are made so many at a time. */
const AT_ONCE = 15;
/** Of all who came back after the time they were told: no place is kept for them. */
const LET_IN_MIN = 0.8;
const THROUGHPUT_MIN = 0.85;
/** Callers come one after the other: before a request has ended nobody knows how long the others take. */
const COMING_MS = 15_000;
/** A caller who was answered sends the next request after at most this time. */
const THINK_MS = 4_000;
/** Until the line is full and the first callers have come back. */
const WARM_MS = 30_000;
/** The two lists of a line are not read at one moment. */
const LINE_MAX = LINE + 3;
const SAMPLE_MS = 500;
/** The bounds of a `Retry-After` for a queue, in seconds (docs/spec.md#retry-after). */
const TOLD_MAX = 30;

interface Load {
  lab: Lab;
  until: number;
  /** From when on it counts who is let in. */
  counted: number;
  refused: SentRequest[];
  /** Came back when they were told to: let in, or sent away again. */
  letIn: number;
  sentAway: number;
}

/** Sends one request after the other; one that is refused comes back when it was told to. */
async function call(load: Load, tenant: Tenant, first: number): Promise<void> {
  const { lab } = load;
  let number = first;
  let isBack = false;
  await pause((first * COMING_MS) / CLIENTS, undefined, { signal: lab.signal });
  while (performance.now() < load.until) {
    const sent = lab.caller.send({ url: lab.urlOf((number += 1)), tenant, words: 4, isEchoed: false });
    const { status, sentAt, retryAfterSeconds = 1 } = await sent.ended;
    const isRefusedNow = status !== 200;
    if (isBack && sentAt > load.counted) load[isRefusedNow ? 'sentAway' : 'letIn'] += 1;
    isBack = isRefusedNow;
    if (isRefusedNow) load.refused.push(sent);
    const waitMs = isRefusedNow ? retryAfterSeconds * 1_000 : Math.random() * THINK_MS;
    await pause(waitMs, undefined, { signal: lab.signal });
  }
}

/** Each caller is a tenant of its own: one tenant fills at most half of the line. */
async function openTenants(lab: Lab): Promise<Tenant[]> {
  const tenants: Tenant[] = [];
  while (tenants.length < CLIENTS) {
    tenants.push(...(await Promise.all(range(AT_ONCE, () => lab.openTenant(10_000_000)))));
  }
  return tenants;
}

/** E28: more callers than there is room for are told when there will be, and whoever is let in is served. */
export const overload: Experiment = {
  name: 'E28',
  title: 'half as many callers again as workers and line can hold, who come back when they are told to',
  lab: {
    workers: 1,
    models: { mobius: `sim?chunks=${CHUNKS}&chunk_ms=${CHUNK_MS}` },
    settings: { WORKER_CONCURRENCY: String(PLACES), QUEUE_MAX_WAITING: String(LINE) },
  },
  async run(lab, size) {
    const durationMs = size === 'full' ? 90_000 : 45_000;
    const tenants = await openTenants(lab);
    const startedAt = performance.now();
    const until = startedAt + durationMs;
    const load: Load = { lab, until, counted: startedAt + WARM_MS, refused: [], letIn: 0, sentAway: 0 };
    let longest = 0;
    const watch = async () => {
      while (performance.now() < until) {
        const queues = await lab.inspector.queues();
        longest = Math.max(longest, (queues['interactive prioritized'] ?? 0) + (queues['interactive wait'] ?? 0));
        await pause(SAMPLE_MS, undefined, { signal: lab.signal });
      }
    };
    await Promise.all([watch(), ...tenants.map((tenant, number) => call(load, tenant, number))]);

    const accepted = lab.caller.requests.filter((sent) => !isRefused(sent));
    const endedBetween = accepted.filter((sent) => {
      const { endedAt } = sent.last();
      return endedAt >= load.counted && endedAt < until;
    });
    const perSecond = (endedBetween.length * 1_000) / (durationMs - WARM_MS);
    const { refused } = load;
    const told = refused.map((sent) => sent.last());
    const back = load.letIn + load.sentAway;
    const letIn = load.letIn / Math.max(1, back);
    return {
      figures: {
        accepted: accepted.length,
        refused: refused.length,
        'came back when told to': back,
        'of them let in': letIn.toFixed(3),
        'longest line': longest,
        'answers a second': perSecond.toFixed(1),
        'told the longest time there is': told.filter(({ retryAfterSeconds }) => retryAfterSeconds === TOLD_MAX).length,
        'longest Retry-After': Math.max(0, ...told.map(({ retryAfterSeconds }) => retryAfterSeconds ?? 0)),
      },
      verdicts: [
        none(
          'everything accepted is answered whole',
          accepted.filter((sent) => !isWhole(sent)),
        ),
        none(
          `every refusal is 503 with Retry-After, at most ${TOLD_MAX}`,
          refused.filter((sent) => {
            const { status, retryAfterSeconds: seconds = 0 } = sent.last();
            return status !== 503 || seconds < 1 || seconds > TOLD_MAX;
          }),
        ),
        expectThat('there is more than fits', back > CLIENTS / 4, `${back} came back`),
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
