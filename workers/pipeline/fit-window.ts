import { setImmediate } from 'node:timers/promises';

import type { ChatMessage, ChatRequest } from '../../shared/contracts/chat-request.ts';
import { mediaTokensOf, textOf } from '../../shared/contracts/message-text.ts';

/** Characters counted before other work of the process gets its turn: a few milliseconds at worst. */
const CHARACTERS_PER_TURN = 4_096;
/** A word counted before takes a fraction of the time: some 8 ns per character, against 100 to 1,000. */
const KNOWN_PART = 1 / 16;

/**
 * The time to count an unbroken run grows with the square of its length: one message of 16,000 emoji took 6 s. Cut
 * every 64 characters, it takes milliseconds; ordinary text has no such runs.
 */
const PIECE = /[^]{0,4096}?(?:\S{64}|\s{64})|[^]{1,4096}/gu;

/** In UTF-16 units. Longer words are rarely seen twice. */
const WORD_KEPT_MAX = 32;
/** They take about 3 MB. Ordinary texts have some thousands of different words. */
const WORDS_KEPT = 32_768;
const WHITE_SPACE = /\s/;

/**
 * A word ends before a space that follows anything but white space. The encoding always begins a new piece there, so a
 * text has as many tokens as its words together.
 */
function endOfWord(text: string, from: number): number {
  for (let at = text.indexOf(' ', from + 1); at >= 0; at = text.indexOf(' ', at + 1)) {
    const before = text.charCodeAt(at - 1);
    if (before < 0x80 ? before > 0x20 : !WHITE_SPACE.test(text.charAt(at - 1))) return at;
  }
  return text.length;
}

let loading: ReturnType<typeof load> | undefined;

async function load() {
  const { countTokens, setMergeCacheSize } = await import('gpt-tokenizer/encoding/o200k_base');
  // The library's cache would keep longer runs from many more texts than are kept here.
  setMergeCacheSize(0);
  // Markers such as <|endoftext|> are ordinary text in a conversation.
  const options = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };
  const known = new Map<string, number>();
  let effort = 0;

  async function rest(): Promise<void> {
    effort = 0;
    await setImmediate();
  }

  async function countLong(text: string): Promise<number> {
    let tokens = 0;
    for (const [piece] of text.matchAll(PIECE)) {
      tokens += countTokens(piece, options);
      effort += piece.length;
      if (effort >= CHARACTERS_PER_TURN) await rest();
    }
    return tokens;
  }

  function countWord(word: string): number {
    const kept = known.get(word);
    effort += word.length * (kept === undefined ? 1 : KNOWN_PART);
    if (kept !== undefined) return kept;
    const tokens = countTokens(word, options);
    if (known.size === WORDS_KEPT) known.clear();
    // A copy, because a part of a text keeps the whole text in memory.
    known.set(Buffer.from(word, 'utf16le').toString('utf16le'), tokens);
    return tokens;
  }

  async function countText(text: string): Promise<number> {
    let tokens = 0;
    for (let from = 0; from < text.length;) {
      const to = endOfWord(text, from);
      const word = text.slice(from, to);
      tokens += word.length > WORD_KEPT_MAX ? await countLong(word) : countWord(word);
      if (effort >= CHARACTERS_PER_TURN) await rest();
      from = to;
    }
    return tokens;
  }

  return {
    countText,
    /** Lets other work of the process run in between. The returned function knows only these texts. */
    async count(texts: readonly string[]): Promise<(text: string) => number> {
      const counts = new Map<string, number>();
      for (const text of texts) if (!counts.has(text)) counts.set(text, await countText(text));
      return (text) => {
        const tokens = counts.get(text);
        if (tokens === undefined) throw new Error('A text was not handed to the tokenizer');
        return tokens;
      };
    },
  };
}

/** Reads tokens of OpenAI's models for embeddings as text. Loaded on first use, like the other vocabulary. */
export async function loadTokenDecoder(): Promise<(tokens: number[]) => string> {
  const { decode } = await import('gpt-tokenizer/encoding/cl100k_base');
  return decode;
}

/**
 * Counts tokens as OpenAI's current models do, for others a close estimate. Loaded on first use: the vocabulary takes
 * tens of megabytes, and most requests never need it.
 */
