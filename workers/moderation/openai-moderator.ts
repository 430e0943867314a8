import { isRecord, wellFormedJson } from '../../shared/contracts/parse.ts';
import { createEndpoint, withRetries } from '../providers/http-call.ts';
import type { HttpClient } from '../providers/http-client.ts';
import { parseObject } from '../providers/call-provider.ts';
import { endpointUrl, postToProvider, readDocument } from '../providers/post-to-provider.ts';
import { ProviderError } from '../providers/provider.ts';
import { DEFAULT_MODERATION_POLICY, DEFAULT_THRESHOLD, judge } from './moderator.ts';
import type { Moderator } from './moderator.ts';

/** UTF-16 units. The longest message (docs/spec.md#chat-request) is one piece; an answer may need several. */
const PIECE = 32_000;
/** Pieces of one text overlap, so that no phrase is cut in two. */
const PIECE_OVERLAP = 200;
/** The most texts, and units, of one call. */
const BATCH_TEXTS = 32;
const BATCH_UNITS = 64_000;

function piecesOf(text: string): string[] {
  const pieces = [text.slice(0, PIECE)];
  for (let at = PIECE; at < text.length; at += PIECE - PIECE_OVERLAP)
    pieces.push(text.slice(at - PIECE_OVERLAP, at - PIECE_OVERLAP + PIECE));
  return pieces;
}

/**
 * Matches runs of white space, each looked at once. With the line break in it (`\s*[\n…]\s*`) it would try every place
 * in a run without one, and a message of spaces would stop the worker for seconds.
 */
const WHITE_SPACE = /\s+/gu;
const LINE_BREAK = /[\n\r\u2028\u2029]/u;

/** A text as it is and, if it has several lines, with spaces in place of the breaks. */
function readingsOf(text: string): string[] {
  const asOneLine = text.trim().replaceAll(WHITE_SPACE, (run) => (LINE_BREAK.test(run) ? ' ' : run));
  return asOneLine === text.trim() ? [text] : [text, asOneLine];
}

/** Texts as the inputs of one call or several, in order, without those of nothing but white space. */
export function toBatches(texts: readonly string[]): string[][] {
  const batches: string[][] = [];
  let units = 0;
  for (const piece of texts
    .filter((text) => text.trim() !== '')
    .flatMap(readingsOf)
    .flatMap(piecesOf)) {
    const batch = batches.at(-1);
    if (batch === undefined || batch.length >= BATCH_TEXTS || units + piece.length > BATCH_UNITS) {
      batches.push([piece]);
      units = piece.length;
    } else {
      batch.push(piece);
      units += piece.length;
    }
  }
  return batches;
}

/** The JSON body of `POST /moderations`; without a model the server takes its own. */
export function toModerationBody(inputs: readonly string[], model: string | undefined): string {
  return wellFormedJson({ ...(model === undefined ? {} : { model }), input: inputs });
}

export interface ModerationReport {
  /** The highest score of each category, 0 to 1. */
  scores: Record<string, number>;
  flagged: Set<string>;
}

/** Stands for what a server flags by a measure that it does not name. */
const UNNAMED = 'unspecified';

function readResult(result: unknown, report: ModerationReport): void {
  if (!isRecord(result) || typeof result['flagged'] !== 'boolean')
    throw new ProviderError('transient', 'The moderation endpoint sent a result without a verdict');
  const categories = isRecord(result['categories']) ? result['categories'] : {};
  const scores = isRecord(result['category_scores']) ? result['category_scores'] : {};
  const raise = (category: string, score: number) => {
    report.scores[category] = Math.max(report.scores[category] ?? 0, score);
  };
  for (const [category, score] of Object.entries(scores)) if (typeof score === 'number') raise(category, score);
  const flagged = Object.keys(categories).filter((category) => categories[category] === true);
  const isExplained = flagged.length > 0 || Object.values(scores).some((score) => Number(score) >= DEFAULT_THRESHOLD);
  if (result['flagged'] && !isExplained) flagged.push(UNNAMED);
  for (const category of flagged) {
    report.flagged.add(category);
    // Some servers name categories without scores.
    if (typeof scores[category] !== 'number') raise(category, 1);
  }
}

/** Throws a ProviderError unless there is a result for each of the `count` inputs. */
export function parseModeration(json: string, count: number): ModerationReport {
  const { results } = parseObject(json);
  if (!Array.isArray(results) || results.length !== count)
    throw new ProviderError('transient', 'The moderation endpoint did not answer for every text');
  const report: ModerationReport = { scores: {}, flagged: new Set() };
  for (const result of results as unknown[]) readResult(result, report);
  return report;
}

export interface OpenAiModeratorOptions {
  /** Ends in its version segment, as in `https://host/v1`. */
  baseUrl: string;
  apiKey?: string;
  model?: string;
  /** For one call, including its retry. */
  timeoutMs: number;
}

const ANSWER_BYTES_MAX = 1024 * 1024;
/** A verdict that is there in whole waits this long for the end of its body, which lets the connection be used again. */
const END_WAIT_MS = 100;
/** A request should not be refused because of a closed connection or a moment of overload. */
const RETRIES = 1;

async function askInTime(
  timeoutMs: number,
  ask: (inputs: readonly string[], signal: AbortSignal) => Promise<ModerationReport>,
  inputs: readonly string[],
  outer: AbortSignal | undefined,
): Promise<ModerationReport> {
  outer?.throwIfAborted();
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(new ProviderError('transient', `The moderation endpoint gave no verdict within ${timeoutMs} ms`));
  }, timeoutMs);
  const onAbort = () => {
    controller.abort(outer?.reason);
  };
  outer?.addEventListener('abort', onAbort, { once: true });
  try {
    return await withRetries(() => ask(inputs, controller.signal), {
      retries: RETRIES,
      // A wait longer than the time limit would only delay the refusal.
      mayRetry: (error) =>
        error instanceof ProviderError && error.fault === 'transient' && error.retryAfterMs < timeoutMs,
      retryAfterMs: (error) => (error instanceof ProviderError ? error.retryAfterMs : 0),
      signal: controller.signal,
    });
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', onAbort);
  }
}

export function createOpenAiModerator(http: HttpClient, options: OpenAiModeratorOptions): Moderator {
  const { apiKey, model, timeoutMs } = options;
  const headers: Record<string, string> = apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` };
  const endpoint = createEndpoint(endpointUrl(options.baseUrl, '/moderations'), headers);

  async function ask(inputs: readonly string[], signal: AbortSignal): Promise<ModerationReport> {
    const answer = readDocument(ANSWER_BYTES_MAX);
    await postToProvider(http, { endpoint, body: toModerationBody(inputs, model), signal }, () => answer, END_WAIT_MS);
    return parseModeration(answer.text(), inputs.length);
  }

  return {
    backend: 'openai',
    async check(texts, { policy = DEFAULT_MODERATION_POLICY, signal } = {}) {
      const scores: Record<string, number> = {};
      const flagged = new Set<string>();
      for (const inputs of toBatches(typeof texts === 'string' ? [texts] : texts)) {
        const report = await askInTime(timeoutMs, ask, inputs, signal);
        for (const [category, score] of Object.entries(report.scores))
          scores[category] = Math.max(scores[category] ?? 0, score);
        for (const category of report.flagged) flagged.add(category);
        const verdict = judge(scores, policy, flagged);
        // Later texts cannot make a flagged text harmless.
        if (verdict.flagged) return verdict;
      }
      return judge(scores, policy, flagged);
    },
  };
}
