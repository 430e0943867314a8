import { createHash } from 'node:crypto';
import { INPUT_FIELDS } from './chat-request.ts';
import type { ChatRequest, ToolCall } from './chat-request.ts';
import { planCalls } from './call-tools.ts';
import type { Marks } from './call-tools.ts';
import { exampleOf } from './example-of-schema.ts';
import type { JsonKind } from './failure-sequence.ts';
import type { Settings } from './settings.ts';
import { noticedIn, showRequest } from './show-request.ts';
import { splitTokens } from './tokens.ts';
import { writeText } from './write-text.ts';

/** A piece of the answer and its number of tokens. */
export interface Delta {
  /** Content; empty where the piece is something else. */
  text: string;
  tokens: number;
  /** A piece of anything else, as a stream says it. */
  other?: object;
}

export interface Answer {
  text: string;
  calls: readonly ToolCall[];
  reasoning: string;
  refusal: string;
  deltas: readonly Delta[];
  completionTokens: number;
  reasoningTokens: number;
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
const REASONING = 'First I look at the question, then I choose an answer.';
const REFUSAL = 'I am sorry, but I cannot help with that.';

export function fingerprintOf({ messages, seed }: Pick<ChatRequest, 'messages' | 'seed'>): Fingerprint {
  const hash = createHash('sha1');
  for (const { role, text } of messages) hash.update(`${role}\n${text.length}\n`).update(text);
  if (seed !== null) hash.update(String(seed));
  const digest = hash.digest('hex');
  return { seed: Number.parseInt(digest.slice(0, 8), 16), key: digest };
}

/** The parts of a request on which an answer depends. */
type Asked = Omit<ChatRequest, 'model' | 'received' | 'stream' | 'includeUsage' | 'seed' | 'n'>;

export interface Plan {
  /** Makes the text. */
  seed: number;
  /** Makes the ids of calls. */
  key: string;
  marks: Marks;
  json: JsonKind;
  empty: boolean;
}

/** Decides the whole answer before it is sent: text, calls, deltas, tokens, finish reason. */
export function planAnswer(request: Asked, settings: Settings, plan: Plan): Answer {
  const budget = { left: request.maxTokens ?? Infinity, isCut: false };
  const { marks, empty } = plan;
  const reasoning = take(budget, marks.reasons && !empty ? REASONING : '');
  const planned = empty ? [] : planCalls(request, marks, plan.key);
  const isSilent = empty || planned.length > 0 || marks.refuses;
  const words = take(budget, isSilent ? '' : cutAtStop(writeAnswer(request, settings, plan), request.stop));
  const refusal = take(budget, marks.refuses && planned.length === 0 && !empty ? REFUSAL : '');
  const calls = planned.map((call) => ({
    ...call,
    named: take(budget, call.name).length,
    pieces: take(budget, call.input),
  }));
  const other = (field: string) => (text: string) => ({ [field]: text });
  const deltas: Delta[] = [
    ...groupTokens(reasoning, countOf(reasoning), other('reasoning_content')),
    ...groupTokens(words, settings.chunks ?? countOf(words)),
    ...groupTokens(refusal, countOf(refusal), other('refusal')),
    ...calls.flatMap(({ id, kind, name, named, pieces }, index) => [
      callDelta({ index, id, type: kind, [kind]: { name, [INPUT_FIELDS[kind]]: '' } }, named),
      // In the smallest fragments, which a reader has to join.
      ...pieces.map((piece) => callDelta({ index, [kind]: { [INPUT_FIELDS[kind]]: piece } }, 1)),
    ]),
  ];
  const finishReason = budget.isCut ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop';
  return {
    text: words.join(''),
    calls: calls.map(({ id, kind, name, pieces }) => ({ id, kind, name, input: pieces.join('') })),
    reasoning: reasoning.join(''),
    refusal: refusal.join(''),
    deltas,
    completionTokens: deltas.reduce((sum, { tokens }) => sum + tokens, 0),
    reasoningTokens: reasoning.length,
    finishReason: settings.finishReason ?? finishReason,
  };
}

const callDelta = (call: object, tokens: number): Delta => ({ text: '', tokens, other: { tool_calls: [call] } });
const countOf = (tokens: readonly string[]): number => Math.ceil(tokens.length / TOKENS_PER_DELTA);

/** The tokens of a text that `max_tokens` leaves. */
function take(budget: { left: number; isCut: boolean }, text: string): string[] {
  const whole = splitTokens(text);
  const tokens = whole.length > budget.left ? whole.slice(0, budget.left) : whole;
  budget.left -= tokens.length;
  budget.isCut ||= tokens.length < whole.length;
  return tokens;
}

function writeAnswer(request: Asked, settings: Settings, { seed, json }: Plan): string {
  if (settings.text !== null) return settings.text;
  const answer = settings.show ? showRequest(request) : { prose: writeProse(request, settings, seed) };
  if (!request.wantsJson) return answer.prose;
  const isBySchema = request.schema !== undefined && json !== 'untrue';
  const shown = 'shown' in answer ? answer.shown : { answer: answer.prose };
  const text = JSON.stringify(isBySchema ? exampleOf(request.schema) : shown);
  return json === 'invalid' ? text.slice(0, -1) : text;
}

function writeProse({ messages }: Asked, settings: Settings, seed: number): string {
  const noticed = noticedIn(messages);
  if (noticed.results.length > 0) return [...noticed.results, ...noticed.sight].join(' ');
  const prose = settings.echo
    ? (messages.findLast(({ role }) => role === 'user')?.text ?? '')
    : writeText(seed, wordsOf(settings, seed));
  return [...noticed.sight, prose].join(' ');
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
function groupTokens(tokens: readonly string[], count: number, other?: (text: string) => object): Delta[] {
  const deltas: Delta[] = [];
  const groups = Math.min(count, tokens.length);
  let from = 0;
  for (let group = 1; group <= groups; group++) {
    const to = Math.floor((group * tokens.length) / groups);
    let text = '';
    for (let index = from; index < to; index++) text += tokens[index] ?? '';
    deltas.push(
      other === undefined ? { text, tokens: to - from } : { text: '', tokens: to - from, other: other(text) },
    );
    from = to;
  }
  return deltas;
}
