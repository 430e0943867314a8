import type { Evidence } from '../checker/evidence.ts';
import { isRefused } from '../checker/requests-by-id.ts';
import type { Verdict } from '../checker/verdict.ts';
import type { SentRequest } from '../client/caller.ts';

/** The clients share their machine with everything that they measure. */
export const SLACK_MS = 3_000;

export const hasText = ({ readings }: SentRequest): boolean => readings.some(({ text }) => text !== '');

/** The whole answer came, over however many connections. */
export function isWhole({ stream, readings }: SentRequest): boolean {
  return (
    readings.some(({ finishReason }) => finishReason === 'stop') && (!stream || readings.some(({ isDone }) => isDone))
  );
}

export function nameOf(sent: SentRequest): string {
  const { status, errorCode, finishReason, end, sentAt, endedAt } = sent.last();
  const how = errorCode ?? finishReason ?? end;
  return `${sent.id()} (${status}, ${how}, ${((endedAt - sentAt) / 1000).toFixed(1)} s)`;
}

/** Everything that breaks the promise, by name. */
export function none(name: string, breaking: readonly SentRequest[]): Verdict {
  return { name, faults: breaking.map(nameOf) };
}

export function expectThat(name: string, isTrue: boolean, otherwise: string): Verdict {
  return { name, faults: isTrue ? [] : [otherwise] };
}

export function callsAtMost(most: number, { provider }: Evidence): Verdict {
  const faults = [...provider]
    .filter(([, { calls }]) => calls > most)
    .map(([id, { calls }]) => `${id}: ${calls} calls`);
  return { name: `at most ${most} provider calls`, faults };
}

export function countRefused(sent: readonly SentRequest[]): number {
  return sent.filter(isRefused).length;
}

/** The longest time without anything new, from the first event to the last. */
export function longestGapMs({ readings }: SentRequest): number {
  const times = readings.flatMap(({ events }) => events.map(({ at }) => at));
  return Math.max(0, ...times.slice(1).map((at, index) => at - (times[index] ?? at)));
}

export function range<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
