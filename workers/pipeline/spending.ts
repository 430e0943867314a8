import type { ChatMessage } from '../../shared/contracts/chat-request.ts';
import { withKinds, wordsOf } from '../../shared/contracts/events.ts';
import type { Increment, Usage } from '../../shared/contracts/events.ts';
import { mediaTokensOf, textOf } from '../../shared/contracts/message-text.ts';
import type { Spend } from '../../shared/contracts/settlement.ts';
import { BYTES_PER_TOKEN, priceUsage, spendOf } from '../../shared/domain/pricing.ts';
import type { Rates } from '../../shared/domain/routing.ts';
import type { Hold } from '../../shared/requests/delivery.ts';
import type { ReportedUsage } from '../providers/provider.ts';
import { loadTokenizer, countBytes, countPrompt } from './fit-window.ts';
import type { Ask, Bound, Lease } from './stage.ts';

export interface HoldTerms {
  rates: Rates;
  /** The longest answer a provider is asked for. */
  maxTokens: number;
}

/** Negative: the held credits do not even pay for the prompt. */
function paidTokens({ rates }: HoldTerms, held: Hold, promptTokens: number): number {
  const left = held.micro - priceUsage({ promptTokens, completionTokens: 0 }, rates);
  if (rates.completionMicro > 0) return Math.floor(left / rates.completionMicro);
  return left >= 0 ? Infinity : -1;
}

/** Infinity: the hold covers the longest answer. */
export function grantedTokens(terms: HoldTerms, held: Hold, promptTokens: number): number {
  const least = Math.min(paidTokens(terms, held, promptTokens), held.tokens - promptTokens);
  // No provider sends more than it was asked for, whatever our estimate says.
  return least >= terms.maxTokens ? Infinity : Math.max(0, least);
}

/** Names the bound that ends an answer. */
export function boundReached(terms: HoldTerms, held: Hold, promptTokens: number): Bound {
  if (paidTokens(terms, held, promptTokens) <= held.tokens - promptTokens) return 'credits';
  const isTest = held.micro === Infinity;
  return isTest ? 'allowance' : 'budget';
}

/** The part of a usage that a hold pays for: the answer is cut before the prompt. */
export function paidPart({ rates }: HoldTerms, held: Hold, usage: Usage): Usage {
  if (priceUsage(usage, rates) <= held.micro && usage.promptTokens + usage.completionTokens <= held.tokens)
    return usage;
  const covered = (tokens: number, rate: number, micro: number, most: number) =>
    Math.max(0, Math.min(tokens, most, rate > 0 ? Math.floor(micro / rate) : Infinity));
  const promptTokens = covered(usage.promptTokens, rates.promptMicro, held.micro, held.tokens);
  const left = held.micro - promptTokens * rates.promptMicro;
  const completionTokens = covered(usage.completionTokens, rates.completionMicro, left, held.tokens - promptTokens);
  return { promptTokens, completionTokens, estimated: true };
}

/** The hold that a request with an answer of this length needs; lengths beyond `maxTokens` count as `maxTokens`. */
export function holdFor({ rates, maxTokens }: HoldTerms, promptTokens: number, completionTokens: number): Hold {
  const completion = Math.min(maxTokens, completionTokens);
  return {
    micro: priceUsage({ promptTokens, completionTokens: completion }, rates),
    tokens: promptTokens + completion,
  };
}

/** Tokens that chat formats add to a whole prompt. */
const TOKENS_PER_PROMPT = 3;

export interface Amount {
  bytes: number;
  /** Pieces it came in; each is at least one token. */
  pieces: number;
}

const tokensOf = (text: string) => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

/** Tokens of a prompt, estimated from its bytes until somebody has counted them. */
export function estimatePrompt(messages: readonly ChatMessage[]): number {
  return TOKENS_PER_PROMPT + countPrompt(messages, tokensOf);
}

export function estimateTokens({ bytes, pieces }: Amount): number {
  return Math.max(pieces, Math.ceil(bytes / BYTES_PER_TOKEN));
}

export function amountWith({ bytes, pieces }: Amount, piece: Increment): Amount {
  return { bytes: bytes + Buffer.byteLength(wordsOf(piece)), pieces: pieces + 1 };
}

