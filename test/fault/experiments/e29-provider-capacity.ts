import { setTimeout as pause } from 'node:timers/promises';

import { createBatchClient, endedOf } from '../client/batch-client.ts';
import { callJson } from '../../../scripts/harness/http.ts';
import type { SentRequest, Tenant } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, isWhole, none, range } from './findings.ts';
import { breakerChanges, routeTo } from './routes.ts';

const PROVIDER = 'full';
/** Until every worker has the route. */
const ROUTED_MS = 1_500;
const SAMPLE_MS = 50;

async function route(lab: Lab, model: string, settings: object = {}): Promise<void> {
  await routeTo(lab, [{ provider: PROVIDER, model }], { max_retries: 2, ...settings });
  await pause(ROUTED_MS, undefined, { signal: lab.signal });
}

async function statsOf(lab: Lab): Promise<Record<string, number>> {
  return (await callJson('GET', `${lab.providerUrl}/stats?detail=0`)).body as Record<string, number>;
}

const callsOf = async (lab: Lab) => [...(await lab.providerCounts()).values()].map(({ calls }) => calls);

/** Calls that were made again, as a share of the requests. */
async function repeated(lab: Lab): Promise<number> {
  const calls = await callsOf(lab);
  return calls.reduce((sum, count) => sum + count - 1, 0) / Math.max(1, calls.length);
}

async function opened(lab: Lab): Promise<number> {
  return (await breakerChanges(lab, PROVIDER)).filter(({ to }) => to === 'open').length;
}

const SLOTS = 4;
const FIRST_MS = 200;
const CHUNK_MS = 100;
const CHUNKS = 19;
const ANSWER_MS = FIRST_MS + (CHUNKS - 1) * CHUNK_MS;
const CALLERS = 100;
/** What the server itself does: all its slots, all the time. */
const ALONE_MS = (CALLERS / SLOTS) * ANSWER_MS;
const THROUGHPUT_MIN = 0.9;

function atFourSlots(name: string, title: string, settings: object, repeatedMax: number): Experiment {
  return {
    name,
    title,
    lab: { workers: 2 },
    async run(lab) {
      await route(lab, `sim?slots=${SLOTS}&first_token_ms=${FIRST_MS}&chunk_ms=${CHUNK_MS}&chunks=${CHUNKS}`, settings);
      const tenant = await lab.openTenant(100_000_000);
      const startedAt = performance.now();
      const sent = range(CALLERS, (index) =>
        lab.caller.send({ url: lab.urlOf(index), tenant, stream: index % 2 === 0, isEchoed: false }),
      );
      await Promise.all(sent.map(({ ended }) => ended));
      const took = performance.now() - startedAt;
      const throughput = ALONE_MS / took;
      const [again, opens] = [await repeated(lab), await opened(lab)];
      return {
        figures: {
          answered: sent.filter(isWhole).length,
          'throughput, of the server alone': throughput.toFixed(3),
          'made again, of requests': again.toFixed(3),
        },
        verdicts: [
          none(
            'everybody is answered',
            sent.filter((one) => !isWhole(one)),
          ),
          expectThat('no breaker opens', opens === 0, `${opens} times`),
          expectThat('calls are not made again', again <= repeatedMax, `${again.toFixed(3)} of them`),
          expectThat('the server is kept busy', throughput >= THROUGHPUT_MIN, `${throughput.toFixed(3)} of it`),
        ],
      };
    },
  };
}

/** E29: a server with 4 slots, which its administrator has set. */
export const fourSlotsSet = atFourSlots(
  'E29',
  '100 callers at a server with 4 slots, as is set',
  { max_in_flight: 4 },
  0,
);

/** E29b: the same server, of which nothing is known. */
export const fourSlotsFound = atFourSlots('E29b', '100 callers at a server with 4 slots, which are found', {}, 0.2);

const AT_ONCE = 500;
const WITHIN_MS = 5_000;

/** E30: a provider that can take much is not kept waiting by the search for its ceiling. */
export const manyAtOnce: Experiment = {
  name: 'E30',
  title: '500 streams at once to a provider of which nothing is known, and which can take them all',
  lab: { workers: 2 },
  async run(lab) {
    await route(lab, 'sim?first_token_ms=300&chunk_ms=500&chunks=20');
    const tenant = await lab.openTenant(1_000_000_000);
    const startedAt = performance.now();
    range(AT_ONCE, (index) => lab.caller.send({ url: lab.urlOf(index), tenant, words: 4, isEchoed: false }));
    let most = 0;
    let fullMs = Infinity;
    while (performance.now() - startedAt < 2 * WITHIN_MS && fullMs === Infinity) {
      most = Math.max(most, (await statsOf(lab))['in_flight'] ?? 0);
      if (most >= AT_ONCE) fullMs = performance.now() - startedAt;
      await pause(SAMPLE_MS, undefined, { signal: lab.signal });
    }
    await lab.untilEnded();
    return {
      figures: { 'all in flight after, ms': Math.round(fullMs), 'at once': most },
      verdicts: [
        expectThat(`the provider has all within ${WITHIN_MS} ms`, fullMs <= WITHIN_MS, `${most} after ${fullMs} ms`),
        none(
          'everybody is answered',
          lab.caller.requests.filter((sent) => !isWhole(sent)),
        ),
      ],
    };
  },
};

const RPM = 600;
const TPM = 60_000;
/** With its prompt an answer takes about as many tokens as the provider allows for a request. */
const WORDS = 20;
const TOKENS = 60;
/** After a cold start, and after the limit was halved. */
const SETTLE_MS = 30_000;
const USED_MIN = 0.95;
const REFUSED_MAX = 0.01;
const SENDERS = 150;

