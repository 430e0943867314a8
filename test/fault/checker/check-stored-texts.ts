import type { Evidence, ProviderAnswer, StoredText } from './evidence.ts';
import { startsLate, textOf } from './requests-by-id.ts';
import type { JoinedRequest } from './requests-by-id.ts';
import type { Verdict } from './verdict.ts';

/** I9: the text of every stream in Redis and of every stored answer is what the provider wrote, and what clients read. */
export function checkStoredTexts({ keptAnswers }: Evidence, joined: readonly JoinedRequest[]): Verdict {
  const kept = new Map(keptAnswers.map((answer) => [answer.requestId, answer] as const));
  const faults = joined.flatMap(({ requestId, clients, provider, record }) => {
    const places: [string, StoredText | undefined][] = [
      ['its stream', record],
      ['its stored answer', kept.get(requestId)],
    ];
    return places.flatMap(([place, stored]) => {
      if (stored === undefined) return [];
      const found: string[] = [];
      if (provider?.answer !== undefined && !isOf(stored, provider.answer))
        found.push(`${requestId}: the text of ${place} is not what the provider wrote`);
      if (clients.some((client) => !startsLate(client) && !stored.text.startsWith(textOf(client))))
        found.push(`${requestId}: a client has read something else than the text of ${place}`);
      return found;
    });
  });
  return { name: 'I9', faults };
}

/** A full stop ends what the provider writes, also where it was told to write less than its sentence. */
const FULL_STOP = /\.$/;

function isOf({ text, finishReason }: StoredText, answer: ProviderAnswer): boolean {
  if (finishReason === 'stop' && answer.isWhole) return text === answer.text;
  return answer.text.startsWith(text.replace(FULL_STOP, ''));
}
