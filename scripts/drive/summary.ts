import type { TurnRecord } from './chat-client.ts';

/** Credits per token. */
export type RatesByTier = Readonly<Record<string, { prompt: number; completion: number }>>;

type Percentiles = Record<'p50' | 'p95' | 'p99', number>;

export interface Summary {
  conversations: number;
  requests: number;
  streamed: number;
  /** Turns that were not sent because an earlier one failed, or because the drive was stopped. */
  left: number;
  /** By code. */
  errors: Record<string, number>;
  waits: number;
  /** Milliseconds, for answered requests. */
  latencyMs: Percentiles | undefined;
  firstTokenMs: Percentiles | undefined;
  promptTokens: number;
  completionTokens: number;
  /** Usage times the rates. */
  credits: number;
  wallMs: number;
}

function percentilesOf(values: readonly number[]): Percentiles | undefined {
  if (values.length === 0) return undefined;
  const sorted = values.toSorted((left, right) => left - right);
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? NaN;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

type Tokens = Pick<TurnRecord, 'promptTokens' | 'completionTokens'>;

/** Tokens of a tier without a rate cost nothing. */
export function creditsOf({ promptTokens, completionTokens }: Tokens, model: string, rates: RatesByTier): number {
  const { prompt, completion } = rates[model] ?? { prompt: 0, completion: 0 };
  return promptTokens * prompt + completionTokens * completion;
}

export function summarise(
  records: readonly TurnRecord[],
  planned: { conversations: number; turns: number },
  rates: RatesByTier,
  wallMs: number,
): Summary {
  const answered = records.filter(({ error }) => error === undefined);
  const errors: Record<string, number> = {};
  for (const { error } of records) if (error !== undefined) errors[error] = (errors[error] ?? 0) + 1;
  const sum = (of: (record: TurnRecord) => number) => records.reduce((total, record) => total + of(record), 0);
  return {
    conversations: planned.conversations,
    requests: records.length,
    streamed: records.filter(({ stream }) => stream).length,
    left: planned.turns - records.length,
    errors,
    waits: sum(({ waits }) => waits),
    latencyMs: percentilesOf(answered.map(({ latencyMs }) => latencyMs)),
    firstTokenMs: percentilesOf(answered.flatMap(({ firstTokenMs }) => firstTokenMs ?? [])),
    promptTokens: sum(({ promptTokens }) => promptTokens),
    completionTokens: sum(({ completionTokens }) => completionTokens),
    credits: sum((record) => creditsOf(record, record.model, rates)),
    wallMs,
  };
}

/** `charged`: by how much the tenant's balance has fallen; undefined if unknown. */
export function renderSummary(summary: Summary, isTestKey: boolean, charged: number | undefined): string {
  const { requests, streamed, errors, waits, left, promptTokens, completionTokens, wallMs } = summary;
  const kinds = Object.entries(errors).map(([code, count]) => `${count} ${code}`);
  const seconds = wallMs / 1000;
  const lines: Record<string, string> = {
    Conversations: String(summary.conversations),
    Requests: `${requests} (${streamed} streamed, ${requests - streamed} complete)`,
    Errors: kinds.length === 0 ? '0' : kinds.join(', '),
    ...(left > 0 ? { 'Not sent': `${left} turns` } : {}),
    'Told to wait': `${waits} times (429)`,
    Latency: renderPercentiles(summary.latencyMs),
    'First token': renderPercentiles(summary.firstTokenMs),
    Tokens: `${promptTokens} prompt, ${completionTokens} completion`,
    Credits: renderCredits(summary.credits, isTestKey, charged),
    Time: `${seconds.toFixed(1)} s, ${(requests / seconds).toFixed(1)} requests a second`,
  };
  return Object.entries(lines)
    .map(([name, value]) => `${name.padEnd(14)} ${value}`)
    .join('\n');
}

function renderPercentiles(percentiles: Percentiles | undefined): string {
  if (percentiles === undefined) return '-';
  return Object.entries(percentiles)
    .map(([name, ms]) => `${name} ${ms.toFixed(0)} ms`)
    .join(', ');
}

function renderCredits(credits: number, isTestKey: boolean, charged: number | undefined): string {
  const amount = (value: number) => String(Number(value.toFixed(6)));
  if (charged !== undefined) return `${amount(charged)} charged (usage at the tiers' rates: ${amount(credits)})`;
  return isTestKey ? `0 (a test key; usage at the rates: ${amount(credits)})` : amount(credits);
}
