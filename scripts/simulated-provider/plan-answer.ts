import { createHash } from 'node:crypto';
import type { ChatRequest } from './chat-request.ts';
import type { Settings } from './settings.ts';
import { showRequest } from './show-request.ts';
import { splitTokens } from './tokens.ts';
import { writeText } from './write-text.ts';

/** A piece of the answer and its number of tokens. */
interface Delta {
  text: string;
  tokens: number;
}

export interface Answer {
  text: string;
  deltas: readonly Delta[];
  completionTokens: number;
  finishReason: string;
}

/** Identifies a conversation: the same messages and seed give the same text in every process. */
export interface Fingerprint {
  seed: number;
  key: string;
}

const WORDS_MIN = 60;
const WORDS_SPREAD = 61;
const TOKENS_PER_DELTA = 3;

export function fingerprintOf({ messages, seed }: Pick<ChatRequest, 'messages' | 'seed'>): Fingerprint {
  const hash = createHash('sha1');
  for (const { role, text } of messages) hash.update(`${role}\n${text.length}\n`).update(text);
  if (seed !== null) hash.update(String(seed));
  const digest = hash.digest('hex');
  return { seed: Number.parseInt(digest.slice(0, 8), 16), key: digest };
}

/** The parts of a request on which an answer depends. */
type Asked = Pick<ChatRequest, 'messages' | 'maxTokens' | 'stop' | 'wantsJson' | 'temperature'>;

/** Decides the whole answer before it is sent: text, deltas, tokens, finish reason. */
export function planAnswer(
  request: Asked,
  settings: Settings,
  seed: number,
  { validJson, empty }: { validJson: boolean; empty: boolean },
): Answer {
  const written = empty ? '' : writeAnswer(request, settings, seed, validJson);
  const whole = splitTokens(cutAtStop(written, request.stop));
  const limit = request.maxTokens ?? whole.length;
  const tokens = whole.length > limit ? whole.slice(0, limit) : whole;
  const deltas = groupTokens(tokens, settings.chunks ?? Math.ceil(tokens.length / TOKENS_PER_DELTA));
  return {
    text: tokens.join(''),
    deltas,
    completionTokens: tokens.length,
    finishReason: settings.finishReason ?? (tokens.length < whole.length ? 'length' : 'stop'),
  };
}

function writeAnswer(request: Asked, settings: Settings, seed: number, validJson: boolean): string {
  if (settings.text !== null) return settings.text;
  const answer = settings.show ? showRequest(request) : { prose: writeProse(request, settings, seed) };
  if (!request.wantsJson) return answer.prose;
  const json = JSON.stringify('shown' in answer ? answer.shown : { answer: answer.prose });
  return validJson ? json : json.slice(0, -1);
}

function writeProse({ messages }: Asked, settings: Settings, seed: number): string {
  if (settings.echo) return messages.findLast(({ role }) => role === 'user')?.text ?? '';
  return writeText(seed, wordsOf(settings, seed));
}

function wordsOf({ tokens, words, chunks }: Settings, seed: number): number {
  return tokens ?? words ?? Math.max(WORDS_MIN + (seed % WORDS_SPREAD), chunks ?? 0);
}

function cutAtStop(text: string, stop: readonly string[]): string {
  let end = text.length;
  for (const sequence of stop) {
    const found = text.indexOf(sequence);
    if (found !== -1 && found < end) end = found;
  }
  return text.slice(0, end);
}

/** Spreads the tokens evenly over `count` deltas, or one per delta if there are fewer. */
function groupTokens(tokens: readonly string[], count: number): Delta[] {
  const deltas: Delta[] = [];
  const groups = Math.min(count, tokens.length);
  let from = 0;
  for (let group = 1; group <= groups; group++) {
    const to = Math.floor((group * tokens.length) / groups);
    let text = '';
    for (let index = from; index < to; index++) text += tokens[index] ?? '';
    deltas.push({ text, tokens: to - from });
    from = to;
  }
  return deltas;
}
