import Joi from 'joi';
import { USAGE_SHAPES } from './usage-shape.ts';
import type { UsageShape } from './usage-shape.ts';

const FAILURE_MODES = ['none', 'status', 'reset', 'stall', 'truncate', 'malformed', 'empty'] as const;
export type FailureMode = (typeof FAILURE_MODES)[number];

const JSON_ANSWERS = ['valid', 'invalid', 'invalid_once', 'untrue', 'untrue_once'] as const;
const DELAY_MS_MAX = 3_600_000;
const LENGTH_MAX = 1_000_000;

/** The settings, under the names used at the start, in `POST /settings` and after the `?` of a model name. */
export interface SettingsByName {
  /** Time to the first text. The head and the role chunk of a stream are sent at once. */
  first_token_ms: number;
  /** Time between two text deltas. A complete answer waits as long as its stream would have taken. */
  chunk_ms: number;
  /** Number of text deltas; null: one per about three words. An answer without a given length is made long enough. */
  chunks: number | null;
  /**
   * How a call fails. `status`: an error status at once. `reset`: the connection is reset. `stall`: nothing more is
   * sent. `truncate`: the body ends cleanly without a finish reason (a complete answer: half its JSON). `malformed`: an
   * event that is not JSON replaces the remaining text, followed by finish, usage and `[DONE]` (a complete answer: JSON
   * without choices). `empty`: an answer without text.
   */
  fail: FailureMode;
  /** The status of `fail=status`. */
  status: number;
  /** `Retry-After` in seconds, sent with `status`. */
  retry_after: number | null;
  /** The share of calls that fail, decided by the call's number since `/stats/reset`: the same every time. */
  fail_rate: number;
  /**
   * Text deltas before `reset`, `stall`, `truncate` or `malformed`; 0: a stream gets its head and role chunk, but no
   * text; -1: not even a head (`truncate` and `malformed` then close the connection). A complete answer is reset or
   * stalled before its head with 0, and after half of its body with 1 or more.
   */
  fail_after: number;
  /** How many calls fail per request id (without that header: per prompt) and model name; null: no limit. */
  fail_times: number | null;
  /** Calls that are answered at once; the others wait inside the provider, as in llama-server. null: any number. */
  slots: number | null;
  /** Requests and tokens a minute; beyond them a call is 429 with `Retry-After`, and each answer says what is left. */
  rpm: number | null;
  tpm: number | null;
  /** Length of the generated answer in words; null: 60 to 120. */
  words: number | null;
  /** Length of the generated answer in tokens. A generated word is one token; wins over `words`. */
  tokens: number | null;
  /** The exact answer, even if JSON is requested. */
  text: string | null;
  /** The answer is the last user message. */
  echo: boolean;
  /** The answer says that it is simulated and shows what it was asked, remembered and told, as JSON if that is requested. */
  show: boolean;
  /** null: `stop`, or `length` if `max_tokens` cut the answer. */
  finish_reason: string | null;
  /**
   * The answer to a request for JSON (`response_format`): `invalid` breaks off, `untrue` is JSON that knows nothing of the
   * schema; with `_once` only the first call does, keyed like `fail_times`.
   */
  json: (typeof JSON_ANSWERS)[number];
  /** The form in which the answer says what it took; `simulate-usage=cached` in the last message wins. */
  usage: UsageShape;
  /** The status of `/v1/moderations`, and its delay. */
  moderation_status: number;
  moderation_ms: number;
}

/** Some of the settings; null means "as if not given". */
export type SettingsInput = { [Name in keyof SettingsByName]?: SettingsByName[Name] | null };

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** The same settings under the names used in code (`firstTokenMs`). */
export type Settings = { readonly [Name in keyof SettingsByName as CamelCase<Name>]: SettingsByName[Name] };

const whole = (min: number, max: number) => Joi.number().integer().min(min).max(max).allow(null);
const yesOrNo = () => Joi.boolean().truthy(1, '1').falsy(0, '0').allow(null);
const errorStatus = () => whole(400, 599);

/** The value that applies if nothing else is given, and what else may be given. */
const TABLE: { readonly [Name in keyof SettingsByName]: readonly [SettingsByName[Name], Joi.Schema] } = {
  first_token_ms: [0, whole(0, DELAY_MS_MAX)],
  chunk_ms: [0, whole(0, DELAY_MS_MAX)],
  chunks: [null, whole(1, LENGTH_MAX)],
  fail: ['none', Joi.valid(...FAILURE_MODES, null)],
  status: [500, errorStatus()],
  retry_after: [null, whole(0, 86_400)],
  fail_rate: [1, Joi.number().min(0).max(1).allow(null)],
  fail_after: [0, whole(-1, LENGTH_MAX)],
  fail_times: [null, whole(0, LENGTH_MAX)],
  slots: [null, whole(1, LENGTH_MAX)],
  rpm: [null, whole(1, LENGTH_MAX)],
  tpm: [null, whole(1, 1_000_000_000)],
  words: [null, whole(1, LENGTH_MAX)],
  tokens: [null, whole(1, LENGTH_MAX)],
  text: [null, Joi.string().allow('', null)],
  echo: [false, yesOrNo()],
  show: [false, yesOrNo()],
  finish_reason: [
    null,
    Joi.string()
      .pattern(/^[a-z_]{1,40}$/, 'lower-case letters and underscores')
      .allow(null),
  ],
  json: ['valid', Joi.valid(...JSON_ANSWERS, null)],
  usage: ['chunk', Joi.valid(...USAGE_SHAPES, null)],
  moderation_status: [200, errorStatus().allow(200)],
  moderation_ms: [0, whole(0, DELAY_MS_MAX)],
};
const BUILT_IN = Object.fromEntries(Object.entries(TABLE).map(([name, [value]]) => [name, value]));

const settingsSchema = Joi.object<SettingsInput>(
  Object.fromEntries(Object.entries(TABLE).map(([name, [, schema]]) => [name, schema])),
)
  .required()
  .label('The settings')
  .messages({
    'object.base': '{#label} must be a JSON object',
    'object.unknown': `{#label} is not a setting; there are ${Object.keys(TABLE).join(', ')}`,
  });

/** Thrown for unusable settings; the message is one sentence that names the setting. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** Checks settings of unknown origin; numbers may be given as text. Throws SettingsError. */
export function parseSettings(input: unknown): SettingsInput {
  const result = settingsSchema.validate(input, { errors: { wrap: { label: false } } });
  if (result.error !== undefined) throw new SettingsError(`${result.error.message}.`);
  return result.value;
}

/** Reads `first_token_ms=200&chunks=40`, percent-encoded as in a URL. Throws SettingsError. */
export function parseSettingsQuery(query: string): SettingsInput {
  const given = [...new URLSearchParams(query)];
  const names = given.map(([name]) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new SettingsError(`${twice} is given twice.`);
  return parseSettings(Object.fromEntries(given));
}

/** Merges layers of settings, of which later ones win; null changes nothing. */
export function mergeSettings(...layers: readonly SettingsInput[]): SettingsByName {
  const merged: Record<string, unknown> = { ...BUILT_IN };
  for (const layer of layers) {
    for (const [name, value] of Object.entries(layer)) if (value !== null) merged[name] = value;
  }
  // Every name starts with its built-in value, which only a value of the same name can replace.
  return merged as unknown as SettingsByName;
}

export function toSettings(byName: SettingsByName): Settings {
  const entries = Object.entries(byName).map(([name, value]) => [
    name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value as unknown,
  ]);
  // CamelCase<Name> expresses in types what the replacement above does to the names.
  return Object.fromEntries(entries) as Settings;
}
