import type { TurnRecord } from './chat-client.ts';

function renderPercentiles(values: readonly number[]): string {
  if (values.length === 0) return '-';
  const sorted = values.toSorted((left, right) => left - right);
  return [50, 95, 99]
    .map((percent) => `p${percent} ${(sorted[Math.ceil((percent / 100) * sorted.length) - 1] ?? NaN).toFixed(0)} ms`)
    .join(', ');
}

/** `planned`: how many requests the conversations have; some are not sent after a failure, or when the drive is stopped. */
export function renderSummary(records: readonly TurnRecord[], planned: number, wallMs: number): string {
  const answered = records.filter(({ error }) => error === undefined);
  const errors = Map.groupBy(
    records.flatMap(({ error }) => error ?? []),
    (error) => error,
  );
  const sum = (of: (record: TurnRecord) => number) => records.reduce((total, record) => total + of(record), 0);
  const streamed = sum(({ stream }) => Number(stream));
  const seconds = wallMs / 1000;
  const lines: Record<string, string> = {
    Requests: `${records.length} of ${planned} (${streamed} streamed, ${records.length - streamed} complete)`,
    Errors: Array.from(errors, ([code, all]) => `${all.length} ${code}`).join(', ') || '0',
    'Told to wait': `${sum(({ waits }) => waits)} times (429)`,
    Latency: renderPercentiles(answered.map(({ latencyMs }) => latencyMs)),
    'First token': renderPercentiles(answered.flatMap(({ firstTokenMs }) => firstTokenMs ?? [])),
    Tokens: `${sum(({ promptTokens }) => promptTokens)} prompt, ${sum(({ completionTokens }) => completionTokens)} completion`,
    Time: `${seconds.toFixed(1)} s, ${(records.length / seconds).toFixed(1)} requests a second`,
  };
  return Object.entries(lines)
    .map(([name, value]) => `${name.padEnd(14)} ${value}`)
    .join('\n');
}
