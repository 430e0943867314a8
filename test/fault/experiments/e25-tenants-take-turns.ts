import { setTimeout as pause } from 'node:timers/promises';

import { createChance } from '../../support/chance.ts';
import type { SentRequest, Tenant } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat } from './findings.ts';

/** Requests that the worker runs at once. */
const PLACES = 64;
const FIRST_TOKEN_MS = 3_000;
/** Between two pieces of three tokens. */
const CHUNK_MS = 300;
/** Answers differ in length, so that places do not all become free at once. */
const TOKENS_MIN = 9;
const TOKENS_MAX = 51;
const MEAN_MS = FIRST_TOKEN_MS + (CHUNK_MS * (TOKENS_MIN + TOKENS_MAX)) / 2 / 3;
const PER_SECOND = (PLACES * 1_000) / MEAN_MS;
/** What the flood sends of what the worker can do. */
const FLOOD = 20;
/** Half of it is one tenant's: some seconds of work. */
const LINE = 200;
const WARM_MS = 15_000;
const SLOWER_MAX = 1.2;
/**
 * Of the light tenant's 40 requests the 99th percentile would be the slowest: one pause of the machine in three minutes
 * would decide. Two may be later; how long each of them waited in line says what the service does to them.
 */
const SHARE = 0.95;
/**
 * A place becomes free 10.7 times a second, at random: one of 40 requests that are next waits longer than this in one of a
 * thousand runs (40 e^-10.7).
 */
const IN_LINE_MAX_MS = 1_000;
const THROUGHPUT_MIN = 0.95;
const WEIGHTS_OFF_MAX = 0.1;

interface Phase {
  lab: Lab;
  /** Aborts the senders. */
  until: number;
}

const firstTextMs = ({ readings }: SentRequest): number | undefined => {
  const [reading] = readings;
  const at = reading?.text === '' ? undefined : reading?.events[0]?.at;
  return at === undefined || reading === undefined ? undefined : at - reading.sentAt;
};

/** When its first text came; the clients' clock. */
const beganAt = (sent: SentRequest): number => sent.readings[0]?.events[0]?.at ?? Infinity;

/** Sends so many a second, whatever becomes of them; one that is refused is refused. */
async function send({ lab, until }: Phase, tenant: Tenant, perSecond: number): Promise<void> {
  const chance = createChance(25);
  const startedAt = performance.now();
  let sent = 0;
  while (performance.now() < until) {
    const due = ((performance.now() - startedAt) * perSecond) / 1_000;
    for (; sent < due; sent += 1) {
      const max_tokens = TOKENS_MIN + chance.below(TOKENS_MAX - TOKENS_MIN);
      lab.caller.send({ url: lab.urlOf(sent), tenant, words: 4, isEchoed: false, body: { max_tokens } });
    }
    await pause(20, undefined, { signal: lab.signal });
  }
}

const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((one, other) => one - other)[Math.ceil(values.length * share) - 1] ?? Infinity;

/** How long each was in line until a worker had it; the clock of Redis. */
async function waitsInLine({ inspector: { client, keys } }: Lab, requests: readonly SentRequest[]): Promise<number[]> {
  const times = requests.map((sent) => client.hmget(keys.record(sent.id()), 'acceptedAt', 'startedAt'));
  return (await Promise.all(times)).map(
    ([acceptedAt, startedAt]) => Number(startedAt ?? NaN) - Number(acceptedAt ?? NaN),
  );
}

/** E25: what one tenant sends does not delay another's next request, nor does it cost throughput. */
export const tenantsTakeTurns: Experiment = {
  name: 'E25',
  title: 'a tenant that sends 20 times what the workers can do beside one that sends a request a second',
  lab: {
    workers: 1,
    models: { mobius: `sim?first_token_ms=${FIRST_TOKEN_MS}&chunk_ms=${CHUNK_MS}&tokens=${TOKENS_MAX}` },
    settings: { WORKER_CONCURRENCY: String(PLACES), QUEUE_MAX_WAITING: String(LINE) },
    keepsRecords: false,
  },
  async run(lab, size) {
    const measureMs = size === 'full' ? 40_000 : 10_000;
    const [flood, light] = [await lab.openTenant(100_000_000), await lab.openTenant(100_000_000)];
    const of = (tenant: Tenant) => lab.caller.requests.filter(({ tenantId }) => tenantId === tenant.tenantId);
    const begunBetween = (requests: readonly SentRequest[], from: number) =>
      requests.filter((sent) => beganAt(sent) >= from && beganAt(sent) < from + measureMs);
    const phase = (ms: number): Phase => ({ lab, until: performance.now() + ms });

    await send(phase(measureMs), light, 1);
    await lab.untilEnded();
    const aloneMs = of(light).flatMap((sent) => firstTextMs(sent) ?? []);

    // One tenant's requests are served in the order in which they came.
    const first = performance.now();
    await send(phase(WARM_MS + measureMs), flood, FLOOD * PER_SECOND);
    const firstCome = begunBetween(lab.caller.requests, first + WARM_MS).length;
    const known = of(light).length;
    const second = performance.now();
    const both = phase(measureMs);
    await Promise.all([send(both, flood, FLOOD * PER_SECOND), send(both, light, 1)]);
    await lab.untilEnded();
    const inTurn = begunBetween(lab.caller.requests, second).length;
    const beside = of(light).slice(known);
    const besideMs = beside.map((sent) => firstTextMs(sent) ?? Infinity);
    const inLineMs = Math.max(...(await waitsInLine(lab, beside)));

    const [one, three] = [await lab.openTenant(100_000_000), await lab.openTenant(100_000_000, { weight: 3 })];
    const third = performance.now();
    const weighed = phase(WARM_MS + measureMs);
    await Promise.all([one, three].map((tenant) => send(weighed, tenant, 2 * PER_SECOND)));
    const [ones, threes] = [one, three].map((tenant) => begunBetween(of(tenant), third + WARM_MS).length);
    await lab.untilEnded();

    const ratio = percentile(besideMs, SHARE) / percentile(aloneMs, SHARE);
    const kept = inTurn / firstCome;
    const weights = (threes ?? 0) / Math.max(1, ones ?? 0);
    return {
      figures: {
        'first text alone, p95 (ms)': Math.round(percentile(aloneMs, SHARE)),
        'first text beside the flood, p95 (ms)': Math.round(percentile(besideMs, SHARE)),
        'the slowest (ms)': Math.round(Math.max(...besideMs)),
        'in line at most (ms)': inLineMs,
        ratio: ratio.toFixed(2),
        'begun first come, first served': firstCome,
        'begun in turn': inTurn,
        'weights 1:3 gave': `1:${weights.toFixed(2)}`,
        sent: lab.caller.requests.length,
      },
      verdicts: [
        expectThat(
          'the light tenant is served',
          besideMs.length >= (measureMs / 1_000) * 0.8,
          `${besideMs.length} sent`,
        ),
        expectThat('it is next in line', inLineMs <= IN_LINE_MAX_MS, `${inLineMs} ms`),
        expectThat(`its first text comes within ${SLOWER_MAX} times`, ratio <= SLOWER_MAX, `${ratio.toFixed(2)} times`),
        expectThat('turns cost no throughput', kept >= THROUGHPUT_MIN, `${kept.toFixed(2)} of it`),
        expectThat(
          'weights share the workers',
          Math.abs(weights / 3 - 1) <= WEIGHTS_OFF_MAX,
          `1:${weights.toFixed(2)}`,
        ),
      ],
    };
  },
};
