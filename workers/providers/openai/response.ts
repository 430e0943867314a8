import { isRecord } from '../../../shared/contracts/parse.ts';
import { errorInAnswer } from '../http/error-reply.ts';
import { modelName, parseObject, tokenCount } from '../http/parse-json.ts';
import { ProviderError } from '../provider.ts';
import type { ReportedUsage } from '../provider.ts';

/** The parts of a chat completion, or of one chunk of it, that this service reads. */
export interface Completion {
  text: string;
  finishReason: 'stop' | 'length' | 'content_filter' | undefined;
  usage: ReportedUsage | undefined;
  model: string | undefined;
  /** The model wants a tool, although none is ever offered: this counts as an answer only if there is text as well. */
  wantsTool: boolean;
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
function usageIn(places: readonly unknown[]): ReportedUsage | undefined {
  const counts = places.flatMap((place) => (isRecord(place) ? (toUsage(place['usage']) ?? []) : []));
  return counts.find(({ completionTokens }) => completionTokens > 0) ?? counts[0];
}

/** Words for an answer cut off by `max_tokens` or the window: OpenAI's, Mistral's, and some gateways'. */
const LENGTH_REASONS: ReadonlySet<string> = new Set(['length', 'model_length', 'max_tokens']);
/** Words for an answer that was broken off: OpenRouter and vLLM, vLLM, DeepSeek. */
const BROKEN_REASONS: ReadonlySet<string> = new Set(['error', 'abort', 'insufficient_system_resource']);
const TOOL_REASONS: ReadonlySet<unknown> = new Set(['tool_calls', 'function_call']);

/** Servers have reasons of their own; one that is no limit, filter or failure is an ordinary end (`eos`). */
function toFinishReason(value: unknown): Completion['finishReason'] {
  if (typeof value !== 'string' || value === '') return undefined;
  if (BROKEN_REASONS.has(value))
    throw new ProviderError('transient', `The provider broke its answer off (finish reason ${value})`);
  if (LENGTH_REASONS.has(value)) return 'length';
  return value === 'content_filter' ? value : 'stop';
}

/** The content may be text, or a list of parts of which only those of type text count (Mistral's reasoning models). */
function toText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  const parts = content.map((part: unknown) => (isRecord(part) && part['type'] === 'text' ? part['text'] : ''));
  return parts.filter((text) => typeof text === 'string').join('');
}

/** Reads one chunk (`delta`) or a whole answer (`message`). Throws a ProviderError on anything else. */
export function parseCompletion(json: string, part: 'delta' | 'message'): Completion {
  const value = parseObject(json);
  // Groq puts usage, and an error inside a stream, into its own field.
  const groq = isRecord(value['x_groq']) ? value['x_groq'] : {};
  const error = value['error'] ?? groq['error'];
  if (isRecord(error) || typeof error === 'string') throw errorInAnswer(error);
  // vLLM's error inside a stream has no envelope.
  if (value['object'] === 'error') throw errorInAnswer(value);
  const choices = value['choices'];
  if (!Array.isArray(choices)) throw new ProviderError('transient', 'The provider sent an answer without choices');
  const choice: unknown = choices[0];
  const usage = usageIn([value, groq, choice]);
  const model = modelName(value['model']);
  if (!isRecord(choice)) {
    if (part === 'message') throw new ProviderError('transient', 'The provider sent an answer without a choice');
    return { text: '', finishReason: undefined, usage, model, wantsTool: false };
  }
  const content = isRecord(choice[part]) ? choice[part]['content'] : undefined;
  return {
    text: toText(content),
    finishReason: toFinishReason(choice['finish_reason']),
    usage,
    model,
    wantsTool: TOOL_REASONS.has(choice['finish_reason']),
  };
}
