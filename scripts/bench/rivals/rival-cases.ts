import { SENTENCE, textOf } from '../sample-text.ts';

/** The requests of one case, the same for every contender. */
export interface RivalCase {
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
  /** Whether each stream is left once and resumed. */
  isResumed?: boolean;
  /** The contenders that take part; undefined: all but the second Parley. */
  only?: readonly string[];
  /** Contenders to which the case does not apply. */
  without?: readonly string[];
}

export const TWO_WORKERS = 'parley, 2 workers';

const LIVE = { mode: 'stream', firstTokenMs: 200, chunkMs: 20 } as const;

/** All answers have forty chunks. */
export const RIVAL_CASES: readonly RivalCase[] = [
  { name: 'complete-32', title: 'Complete answers, 32 clients', mode: 'complete', clients: 32 },
  { name: 'complete-1', title: 'Complete answers, 1 client', mode: 'complete', clients: 1 },
  { name: 'stream-32', title: 'Streams of 40 chunks without delay, 32 clients', mode: 'stream', clients: 32 },
  { name: 'live-100', title: '100 live streams (first token 200 ms, 40 chunks at 20 ms)', ...LIVE, clients: 100 },
  { name: 'live-500', title: '500 live streams', ...LIVE, clients: 500 },
  { name: 'live-1000', title: '1,000 live streams', ...LIVE, clients: 1_000 },
  { name: 'prompt-10k', title: 'Prompts of 10 KB, 8 clients', mode: 'complete', clients: 8, promptLength: 10_000 },
  { name: 'prompt-200k', title: 'Prompts of 200 KB, 4 clients', mode: 'complete', clients: 4, promptLength: 200_000 },
  {
    name: 'history-50',
    title: 'After 50 messages of history, 8 clients',
    mode: 'complete',
    clients: 8,
    history: 50,
    // The floor has no memory.
    without: ['floor'],
  },
  {
    name: 'resumed-100',
    title: '100 live streams, each left at its 5th event and read on',
    ...LIVE,
    clients: 100,
    isResumed: true,
    only: ['parley'],
  },
  {
    name: 'workers-2',
    title: 'Complete answers, 32 clients, 1 and 2 workers',
    mode: 'complete',
    clients: 32,
    only: ['parley', TWO_WORKERS],
  },
];

/** Whether this contender takes part in the case. */
export function takesPart(name: string, { only, without }: RivalCase): boolean {
  return (only?.includes(name) ?? name !== TWO_WORKERS) && without?.includes(name) !== true;
}

export interface Message {
  role: 'user' | 'assistant';
  content: string;
}

/** The longest message that docs/spec.md#chat-request allows. */
const MESSAGE_MAX = 16_000;

/** The messages that are submitted, without history. */
export function promptOf({ promptLength }: RivalCase): Message[] {
  if (promptLength === undefined) return [{ role: 'user', content: SENTENCE }];
  const text = textOf(promptLength);
  const messages: Message[] = [];
  for (let at = 0; at < text.length; at += MESSAGE_MAX)
    messages.push({ role: 'user', content: text.slice(at, at + MESSAGE_MAX) });
  return messages;
}

/** The turns of a conversation as an entity's memory has them after this many messages. */
export function historyOf(messages: number, answer: string): Message[] {
  return Array.from({ length: messages }, (_, index) =>
    index % 2 === 0 ? { role: 'user' as const, content: SENTENCE } : { role: 'assistant' as const, content: answer },
  );
}
