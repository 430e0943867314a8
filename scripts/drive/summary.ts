import { build } from 'hdr-histogram-js';

import type { TurnRecord } from './send-conversations.ts';

/** Credits per token. */
interface TierRates {
  prompt: number;
  completion: number;
}
export type RatesByTier = Readonly<Record<string, TierRates>>;

interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

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

const DIGITS = 3;
const MICROS_PER_MS = 1_000;

function percentilesOf(values: readonly number[]): Percentiles | undefined {
  if (values.length === 0) return undefined;
  const histogram = build({ numberOfSignificantValueDigits: DIGITS });
  for (const value of values) histogram.recordValue(Math.round(value * MICROS_PER_MS));
  const at = (percentile: number) => histogram.getValueAtPercentile(percentile) / MICROS_PER_MS;
  return { p50: at(50), p95: at(95), p99: at(99) };
}

/** What the requests cost at these rates; failed ones count with what they were charged. */
function creditsOf(records: readonly TurnRecord[], rates: RatesByTier): number {
  return records.reduce((sum, { model, tokens }) => {
    const rate = rates[model] ?? { prompt: 0, completion: 0 };
    return sum + tokens.prompt * rate.prompt + tokens.completion * rate.completion;
  }, 0);
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
  return {
    conversations: planned.conversations,
    requests: records.length,
    streamed: records.filter(({ stream }) => stream).length,
    left: planned.turns - records.length,
    errors,
    waits: records.reduce((sum, { waits }) => sum + waits, 0),
    latencyMs: percentilesOf(answered.map(({ latencyMs }) => latencyMs)),
    firstTokenMs: percentilesOf(answered.flatMap(({ firstTokenMs }) => firstTokenMs ?? [])),
    promptTokens: records.reduce((sum, { tokens }) => sum + tokens.prompt, 0),
    completionTokens: records.reduce((sum, { tokens }) => sum + tokens.completion, 0),
    credits: creditsOf(records, rates),
    wallMs,
  };
}

/** `charged`: by how much the tenant's balance has fallen; undefined if unknown. */
export function renderSummary(summary: Summary, isTestKey: boolean, charged: number | undefined): string {
  const { requests, streamed, errors, waits, left, promptTokens, completionTokens, wallMs } = summary;
  const kinds = Object.entries(errors);
  const failed = kinds.reduce((sum, [, count]) => sum + count, 0);
  const seconds = wallMs / 1000;
  const lines: [string, string][] = [
    ['Conversations', String(summary.conversations)],
    ['Requests', `${requests} (${streamed} streamed, ${requests - streamed} complete)`],
    ['Errors', kinds.length === 0 ? '0' : `${failed}: ${kinds.map(([code, n]) => `${n} ${code}`).join(', ')}`],
    ...(left > 0 ? [['Not sent', `${left} turns`] satisfies [string, string]] : []),
    ['Told to wait', `${waits} times (429)`],
    ['Latency', renderPercentiles(summary.latencyMs)],
    ['First token', renderPercentiles(summary.firstTokenMs)],
    ['Tokens', `${promptTokens} prompt, ${completionTokens} completion`],
    ['Credits', renderCredits(summary.credits, isTestKey, charged)],
    ['Time', `${seconds.toFixed(1)} s, ${(requests / seconds).toFixed(1)} requests a second`],
  ];
  return lines.map(([name, value]) => `${name.padEnd(14)} ${value}`).join('\n');
}

function renderPercentiles(percentiles: Percentiles | undefined): string {
  if (percentiles === undefined) return '-';
  const { p50, p95, p99 } = percentiles;
  return `p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`;
}

function renderCredits(credits: number, isTestKey: boolean, charged: number | undefined): string {
  const amount = (value: number) => String(Number(value.toFixed(6)));
  if (charged !== undefined) return `${amount(charged)} charged (usage at the tiers' rates: ${amount(credits)})`;
  return isTestKey ? `0 (a test key; usage at the rates: ${amount(credits)})` : amount(credits);
}