/** The longest beginning, in whole characters, with which the answer stays within `tokens`; of anything but text none. */
function fittingPart(before: Amount, text: Increment, tokens: number): string {
  if (before.pieces >= tokens || typeof text !== 'string') return '';
  let left = tokens * BYTES_PER_TOKEN - before.bytes;
  let end = 0;
  for (const character of text) {
    left -= Buffer.byteLength(character);
    if (left < 0) break;
    end += character.length;
  }
  return text.slice(0, end);
}

/** More is asked for when only this many granted tokens are left, plus an eighth of those released. */
const LOW_TOKENS = 32;
const LOW_PART = 8;
/** The pause after a request for a grant that Redis did not answer. */
const RETRY_MS = 1_000;

type GrantingLease = Pick<Lease, 'granted' | 'grant' | 'exhaust' | 'signal'>;

/** Asks for grants, one at a time; `onAnswer` is called after each. */
function createAsking(lease: GrantingLease, onAnswer: () => void) {
  let isAsking = false;
  let askedFor = 0;
  /** The grant when more was last asked for ahead of need. */
  let aheadAt = -1;

  function ask(tokens: number): void {
    if (isAsking) return;
    isAsking = true;
    const answered = () => {
      isAsking = false;
      onAnswer();
    };
    lease.grant(tokens).then(
      () => {
        askedFor = Math.max(askedFor, tokens);
        answered();
      },
      // The lease has logged the failure. Nothing was refused, so the answer continues.
      () => setTimeout(answered, RETRY_MS),
    );
  }

  return {
    ask,
    isAsking: (): boolean => isAsking,
    /** So many tokens were asked for, and are not granted. */
    isRefused: (tokens: number): boolean => tokens <= askedFor,
    askAhead(released: number): void {
      const granted = lease.granted();
      if (granted - released >= LOW_TOKENS + released / LOW_PART || aheadAt === granted) return;
      aheadAt = granted;
      ask(released + LOW_TOKENS);
    },
  };
}

/**
 * Keeps released text within balance, budget and allowance, however many requests run (docs/spec.md#holds). Text beyond
 * the grant waits for the next one. If that does not cover it either, the covered part is released, and the lease ends
 * as exhausted.
 */
export function openReleaseGate(lease: GrantingLease, emit: (increment: Increment) => void) {
  const waiting: Increment[] = [];
  const over = Promise.withResolvers<undefined>();
  over.promise.catch(() => undefined);
  let out = { bytes: 0, pieces: 0 };
  let ending = false;
  let closed = false;
  const asking = createAsking(lease, pump);

  function send(increment: Increment): void {
    out = amountWith(out, increment);
    emit(increment);
  }

  function exhaust(): void {
    const part = fittingPart(out, waiting[0] ?? '', lease.granted());
    waiting.length = 0;
    if (part !== '') send(part);
    lease.exhaust();
  }

  function pump(): void {
    if (closed) return;
    for (let next = waiting[0]; next !== undefined && !lease.signal.aborted; next = waiting[0]) {
      const needed = estimateTokens(amountWith(out, next));
      if (needed > lease.granted()) {
        if (asking.isRefused(needed)) exhaust();
        else asking.ask(needed);
        return;
      }
      waiting.shift();
      send(next);
    }
    if (lease.signal.aborted) return;
    if (ending) over.resolve(undefined);
    else asking.askAhead(estimateTokens(out));
  }

  lease.signal.addEventListener('abort', () => {
    // The reason is a Stopped: see Lease.
    over.reject(lease.signal.reason as Error);
  });

  return {
    push(increment: Increment): void {
      waiting.push(increment);
      if (!asking.isAsking() || waiting.length === 1) pump();
    },
    /** Resolves when all pushed text is out. Rejects with the Stopped of the lease if that comes first. */
    end(): Promise<void> {
      ending = true;
      if (lease.signal.aborted) over.reject(lease.signal.reason as Error);
      else pump();
      return over.promise;
    },
    /** Releases nothing more, granted or not: the provider call has ended, and another may have taken its place. */
    close(): void {
      closed = true;
    },
  };
}

/** Tokens that a provider may add to the messages: a chat template, its own system prompt, search results. */
const ADDED_TOKENS_MAX = 4_096;
/** A count up to so many times `max_tokens`, plus MARKS_MAX for markers, is another tokenizer's. */
const OTHER_MEASURE_MAX = 2;
const MARKS_MAX = 16;

