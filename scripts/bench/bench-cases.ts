/** The requests of one case, the same for every contender. All answers have forty chunks. */
export interface BenchCase {
  /** The name used by `--cases`. */
  name: string;
  title: string;
  mode: 'complete' | 'stream';
  clients: number;
  /** The provider's own delays. */
  firstTokenMs?: number;
  chunkMs?: number;
  /** Length of the submitted prompt; undefined: one sentence. */
  promptLength?: number;
  /** Earlier messages, from the entity's memory or, without a memory, in the body. */
  history?: number;
}

const LIVE = { mode: 'stream', firstTokenMs: 200, chunkMs: 20 } as const;

export const BENCH_CASES: readonly BenchCase[] = [
  { name: 'complete-32', title: 'Complete answers, 32 clients', mode: 'complete', clients: 32 },
  { name: 'complete-1', title: 'Complete answers, 1 client', mode: 'complete', clients: 1 },
  { name: 'stream-32', title: 'Streams of 40 chunks without delay, 32 clients', mode: 'stream', clients: 32 },
  { name: 'live-100', title: '100 live streams (first token 200 ms, 40 chunks at 20 ms)', ...LIVE, clients: 100 },
  { name: 'live-500', title: '500 live streams', ...LIVE, clients: 500 },
  { name: 'live-1000', title: '1,000 live streams', ...LIVE, clients: 1_000 },
  { name: 'prompt-10k', title: 'Prompts of 10 KB, 8 clients', mode: 'complete', clients: 8, promptLength: 10_000 },
  { name: 'prompt-200k', title: 'Prompts of 200 KB, 4 clients', mode: 'complete', clients: 4, promptLength: 200_000 },
  { name: 'history-50', title: 'After 50 messages of history, 8 clients', mode: 'complete', clients: 8, history: 50 },
];

interface Message {
  role: 'user' | 'assistant';
  content: string;
}

export const SENTENCE = 'Explain in a few plain sentences how a river finds its way from a spring to the sea.';

/** Ordinary text of a support conversation, so that words of the lexicon occur as often as in practice. */
const SENTENCES = [
  `${SENTENCE} `,
  'The customer wrote twice about the invoice of 3 March (no. 48113) and asked when the refund of $49.90 would arrive. ',
  'Our team has checked the order, and the parcel left the warehouse on Tuesday; the carrier says it will take a day more. ',
  '- first item: the battery lasts 18 hours\n- second item: it weighs 1.2 kg\n\n',
  'const total = items.reduce((sum, item) => sum + item.price * item.count, 0);\n',
  'Könnten Sie uns bitte die Rechnung noch einmal schicken? Vielen Dank für Ihre Mühe! ',
];
/** The longest message that docs/spec.md#chat-request allows. */
const MESSAGE_MAX = 16_000;
/** About as long as an answer of the simulated provider. */
const ANSWER = 'The warm planet helps this garden beside our modern station. '.repeat(13).trim();

/** Text of this many characters, few of which take more than one byte. */
function textOf(length: number): string {
  let text = '';
  for (let index = 0; text.length < length; index += 1) text += SENTENCES[index % SENTENCES.length] ?? '';
  return text.slice(0, length);
}

/** The messages that are submitted, without history. */
export function promptOf({ promptLength }: BenchCase): Message[] {
  const text = promptLength === undefined ? SENTENCE : textOf(promptLength);
  return Array.from({ length: Math.ceil(text.length / MESSAGE_MAX) }, (_, index) => ({
    role: 'user',
    content: text.slice(index * MESSAGE_MAX, (index + 1) * MESSAGE_MAX),
  }));
}

/** The turns of a conversation as an entity's memory has them. */
export function historyOf({ history = 0 }: BenchCase): Message[] {
  return Array.from({ length: history }, (_, index) =>
    index % 2 === 0 ? { role: 'user', content: SENTENCE } : { role: 'assistant', content: ANSWER },
  );
}
