/**
 * The form in which a provider says what an answer took. `chunk`: as OpenAI, in a chunk of its own. `beside`: in the chunk of the
 * finish reason. `own`: in a field of its own (Groq's `x_groq`). `doubled`: with the finish reason and again behind it.
 * `zero`, `absent`. `cached`, `cache_write`: half of the prompt was read from, or written to, a cache. `reasoning`: some
 * tokens that nobody sees. `audio`: half of each count was audio. `text`: the numbers are strings.
 */
export const USAGE_SHAPES = [
  ...(['chunk', 'beside', 'own', 'doubled', 'zero', 'absent'] as const),
  ...(['cached', 'cache_write', 'reasoning', 'audio', 'text'] as const),
] as const;
export type UsageShape = (typeof USAGE_SHAPES)[number];

export const isUsageShape = (word: unknown): word is UsageShape => USAGE_SHAPES.some((shape) => shape === word);

/** Tokens of the shape `reasoning`, beside those of an answer's text. */
export const HIDDEN_TOKENS = 16;

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: Record<string, number>;
  completion_tokens_details?: Record<string, number>;
}

/** The tokens of an answer; `reasoning` are among those of the completion. */
interface Took {
  prompt: number;
  completion: number;
  reasoning: number;
}

/** The usage as it is, which the books keep. */
export function usageOf({ prompt, completion, reasoning }: Took, shape: UsageShape): Usage {
  const half = (count: number) => Math.floor(count / 2);
  const ofPrompt: Record<string, number> = {
    ...(shape === 'cached' ? { cached_tokens: half(prompt) } : {}),
    ...(shape === 'cache_write' ? { cache_write_tokens: half(prompt) } : {}),
    ...(shape === 'audio' ? { audio_tokens: half(prompt) } : {}),
  };
  const ofCompletion: Record<string, number> = {
    ...(reasoning > 0 ? { reasoning_tokens: reasoning } : {}),
    ...(shape === 'audio' ? { audio_tokens: half(completion) } : {}),
  };
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    ...(Object.keys(ofPrompt).length === 0 ? {} : { prompt_tokens_details: ofPrompt }),
    ...(Object.keys(ofCompletion).length === 0 ? {} : { completion_tokens_details: ofCompletion }),
  };
}

/** The usage as a caller gets it; undefined: not at all. */
export function toldUsage(usage: object, shape: UsageShape): object | undefined {
  if (shape === 'absent') return undefined;
  if (shape !== 'zero' && shape !== 'text') return usage;
  return Object.fromEntries(Object.entries(usage).map(([name, value]) => [name, shape === 'zero' ? 0 : String(value)]));
}