/** Ten times the longest reasoning that providers offer. `max_tokens` does not bound it everywhere: xAI counts it beside. */
const REASONING_TOKENS_MAX = 1_000_000;

/**
 * Takes a provider's count as far as it is plausible: no token of a text is shorter than a byte, images, sound and
 * files have as many as the window holds, no text has no tokens, and no answer is longer than asked for, apart from
 * unseen reasoning. An answer is charged at most `maxTokens` all the same. Undefined: it cannot be true
 * (docs/decisions/0009-holds-and-ledger.md).
 */
export function plausibleUsage(
  reported: ReportedUsage,
  { messages, contextWindow }: { messages: readonly ChatMessage[]; contextWindow: number },
  text: string,
  maxTokens: number,
): Usage | undefined {
  const { promptTokens, completionTokens, reasoningTokens = 0 } = reported;
  const reasoned = text === '' ? completionTokens : reasoningTokens;
  // An embedding has no tokens of its own.
  if (promptTokens === 0 || (completionTokens === 0 && text !== '' && maxTokens > 0)) return undefined;
  const mediaMost = messages.some((message) => mediaTokensOf(message) > 0) ? contextWindow : 0;
  if (promptTokens > Math.max(mediaMost, countPrompt(messages, countBytes) + ADDED_TOKENS_MAX)) return undefined;
  if (completionTokens - reasoned > maxTokens * OTHER_MEASURE_MAX + MARKS_MAX) return undefined;
  if (reasoned > REASONING_TOKENS_MAX) return undefined;
  if (completionTokens <= maxTokens) return withKinds({ promptTokens, completionTokens }, reported);
  return withKinds({ promptTokens, completionTokens: maxTokens, estimated: true }, reported);
}

/** A fast model writes so many tokens in a second. They count while nothing of an answer was heard. */
const SILENT_TOKENS_PER_SECOND = 100;

/** The tokens of a call: the provider's count if it is plausible, or else what was sent and heard. */
export function askedUsage(ask: Ask): Usage {
  const { promptTokens, maxTokens, heard, reported, durationMs } = ask;
  const { units, pieces } = heard;
  const believed = reported && plausibleUsage(reported, ask, pieces > 0 ? 'text' : '', maxTokens);
  if (believed !== undefined) return believed;
  const unreported = Math.min(maxTokens, Math.floor((durationMs / 1000) * SILENT_TOKENS_PER_SECOND));
  // Vectors are no tokens.
  const heardTokens = maxTokens === 0 ? 0 : Math.max(pieces, Math.ceil(units / BYTES_PER_TOKEN));
  const completionTokens = pieces > 0 ? heardTokens : unreported;
  return { promptTokens, completionTokens, estimated: true };
}

/** Tokens of a prompt that nobody pays for: those of the repair of an answer. */
export function unpaidPrompt(ask: Ask): number {
  return ask.paidPrompt === undefined ? 0 : Math.max(0, askedUsage(ask).promptTokens - ask.paidPrompt);
}

/**
 * `last`: the tokens of the call that answered. Undefined: the cost is unknown, because a target that was called has
 * none, or because the calls were made by a worker that has died.
 */
export function spendOn(asks: readonly Ask[], last: Usage): Spend | undefined {
  const worked = asks.filter(({ isRefused }) => !isRefused);
  const currency = worked.at(-1)?.cost?.currency;
  if (currency === undefined) return undefined;
  let nano = 0;
  for (const [index, ask] of worked.entries()) {
    if (ask.cost?.currency !== currency) return undefined;
    const isLast = index === worked.length - 1;
    const used = isLast ? { ...last, promptTokens: last.promptTokens + unpaidPrompt(ask) } : askedUsage(ask);
    nano += spendOf(used, ask.cost);
  }
  return { currency, nano };
}

/** Counts with our own tokenizer, flagged as estimated. An answer counts as at most `maxTokens`. */
export async function estimateUsage(asked: readonly ChatMessage[], text: string, maxTokens: number): Promise<Usage> {
  const tokenizer = await loadTokenizer();
  // Vectors are no tokens; as text they would take seconds to count.
  const said = maxTokens === 0 ? '' : text;
  const count = await tokenizer.count([...asked.map(textOf), said]);
  const completionTokens = Math.min(maxTokens, count(said));
  return { promptTokens: countPrompt(asked, count), completionTokens, estimated: true };
}
