import type { ProviderEvent } from '../provider.ts';

/** The API takes no stop sequence of nothing but white space, so `"\n"` is looked for here. */
export function isBlank(stop: string): boolean {
  return stop.trim() === '';
}

/**
 * Ends an answer ahead of the first of `stops`, all of them blank. Holds back only white space that may be the
 * beginning of one. The provider's own count has what came after, so an answer that is cut has none.
 */
export async function* cutAtBlank(
  events: AsyncIterable<ProviderEvent>,
  stops: readonly string[],
): AsyncGenerator<ProviderEvent> {
  const reach = Math.max(...stops.map((stop) => stop.length)) - 1;
  let held = '';
  for await (const event of events) {
    if (event.kind === 'end') {
      if (held !== '') yield { kind: 'text', text: held };
      yield event;
      continue;
    }
    held += event.text;
    const found = stops.map((stop) => held.indexOf(stop)).filter((at) => at >= 0);
    if (found.length > 0) {
      const text = held.slice(0, Math.min(...found));
      if (text !== '') yield { kind: 'text', text };
      yield { kind: 'end', finishReason: 'stop', usage: undefined };
      return;
    }
    const kept = Math.min(reach, held.length - held.trimEnd().length);
    const text = held.slice(0, held.length - kept);
    held = held.slice(held.length - kept);
    if (text !== '') yield { kind: 'text', text };
  }
}