export function loadTokenizer(): ReturnType<typeof load> {
  return (loading ??= load());
}

/** A chat format adds this to each message: role and separators, a few tokens for every known model. */
const TOKENS_PER_MESSAGE = 4;

export type CountTokens = (text: string) => number;

export interface PromptParts {
  /** The context instruction; never trimmed. */
  instruction: ChatMessage | undefined;
  /** Oldest first; trimmed in whole turns from the oldest. */
  history: readonly ChatMessage[];
  /** Never trimmed (docs/spec.md#trimming). */
  submitted: readonly ChatMessage[];
  /** Texts that the model reads besides the messages, such as definitions of tools: counted with them. */
  beside?: ChatMessage;
}

export type FittedPrompt =
  { kind: 'fits'; messages: ChatMessage[]; promptTokens: number } | { kind: 'too_long'; promptTokens: number };

/** The tokens of the messages, including what a chat format adds to each. */
export function countPrompt(messages: readonly ChatMessage[], count: CountTokens): number {
  const mediaOf = (message: ChatMessage) => (message.sent === undefined ? 0 : mediaTokensOf(message));
  return messages.reduce((sum, message) => sum + count(textOf(message)) + mediaOf(message) + TOKENS_PER_MESSAGE, 0);
}

/** A turn begins with a user message; what follows belongs to it. */
function turnsOf(history: readonly ChatMessage[]): ChatMessage[][] {
  const turns: ChatMessage[][] = [];
  for (const message of history) {
    const current = turns.at(-1);
    if (current === undefined || (message.role === 'user' && current.some(({ role }) => role === 'assistant')))
      turns.push([message]);
    else current.push(message);
  }
  return turns;
}

/** Keeps the newest turns that fit in the window beside instruction, submitted messages and `maxTokens`. */
export function fitWindow(
  parts: PromptParts,
  contextWindow: number,
  maxTokens: number,
  count: CountTokens,
): FittedPrompt {
  const room = contextWindow - maxTokens;
  const fixed = [...(parts.instruction === undefined ? [] : [parts.instruction]), ...parts.submitted];
  let promptTokens = countPrompt(fixed, count);
  if (promptTokens > room) return { kind: 'too_long', promptTokens };
  const kept: ChatMessage[] = [];
  for (const turn of turnsOf(parts.history).reverse()) {
    const cost = countPrompt(turn, count);
    if (promptTokens + cost > room) break;
    kept.unshift(...turn);
    promptTokens += cost;
  }
  const instruction = parts.instruction === undefined ? [] : [parts.instruction];
  return { kind: 'fits', messages: [...instruction, ...kept, ...parts.submitted], promptTokens };
}

/** No token is shorter than one byte, so bytes are an upper bound that needs no tokenizer. */
export const countBytes: CountTokens = (text) => Buffer.byteLength(text);

/** The prompt exceeds a target's window even without history; another target's window may be larger. */
export class TooLongError extends Error {
  override readonly name = 'TooLongError';
  readonly overTokens: number;
  readonly param: string;

