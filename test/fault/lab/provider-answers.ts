import { fingerprintOf } from '../../../scripts/simulated-provider/plan-answer.ts';
import { writeText } from '../../../scripts/simulated-provider/write-text.ts';
import { callJson } from '../../../scripts/harness/http.ts';
import { loadTokenizer } from '../../../workers/pipeline/fit-window.ts';
import { CANARY_TRACE } from '../checker/canaries.ts';
import type { ProviderAnswer, ProviderCount } from '../checker/evidence.ts';

/** The provider remembers the messages of as many (scripts/simulated-provider/stats.ts). */
const REQUESTS_MAX = 2_000;
const AT_ONCE = 32;

/** What the lab's clients send: plain texts, and no seed. */
interface Message {
  role: string;
  content: string;
}

/** Makes the provider's answers once more, from the messages that it got. `settingsOf`: those of a request. */
export async function withAnswers(
  providerUrl: string,
  counts: ReadonlyMap<string, ProviderCount>,
  settingsOf: (requestId: string) => URLSearchParams,
): Promise<Map<string, ProviderCount>> {
  const { countText } = await loadTokenizer();

  function answerTo(
    messages: readonly Message[],
    { calls, completionTokens }: ProviderCount,
    settings: URLSearchParams,
  ): Omit<ProviderAnswer, 'tokens'> {
    const given = settings.get('text');
    if (given !== null) return { text: given, isWhole: false };
    const asked = messages.findLast(({ role }) => role === 'user')?.content ?? '';
    if (settings.has('echo')) return { text: asked, isWhole: true };
    const { seed } = fingerprintOf({
      messages: messages.map(({ role, content }) => ({ role, text: content })),
      seed: null,
    });
    // A word is a token; of several calls only the sum is known.
    return { text: writeText(seed, completionTokens), isWhole: calls === 1 };
  }

  async function withAnswer(requestId: string, count: ProviderCount): Promise<[string, ProviderCount]> {
    const { body } = await callJson('GET', `${providerUrl}/stats/requests/${requestId}`);
    // The provider's own report (scripts/simulated-provider/stats.ts).
    const messages = (body['messages'] ?? []) as Message[];
    const isOurs = messages.some(({ content }) => typeof content === 'string' && CANARY_TRACE.test(content));
    if (!isOurs) return [requestId, count];
    const answer = answerTo(messages, count, settingsOf(requestId));
    return [requestId, { ...count, answer: { ...answer, tokens: await countText(answer.text) } }];
  }

  const all = [...counts];
  const latest = all.slice(-REQUESTS_MAX);
  const known = new Map(all);
  for (let from = 0; from < latest.length; from += AT_ONCE) {
    const some = latest.slice(from, from + AT_ONCE);
    for (const [id, count] of await Promise.all(some.map(([id, count]) => withAnswer(id, count)))) known.set(id, count);
  }
  return known;
}
