import { checkEvidence } from '../../fault/checker/check-evidence.ts';
import type { ClientRequest, Evidence, LedgerLine, Reading } from '../../fault/checker/evidence.ts';

/** An experiment in which nothing went wrong; tests spoil one thing at a time. */
export type Spoiled = { -readonly [Name in keyof Evidence]: Evidence[Name] };

const PROMPT = 'Kingfisher-river-river-river says that the hills are green';
const OTHER = 'Kingfisher-river-river-garden says that the sky is wide';

export function streamReading(requestId: string, text: string, more: Partial<Reading> = {}): Reading {
  const chunk = (content: object, reason: string | null) =>
    JSON.stringify({ id: requestId, choices: [{ index: 0, delta: content, finish_reason: reason }] });
  return {
    requestId,
    hasOwnId: true,
    status: 200,
    sentAt: 0,
    headAt: 1,
    endedAt: 4,
    end: 'closed',
    events: [
      { seq: 1, data: chunk({ role: 'assistant', content: text }, null), at: 2 },
      { seq: 2, data: chunk({}, 'stop'), at: 3 },
      { seq: 3, data: '[DONE]', at: 3 },
    ],
    text,
    finishReason: 'stop',
    errorCode: undefined,
    usage: { prompt: 10, completion: 8 },
    isDone: true,
    retryAfterSeconds: undefined,
    isReplayed: false,
    ...more,
  };
}

function streamRequest(canary: string, expectedText: string, readings: Reading[]): ClientRequest {
  return { canary, expectedText, tenantId: 'ten_1', stream: true, readings };
}

export function usageLine(requestId: string, more: Partial<LedgerLine> = {}): LedgerLine {
  return {
    tenantId: 'ten_1',
    type: 'usage',
    amountMicro: -18_000_000,
    requestId,
    tier: 'mobius',
    mode: 'live',
    promptTokens: 10,
    completionTokens: 8,
    isEstimated: false,
    finishReason: 'stop',
    ...more,
  };
}

const refused = streamReading('req_refused', '', {
  status: 503,
  events: [],
  finishReason: undefined,
  errorCode: 'model_unavailable',
  usage: undefined,
  isDone: false,
});

/** Two streams that were completed and one request that was refused. */
export function soundEvidence(): Spoiled {
  const record = { tenantId: 'ten_1', state: 'done', terminals: 1, increments: 1, finishReason: 'stop' };
  const count = { calls: 1, promptTokens: 10, completionTokens: 8 };
  return {
    requests: [
      streamRequest('Kingfisher-river-river-river', PROMPT, [streamReading('req_a', PROMPT)]),
      streamRequest('Kingfisher-river-river-garden', OTHER, [streamReading('req_b', OTHER)]),
      streamRequest('Kingfisher-river-river-letter', 'Kingfisher-river-river-letter', [refused]),
    ],
    provider: new Map([
      ['req_a', { ...count, answer: { text: PROMPT, isWhole: true, tokens: 12 } }],
      ['req_b', { ...count, answer: { text: OTHER, isWhole: true, tokens: 12 } }],
    ]),
    ledger: [
      { ...usageLine(''), type: 'grant', amountMicro: 100_000_000, requestId: undefined },
      usageLine('req_a'),
      usageLine('req_b'),
    ],
    accounts: [
      {
        tenantId: 'ten_1',
        grantedMicro: 100_000_000,
        balanceMicro: 64_000_000,
        ledgerMicro: 64_000_000,
        leftovers: { held: 0, pend: 0 },
      },
    ],
    records: [
      { ...record, requestId: 'req_a', text: PROMPT },
      { ...record, requestId: 'req_b', text: OTHER },
    ],
    keptAnswers: [{ requestId: 'req_b', text: OTHER, finishReason: 'stop' }],
    reconciliation: { exitCode: 0, output: 'shard 0: 1 tenants, no drift' },
    queues: { wait: 0, active: 0, outbox: 0 },
    exits: [
      { name: 'worker-1', how: 'SIGKILL', planned: 'SIGKILL' },
      { name: 'ingress-1', how: 'exit code 0', planned: 'exit code 0' },
    ],
    logs: [{ name: 'worker-1.log', text: '{"message":"A request ended.","requestId":"req_a"}' }],
    secrets: [{ name: 'ADMIN_TOKEN', value: 'an-administrator-token-of-tests-0123456789' }],
    rates: { mobius: { prompt: 1_000_000, completion: 1_000_000 } },
  };
}

/** The invariants that find something, in their order. */
export function brokenBy(spoil: (evidence: Spoiled) => void): string[] {
  const evidence = soundEvidence();
  spoil(evidence);
  return checkEvidence(evidence).flatMap(({ name, faults }) => (faults.length === 0 ? [] : [name]));
}

/** Changes the only reading of the first request. */
export function spoilReading(evidence: Spoiled, change: Partial<Reading>): void {
  const [first, ...others] = evidence.requests;
  if (first === undefined) throw new Error('There is no request');
  const readings = first.readings.map((reading) => ({ ...reading, ...change }));
  evidence.requests = [{ ...first, readings }, ...others];
}