/** Sends one request after the other. */
async function keepSending(lab: Lab, tenant: Tenant, isOver: () => boolean): Promise<void> {
  for (let index = 0; !isOver(); index += 1) {
    const body = { max_tokens: TOKENS };
    await lab.caller.send({ url: lab.urlOf(index), tenant, words: WORDS, isEchoed: false, body }).ended;
  }
}

/** E31: a provider that counts requests and tokens a minute. */
export const countedByTheMinute: Experiment = {
  name: 'E31',
  title: '4 workers at a provider of 600 requests and 60,000 tokens a minute, whose limit is halved',
  lab: { workers: 4, keepsRecords: false },
  async run(lab, size) {
    const measureMs = size === 'full' ? 60_000 : 20_000;
    await callJson('POST', `${lab.providerUrl}/settings`, { body: { rpm: RPM, tpm: TPM } });
    await route(lab, `sim?first_token_ms=200&chunk_ms=50&tokens=${TOKENS}`);
    const tenant = await lab.openTenant(1_000_000_000);
    let isOver = false;
    const senders = range(SENDERS, () => keepSending(lab, tenant, () => isOver));
    const measure = async (limit: number) => {
      await pause(SETTLE_MS, undefined, { signal: lab.signal });
      const [before, startedAt] = [await statsOf(lab), performance.now()];
      await pause(measureMs, undefined, { signal: lab.signal });
      const [after, minutes] = [await statsOf(lab), (performance.now() - startedAt) / 60_000];
      const grown = (name: string) => (after[name] ?? 0) - (before[name] ?? 0);
      const calls = grown('calls');
      const refused = grown('failed');
      const requests = (calls - refused) / (limit * minutes);
      const tokens = (grown('prompt_tokens') + grown('completion_tokens')) / (limit * (TPM / RPM) * minutes);
      return { used: Math.max(requests, tokens), refused: refused / Math.max(1, calls) };
    };
    const first = await measure(RPM);
    await callJson('POST', `${lab.providerUrl}/settings`, { body: { rpm: RPM / 2, tpm: TPM / 2 } });
    const second = await measure(RPM / 2);
    isOver = true;
    await callJson('POST', `${lab.providerUrl}/settings`, { body: { rpm: null, tpm: null } });
    await Promise.all(senders);
    const opens = await opened(lab);
    const judged = (
      [
        ['whole limit', first],
        ['halved limit', second],
      ] as const
    ).flatMap(([name, { used, refused }]) => [
      expectThat(`${name}: it is used`, used >= USED_MIN, `${used.toFixed(3)} of it`),
      expectThat(`${name}: few calls are refused`, refused <= REFUSED_MAX, `${refused.toFixed(4)} of them`),
    ]);
    return {
      figures: {
        'used of the whole limit': first.used.toFixed(3),
        'refused of it': first.refused.toFixed(4),
        'used of the halved limit': second.used.toFixed(3),
        'refused then': second.refused.toFixed(4),
        sent: lab.caller.requests.length,
      },
      verdicts: [
        ...judged,
        expectThat('no breaker opens', opens === 0, `${opens} times`),
        none(
          'everybody is answered',
          lab.caller.requests.filter((sent) => !isWhole(sent) && sent.last().finishReason !== 'length'),
        ),
      ],
    };
  },
};

const LINES = 300;
const PLACES = 8;
const firstMs = ({ readings }: SentRequest): number => {
  const [reading] = readings;
  return (reading?.events[0]?.at ?? Infinity) - (reading?.sentAt ?? 0);
};

/** E32: a batch has what interactive requests leave of a provider. */
export const batchesTakeTheRest: Experiment = {
  name: 'E32',
  title: 'a batch at a provider of 8 places, and interactive requests that fill half of them',
  lab: { workers: 2 },
  async run(lab) {
    const answerMs = 1_000;
    await route(lab, `sim?slots=${PLACES}&first_token_ms=100&chunk_ms=100&chunks=10`, { max_in_flight: PLACES });
    const tenant = await lab.openTenant(100_000_000);
    const batches = createBatchClient({
      url: () => `${lab.urlOf(0)}/platform/v1`,
      key: tenant.key,
      signal: lab.signal,
    });
    const startedAt = performance.now();
    const { id } = await batches.submit(LINES);
    await lab.waitFor(async () => endedOf(await batches.find(id)) > PLACES, 'the first lines');
    const other = await lab.openTenant(100_000_000);
    let isOver = false;
    const callers = range(PLACES / 2, async (index) => {
      while (!isOver) await lab.caller.send({ url: lab.urlOf(index), tenant: other, words: 4, isEchoed: false }).ended;
    });
    await lab.waitFor(async () => endedOf(await batches.find(id)) === LINES, 'the batch', 300_000);
    const batchMs = performance.now() - startedAt;
    isOver = true;
    await Promise.all(callers);
    const waits = lab.caller.requests.map(firstMs).toSorted((a, b) => a - b);
    const middle = waits[Math.floor(waits.length / 2)] ?? Infinity;
    // Half of the places are the callers' own, but for the time until their next request has one.
    const used = ((LINES + lab.caller.requests.length) * answerMs) / PLACES / batchMs;
    return {
      figures: {
        'interactive requests': lab.caller.requests.length,
        'first text, median (ms)': Math.round(middle),
        'batch, s': Math.round(batchMs / 1_000),
        'places used': used.toFixed(3),
      },
      verdicts: [
        none(
          'everybody is answered',
          lab.caller.requests.filter((sent) => !isWhole(sent)),
        ),
        // The next place that becomes free is theirs: 8 places of a second each.
        expectThat('interactive requests come first', middle <= answerMs, `${middle} ms`),
        expectThat('batches take the rest', used >= THROUGHPUT_MIN, `${used.toFixed(3)} of the places`),
      ],
    };
  },
};