  /** `maxTokens`: what the answer must have beside the prompt; undefined: as little as there is. */
  constructor(promptTokens: number, contextWindow: number, maxTokens?: number, param = 'messages') {
    const over = promptTokens + (maxTokens ?? 1) - contextWindow;
    // Clients look for the words «maximum context length is N tokens» (docs/spec.md#codes).
    super(
      `This model's maximum context length is ${contextWindow} tokens; ${param === 'messages' ? 'the messages have' : `\`${param}\` has`} ${promptTokens}${maxTokens === undefined ? '' : ` and max_tokens asks for ${maxTokens}`}: ${over} too many. Send ${param === 'messages' ? 'fewer or shorter messages' : 'shorter inputs'}${maxTokens === undefined ? '' : ', or a smaller max_tokens'}.`,
    );
    this.overTokens = over;
    this.param = param;
  }
}

type CountText = (text: string) => Promise<number>;

async function countText(text: string): Promise<number> {
  return (await loadTokenizer()).countText(text);
}

export interface TargetPrompt {
  messages: ChatMessage[];
  /** The messages and what the model reads besides them. Absent: nothing. */
  counted?: ChatMessage[];
  maxTokens: number;
}

/** A chat template adds a few dozen tokens, and the model's own tokenizer may count one more for eight of ours. */
const TEMPLATE_TOKENS = 64;
const OTHER_MEASURE_PART = 8;

/** An answer that fills the window leaves a margin, because our count is an estimate. */
function answerBeside(promptTokens: number, contextWindow: number, maxTokens: number): number {
  const room = contextWindow - promptTokens;
  if (maxTokens <= room) return maxTokens;
  const margin = TEMPLATE_TOKENS + Math.ceil(promptTokens / OTHER_MEASURE_PART);
  return Math.max(Math.ceil(room / 2), room - margin);
}

/** Fits the answer, too: history leaves it its `maxTokens` or half of the window, and it gets what is left in the end. */
function fitBoth(prompt: PromptParts, contextWindow: number, maxTokens: number, count: CountTokens): TargetPrompt {
  const reserve = Math.min(maxTokens, Math.floor(contextWindow / 2));
  let fitted = fitWindow(prompt, contextWindow, reserve, count);
  if (fitted.kind === 'too_long') fitted = fitWindow({ ...prompt, history: [] }, contextWindow, 1, count);
  if (fitted.kind === 'too_long') throw new TooLongError(fitted.promptTokens, contextWindow);
  const { messages, promptTokens } = fitted;
  return { messages, maxTokens: answerBeside(promptTokens, contextWindow, maxTokens) };
}

/** Inputs for one target, each of which must fit its window by itself. Throws TooLongError. */
export async function inputsFor(
  { submitted }: PromptParts,
  contextWindow: number,
  { maxTokens }: ChatRequest,
  tokensOf: CountText = countText,
): Promise<TargetPrompt> {
  for (const [index, { content }] of submitted.entries()) {
    if (countBytes(content) <= contextWindow) continue;
    const tokens = await tokensOf(content);
    if (tokens > contextWindow) throw new TooLongError(tokens, contextWindow, undefined, `input[${index}]`);
  }
  return { messages: [...submitted], maxTokens };
}

export const countedOf = ({ messages, counted = messages }: TargetPrompt): ChatMessage[] => counted;

/**
 * Makes one target's prompt: history is trimmed to its window, and `maxTokens` lowered to what is left if the request
 * allows it (docs/spec.md#trimming). Throws TooLongError when nothing is left to trim. Counts messages until everything
 * fits with the rest taken at one token per byte.
 */
export async function promptFor(
  { beside, ...parts }: PromptParts,
  contextWindow: number,
  request: Pick<ChatRequest, 'maxTokens' | 'fitsTokens'>,
  tokensOf: CountText = countText,
): Promise<TargetPrompt> {
  if (beside === undefined) return fitParts(parts, contextWindow, request, tokensOf);
  const all = { ...parts, submitted: [beside, ...parts.submitted] };
  const { messages: counted, maxTokens } = await fitParts(all, contextWindow, request, tokensOf);
  return { messages: counted.filter((message) => message !== beside), counted, maxTokens };
}

async function fitParts(
  prompt: PromptParts,
  contextWindow: number,
  { maxTokens, fitsTokens = false }: Pick<ChatRequest, 'maxTokens' | 'fitsTokens'>,
  tokensOf: CountText,
): Promise<TargetPrompt> {
  const instruction = prompt.instruction === undefined ? [] : [prompt.instruction];
  const all = [...instruction, ...prompt.history, ...prompt.submitted];
  const room = contextWindow - maxTokens;
  const counts: number[] = [];
  let atMost = countPrompt(all, countBytes);
  for (const message of all) {
    if (atMost <= room) return { messages: all, maxTokens };
    const text = textOf(message);
    const tokens = await tokensOf(text);
    counts.push(tokens);
    atMost -= countBytes(text) - tokens;
  }
  const known = new Map(all.map((message, index) => [textOf(message), counts[index] ?? 0]));
  const count = (text: string) => known.get(text) ?? countBytes(text);
  if (fitsTokens) return fitBoth(prompt, contextWindow, maxTokens, count);
  const fitted = fitWindow(prompt, contextWindow, maxTokens, count);
  if (fitted.kind === 'fits') return { messages: fitted.messages, maxTokens };
  throw new TooLongError(fitted.promptTokens, contextWindow, maxTokens);
}
