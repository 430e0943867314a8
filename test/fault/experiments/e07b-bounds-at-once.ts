import type { LedgerLine } from '../checker/evidence.ts';
import type { SentRequest, Tenant } from '../client/caller.ts';
import type { Experiment } from '../experiment.ts';
import type { Lab } from '../lab/lab.ts';
import { expectThat, none, range } from './findings.ts';

const MICRO = 1_000_000;
const ANSWER_TOKENS = 1_000;
/** What admission expects of an answer: the key's answers were short so far. */
const SHORT_TOKENS = 20;
const BALANCE = 20_000;
const TOKENS = 5_000;
/** Text of several scripts and of code, of which a token is shorter than the four bytes of an estimate. */
const DENSE = [
  'qzxkvjwpgh 漢字仮名交文章例文 กขคงจฉชซฌญฎฏ 9f86d081884c7d659a2f',
  'n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg= if(a[7]!=="x"){b+=3;}',
].join(' ');

interface Bound {
  name: string;
  credits: number;
  fields?: Record<string, unknown>;
  mode?: 'test';
  stream: boolean;
  /** Answers of dense text, which is counted by the service. */
  isDense?: true;
  /** What is bounded. */
  limit: number;
  unit: 'credits' | 'tokens';
}

const budget = { credits: 1_000_000, fields: { monthly_token_budget: TOKENS }, limit: TOKENS, unit: 'tokens' } as const;
const test = { credits: 0, fields: { test_daily_tokens: TOKENS }, mode: 'test' } as const;
const allowance = { ...test, limit: TOKENS, unit: 'tokens' } as const;
/** At the rate of oloid, 4 credits a token. */
const twoMaxima = 2 * ANSWER_TOKENS * 4;

const BOUNDS: readonly Bound[] = [
  { name: 'complete answers, two maxima', credits: twoMaxima, stream: false, limit: twoMaxima, unit: 'credits' },
  { name: 'streams, a balance', credits: BALANCE, stream: true, limit: BALANCE, unit: 'credits' },
  { name: 'complete answers, a monthly budget', stream: false, ...budget },
  { name: 'streams, a monthly budget', stream: true, ...budget },
  { name: 'complete answers, the test allowance', stream: false, ...allowance },
  { name: 'streams, the test allowance', stream: true, ...allowance },
  {
    name: 'dense complete answers, a balance',
    credits: TOKENS,
    stream: false,
    isDense: true,
    limit: TOKENS,
    unit: 'credits',
  },
  { name: 'dense streams, a balance', credits: TOKENS, stream: true, isDense: true, limit: TOKENS, unit: 'credits' },
  { name: 'dense streams, a monthly budget', stream: true, isDense: true, ...budget },
  { name: 'dense complete answers, the test allowance', stream: false, isDense: true, ...allowance },
];

interface Sent {
  bound: Bound;
  tenant: Tenant;
  requests: SentRequest[];
}

async function sendAll(lab: Lab, bound: Bound, count: number): Promise<Sent> {
  const tenant = await lab.openTenant(bound.credits, bound.fields, bound.mode);
  const { client, keys } = lab.inspector;
  await client.set(keys.meanCompletion(tenant.keyId), SHORT_TOKENS);
  const body = { max_tokens: ANSWER_TOKENS };
  const call = { tenant, words: 8, isEchoed: false, stream: bound.stream, body };
  const model = bound.isDense ? ('mobius' as const) : ('oloid' as const);
  return {
    bound,
    tenant,
    requests: range(count, (index) => lab.caller.send({ ...call, model, url: lab.urlOf(index) })),
  };
}

function usedOf({ tenant, bound }: Sent, ledger: readonly LedgerLine[]): number {
  const lines = ledger.filter(({ tenantId, type }) => tenantId === tenant.tenantId && type === 'usage');
  const used = lines.map(({ amountMicro, promptTokens, completionTokens }) =>
    bound.unit === 'credits' ? -amountMicro / MICRO : promptTokens + completionTokens,
  );
  return used.reduce((sum, one) => sum + one, 0);
}

/** E7b. No worker runs until all are admitted, so that every request sees the same balance, budget and allowance. */
export const boundsAtOnce: Experiment = {
  name: 'E7b',
  title: '60 requests at once against each bound: balance, monthly budget, test allowance',
  lab: {
    workers: 0,
    models: {
      oloid: `sim?tokens=${ANSWER_TOKENS}&chunks=100&chunk_ms=20`,
      mobius: `sim?usage=absent&text=${`${DENSE} ${DENSE} ${DENSE}`.replaceAll('+', '%2B')}`,
    },
  },
  async run(lab, size) {
    const count = size === 'full' ? 60 : 12;
    const all: Sent[] = [];
    for (const bound of BOUNDS) all.push(await sendAll(lab, bound, count));
    const requests = all.flatMap((sent) => sent.requests);
    await lab.waitFor(async () => {
      const waiting = await lab.inspector.client.zcard(lab.inspector.keys.prioritized('interactive'));
      return waiting + requests.filter((sent) => sent.last().end !== 'open').length === requests.length;
    }, 'all requests to be admitted');
    const admitted = await lab.inspector.client.zcard(lab.inspector.keys.prioritized('interactive'));
    await Promise.all([lab.startWorker(), lab.startWorker()]);
    await lab.untilEnded();

    return {
      figures: { admitted },
      verdicts: [
        none(
          'all end with stop or length, or are refused with the bound’s own error',
          requests.filter(({ last }) => {
            const { status, finishReason } = last();
            return status === 402 || status === 429 ? false : finishReason !== 'stop' && finishReason !== 'length';
          }),
        ),
      ],
      measure: ({ ledger }) =>
        Object.fromEntries(
          all.map((sent) => [sent.bound.name, `${usedOf(sent, ledger)} of ${sent.bound.limit} ${sent.bound.unit}`]),
        ),
      judge: ({ ledger }) =>
        all.map((sent) => {
          const { name, limit, unit } = sent.bound;
          const used = usedOf(sent, ledger);
          return expectThat(
            `${name}: none of it too much, and most of it is used`,
            used <= limit && used >= limit / 2,
            `${used} of ${limit} ${unit}`,
          );
        }),
    };
  },
};
