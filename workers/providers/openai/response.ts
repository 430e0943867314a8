import { isRecord } from '../../../shared/contracts/parse.ts';
import { errorInAnswer, errorOf } from '../http/error-reply.ts';
import { plainWord, readFinishReason } from '../http/finish-reason.ts';
import type { FinishReason } from '../http/finish-reason.ts';
import { modelName, tokenCount } from '../http/parse-json.ts';
import { ProviderError } from '../provider.ts';
import type { ReportedUsage } from '../provider.ts';

/** The parts of a chat completion, or of one chunk of it, that this service reads. */
export interface Completion {
  text: string;
  finishReason: FinishReason | undefined;
  usage: ReportedUsage | undefined;
  model: string | undefined;
  /** The model wants a tool, although none is ever offered: this counts as an answer only if there is text as well. */
  wantsTool: boolean;
  /** The text is the model's refusal to answer. */
  isRefusal: boolean;
  /** See ProviderEnd. */
  unknownReason: string | undefined;
}

/** A part of a count, from the details in either API's words; 0: the provider does not say. */
function partOf(usage: Record<string, unknown>, counts: readonly string[], part: string): number {
  const details = counts.map((count) => usage[`${count}_details`]).find(isRecord);
  return tokenCount(details?.[part]) ?? 0;
}

/**
 * Reads chat completions' words for the counts, or those of the Responses API. A part of a count (xAI's reasoning, some
 * gateways' cached tokens) stands beside the count, not inside, if only then everything adds up to the total. If no
 * total decides, a part that is larger than its count cannot be inside it.
 */
function toUsage(value: unknown): ReportedUsage | undefined {
  if (!isRecord(value)) return undefined;
  const prompt = tokenCount(value['prompt_tokens'] ?? value['input_tokens']);
  const completion = tokenCount(value['completion_tokens'] ?? value['output_tokens']);
  if (prompt === undefined || completion === undefined) return undefined;
  const cached = partOf(value, ['prompt_tokens', 'input_tokens'], 'cached_tokens');
  const reasoning = partOf(value, ['completion_tokens', 'output_tokens'], 'reasoning_tokens');
  const unexplained = (tokenCount(value['total_tokens']) ?? NaN) - prompt - completion;
  const ways = [
    [0, 0],
    [0, reasoning],
    [cached, 0],
    [cached, reasoning],
  ] as const;
  const [cachedBeside, reasoningBeside] = ways.find((beside) => beside[0] + beside[1] === unexplained) ?? [
    cached > prompt ? cached : 0,
    reasoning > completion ? reasoning : 0,
  ];
  const completionTokens = completion + reasoningBeside;
  return {
    promptTokens: prompt + cachedBeside,
    completionTokens,
    ...(reasoning === 0 ? {} : { reasoningTokens: Math.min(reasoning, completionTokens) }),
  };
}

/** The first count that is not zero of those on top, of Groq's field and of the choice (Moonshot), or else a zero. */
function usageIn(...places: readonly unknown[]): ReportedUsage | undefined {
  let zero: ReportedUsage | undefined;
  for (const place of places) {
    const usage = isRecord(place) ? toUsage(place['usage']) : undefined;
    if (usage === undefined) continue;
    if (usage.completionTokens > 0) return usage;
    zero ??= usage;
  }
  return zero;
}

/** The content may be text, or a list of parts of which only those of type text count (Mistral's reasoning models). */
function toText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const parts = content.map((part: unknown) => (isRecord(part) && part['type'] === 'text' ? part['text'] : ''));
  return parts.filter((text) => typeof text === 'string').join('');
}

type Ending = Pick<Completion, 'finishReason' | 'wantsTool' | 'unknownReason'>;

const NO_END: Ending = { finishReason: undefined, wantsTool: false, unknownReason: undefined };

/** A word that is not known is an ordinary end, which the log mentions. */
function readEnding(choice: Record<string, unknown>): Ending {
  // In camel case where a server of Gemini's kind speaks this protocol; OpenRouter may give the model's own word alone.
  const word = choice['finish_reason'] ?? choice['finishReason'] ?? choice['native_finish_reason'];
  const meaning = readFinishReason(word);
  if (meaning === undefined) return NO_END;
  const isKnown = meaning !== 'unknown';
  const finishReason = meaning === 'tool' || !isKnown ? 'stop' : meaning;
  return { finishReason, wantsTool: meaning === 'tool', unknownReason: isKnown ? undefined : plainWord(String(word)) };
}

/** Reads one chunk (`delta`) or a whole answer (`message`). Throws a ProviderError on anything else. */
export function parseCompletion(value: Record<string, unknown>, part: 'delta' | 'message'): Completion {
  const choices: unknown = value['choices'];
  // Groq puts usage, and an error inside a stream, into its own field.
  const groq = isRecord(value['x_groq']) ? value['x_groq'] : undefined;
  const error = errorOf(value, Array.isArray(choices)) ?? (groq && errorOf(groq, true));
  if (error !== undefined) throw errorInAnswer(error);
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const usage = usageIn(value, groq, choice);
  const model = modelName(value['model']);
  if (!isRecord(choice)) {
    if (part === 'message') throw new ProviderError('transient', 'The provider sent an answer without a choice');
    // Usage alone, or a heartbeat.
    return { text: '', usage, model, isRefusal: false, ...NO_END };
  }
  const said = isRecord(choice[part]) ? choice[part] : {};
  const text = toText(said['content']);
  const refusal = text === '' && typeof said['refusal'] === 'string' ? said['refusal'] : '';
  return { text: text === '' ? refusal : text, usage, model, isRefusal: refusal !== '', ...readEnding(choice) };
}
