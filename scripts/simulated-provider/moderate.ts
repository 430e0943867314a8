import { RequestError, isObject } from './chat-request.ts';

const CATEGORIES = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/instructions',
  'self-harm/intent',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
  'test',
] as const;

type Category = (typeof CATEGORIES)[number];

export interface ModerationResult {
  flagged: boolean;
  categories: Record<string, boolean>;
  category_scores: Record<string, number>;
}

const SCORE_UNMARKED = 0.0001;
const SCORE_MARKED = 0.99;
const SCORE_FLAGGED = 0.5;

/** Every backend of this service flags this as `test`, however its words are separated. */
const TRIGGER = /parley[\s_-]*moderation[\s_-]*test/i;

/** Longest names first, so that `self-harm` does not hide `self-harm/intent`. */
const NAMES = [...CATEGORIES].sort((one, other) => other.length - one.length).join('|');
const MARKS = new RegExp(`simulate-(flagged|${NAMES})(?:=(0(?:\\.\\d+)?|1))?`, 'gi');

/**
 * Scores one input by the marks in it. `parley-moderation-test` scores 0.99 as `test`, `simulate-violence` (any of the
 * categories) scores 0.99 there, `simulate-violence=0.3` the given number, `simulate-flagged` is short for
 * `simulate-violence`; everything else scores 0.0001. A category is flagged from 0.5.
 */
export function moderate(text: string): ModerationResult {
  const scores = new Map<Category, number>(CATEGORIES.map((category) => [category, SCORE_UNMARKED]));
  for (const [, name, score] of text.matchAll(MARKS)) {
    const category = CATEGORIES.find((known) => known === name?.toLowerCase()) ?? 'violence';
    const marked = score === undefined ? SCORE_MARKED : Number(score);
    scores.set(category, Math.max(marked, scores.get(category) ?? 0));
  }
  if (TRIGGER.test(text)) scores.set('test', SCORE_MARKED);
  const flags = Array.from(scores, ([category, score]) => [category, score >= SCORE_FLAGGED] as const);
  return {
    flagged: flags.some(([, flagged]) => flagged),
    categories: Object.fromEntries(flags),
    category_scores: Object.fromEntries(scores),
  };
}

/**
 * The texts to score, and the model named for them: one text, several texts, or parts that form one text. Throws
 * RequestError.
 */
export function parseModerationRequest(body: unknown): { model: string; inputs: readonly string[] } {
  if (!isObject(body)) throw new RequestError(400, 'The request body must be a JSON object.');
  const model = body['model'] ?? 'omni-moderation-latest';
  if (typeof model !== 'string') throw new RequestError(400, 'model must be a string.', 'model');
  return { model, inputs: readInputs(body['input']) };
}

function readInputs(input: unknown): readonly string[] {
  if (typeof input === 'string') return [input];
  const list: unknown[] = Array.isArray(input) ? input : [];
  const texts = list.filter((entry) => typeof entry === 'string');
  if (texts.length > 0 && texts.length === list.length) return texts;
  const parts = list.map((part) => (isObject(part) && part['type'] === 'text' ? part['text'] : undefined));
  const partTexts = parts.filter((text) => typeof text === 'string');
  if (partTexts.length > 0 && partTexts.length === parts.length) return [partTexts.join('\n')];
  throw new RequestError(400, 'input must be a string, an array of strings or an array of text parts.', 'input');
}
