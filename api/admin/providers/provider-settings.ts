import Joi from 'joi';

import { DEFAULT_BREAKER } from '../../../shared/domain/breaker.ts';
import type { BreakerSettings } from '../../../shared/domain/breaker.ts';
import { looksLikeApiKey } from '../../../shared/domain/api-key.ts';
import { CEILING_MAX } from '../../../shared/domain/capacity.ts';
import { PROVIDER_KINDS } from '../../../shared/domain/routing.ts';
import type { ProviderKind } from '../../../shared/domain/routing.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { isPrivateHost } from '../../../shared/http/public-address.ts';
import type {
  ProviderRepository,
  ProviderRow,
  ProviderSettings,
} from '../../../shared/mongo/routing/provider-repository.ts';
import { countSchema } from '../../contract/json-schema.ts';
import { found } from '../../contract/path-parameters.ts';

const TIMEOUT_DEFAULT_MS = 600_000;
const FIRST_TOKEN_TIMEOUT_DEFAULT_MS = 15_000;
const RETRIES_DEFAULT = 2;
const ONE_HOUR_MS = 3_600_000;

const PROVIDER_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;

/** Azure's URLs end with this query; any other is refused. */
const API_VERSION = /\?api-version=[\w.-]{1,64}$/;

/** Characters that nobody sees in what they paste: controls, separators of lines, and those without a width. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** Pasted names bring along characters that no provider knows; it would answer 404. */
const checkModel: Joi.CustomValidator<string> = (value, helpers) =>
  value === value.trim() && !INVISIBLE.test(value)
    ? value
    : helpers.message({ custom: '{{#label}} must not begin or end with a space, or contain invisible characters' });

export const modelSchema = Joi.string()
  .max(512)
  .custom(checkModel)
  .meta({ rule: 'No space at either end, and no invisible characters.' });

/** Documentation shows these paths at the end of the URL, but this service appends them itself. */
const CALL_PATH = /(?:\/(?:chat\/completions|completions|messages|embeddings|responses|models))+$/i;
const TWO_VERSIONS = /(\/v\d+)\1$/i;
const KIND_AT: Readonly<Record<string, ProviderKind>> = {
  'api.openai.com': 'openai',
  'api.anthropic.com': 'anthropic',
};

/** Drops a pasted call path or second version, and adds the one that a known address lacks; undefined: no change. */
function mendedUrl(value: string): string | undefined {
  const query = API_VERSION.exec(value)?.[0] ?? '';
  const address = value.slice(0, value.length - query.length).replace(/\/+$/, '');
  const callable = address.replace(CALL_PATH, '').replace(TWO_VERSIONS, '$1');
  const { host, pathname } = new URL(callable);
  const mended = host in KIND_AT && pathname === '/' ? `${callable}/v1` : callable;
  return mended === address ? undefined : mended + query;
}

/** Paths are appended to the URL, and credentials in it would end up in logs. */
const checkBaseUrl: Joi.CustomValidator<string> = (value, helpers) => {
  const refuse = (rule: string) => helpers.message({ custom: `{{#label}} ${rule}` });
  const url = URL.parse(value);
  if (url === null || !['http:', 'https:'].includes(url.protocol) || !/^https?:\/\/[^/]/i.test(value)) {
    return refuse('must be an http or https URL');
  }
  if (url.username !== '' || url.password !== '') return refuse('must not hold credentials; use api_key');
  if (/[?#\s]/.test(value.replace(API_VERSION, '')) || INVISIBLE.test(value))
    return refuse('must not have a query (but api-version), a fragment, spaces or invisible characters');
  const mended = mendedUrl(value);
  const rule = '{{#label}} must end with the version, before the path of a call: use {{#mended}} instead';
  return mended === undefined ? value : helpers.message({ custom: rule }, { mended });
};

interface BreakerBody {
  window_ms?: number;
  min_attempts?: number;
  failure_ratio?: number;
  open_ms?: number;
  max_open_ms?: number;
}

export interface ProviderBody {
  kind: ProviderKind;
  base_url: string;
  api_key?: string | null;
  timeout_ms?: number;
  first_token_timeout_ms?: number;
  max_retries?: number;
  breaker?: BreakerBody;
  max_in_flight?: number | null;
}

/** Shorter times would only measure network noise. */
const BREAKER_MS_MIN = 100;
const breakerMs = countSchema(BREAKER_MS_MIN, ONE_HOUR_MS);

const breakerSchema = Joi.object<BreakerBody, true>({
  window_ms: breakerMs,
  min_attempts: countSchema(1, 1_000_000),
  failure_ratio: Joi.number().greater(0).max(1),
  open_ms: breakerMs,
  max_open_ms: breakerMs,
});

/** For a provider or a target. Absent or null: the service finds the most calls at once by itself. */
export const maxInFlightSchema = countSchema(1, CEILING_MAX).allow(null);

export const providerSchema = Joi.object<ProviderBody, true>({
  kind: Joi.string()
    .valid(...PROVIDER_KINDS)
    .required(),
  base_url: Joi.string()
    .max(2_048)
    .custom(checkBaseUrl)
    .meta({
      format: 'uri',
      rule: 'An http or https URL, up to the version and before the path of a call, without credentials, fragment or query but `api-version`.',
    })
    .required(),
  // The key is sent in a header, so it must be printable ASCII.
  api_key: Joi.string()
    .max(4_096)
    .pattern(/^[\x21-\x7e]+$/, 'printable ASCII without spaces')
    .allow(null),
  timeout_ms: countSchema(1, ONE_HOUR_MS),
  first_token_timeout_ms: countSchema(1, ONE_HOUR_MS),
  max_retries: countSchema(0, 10),
  breaker: breakerSchema,
  max_in_flight: maxInFlightSchema.description(
    'Calls at once, of all models together; what is above waits in the queue. Null or absent: a ceiling is found for each model.',
  ),
})
  // joi's own message for a pattern quotes the value, which is a secret here.
  .messages({ 'string.pattern.name': '{{#label}} must be {{#name}}' })
  .required();

export const providerChangesSchema: Joi.ObjectSchema<Partial<ProviderBody>> = providerSchema.fork(
  ['kind', 'base_url'],
  (schema) => schema.optional(),
);

export const providerTestSchema = Joi.object<{ model?: string }, true>({
  model: modelSchema.description('By default that of the first target of the provider.'),
});

function toBreakerSettings(body: BreakerBody = {}): BreakerSettings {
  const openMs = body.open_ms ?? DEFAULT_BREAKER.openMs;
  const maxOpenMs = body.max_open_ms ?? Math.max(openMs, DEFAULT_BREAKER.maxOpenMs);
  if (maxOpenMs < openMs) {
    const param = 'breaker.max_open_ms';
    throw new ServiceError('invalid_request', `\`${param}\` must not be less than open_ms, which is ${openMs}.`, {
      param,
    });
  }
  return {
    windowMs: body.window_ms ?? DEFAULT_BREAKER.windowMs,
    minAttempts: body.min_attempts ?? DEFAULT_BREAKER.minAttempts,
    failureRatio: body.failure_ratio ?? DEFAULT_BREAKER.failureRatio,
    openMs,
    maxOpenMs,
  };
}

export function toBreakerBody({ windowMs, minAttempts, failureRatio, openMs, maxOpenMs }: BreakerSettings) {
  return {
    window_ms: windowMs,
    min_attempts: minAttempts,
    failure_ratio: failureRatio,
    open_ms: openMs,
    max_open_ms: maxOpenMs,
  };
}

/** Over plain HTTP, the key and every conversation would cross the Internet in clear text. */
function assertSafeTransport(baseUrl: string): void {
  const { protocol, hostname } = new URL(baseUrl);
  if (protocol === 'https:' || isPrivateHost(hostname)) return;
  throw new ServiceError(
    'invalid_request',
    '`base_url` must be an https URL, because its host is not on a private network; PROVIDER_ALLOW_HTTP=true allows http.',
    { param: 'base_url' },
  );
}

export interface ProviderRules {
  /** Plain HTTP is allowed to any host. */
  allowHttp: boolean;
  /** The start of this service's own keys, which no provider takes. */
  keyPrefix: string;
}

/** Anthropic's own server takes both protocols, OpenAI's only one. */
function assertKind({ kind, base_url: baseUrl }: ProviderBody): void {
  const kindThere = KIND_AT[new URL(baseUrl).host];
  if (kind !== 'anthropic' || kindThere === undefined || kindThere === kind) return;
  throw new ServiceError('invalid_request', `\`kind\` must be ${kindThere} for ${baseUrl}.`, { param: 'kind' });
}

/** Throws `invalid_request`. */
export function toProviderSettings(body: ProviderBody, { allowHttp, keyPrefix }: ProviderRules): ProviderSettings {
  if (!allowHttp) assertSafeTransport(body.base_url);
  assertKind(body);
  if (looksLikeApiKey(body.api_key ?? '', keyPrefix))
    throw new ServiceError('invalid_request', "`api_key` must be the provider's key, not one of this service's own.", {
      param: 'api_key',
    });
  return {
    kind: body.kind,
    baseUrl: body.base_url.replace(/\/+$/, ''),
    apiKey: body.api_key,
    timeoutMs: body.timeout_ms ?? TIMEOUT_DEFAULT_MS,
    firstTokenTimeoutMs: body.first_token_timeout_ms ?? FIRST_TOKEN_TIMEOUT_DEFAULT_MS,
    maxRetries: body.max_retries ?? RETRIES_DEFAULT,
    breaker: toBreakerSettings(body.breaker),
    maxInFlight: body.max_in_flight ?? null,
  };
}

const SETTING_OF = {
  kind: 'kind',
  base_url: 'baseUrl',
  api_key: 'apiKey',
  timeout_ms: 'timeoutMs',
  first_token_timeout_ms: 'firstTokenTimeoutMs',
  max_retries: 'maxRetries',
  breaker: 'breaker',
  max_in_flight: 'maxInFlight',
} as const satisfies Record<keyof ProviderBody, keyof ProviderSettings>;

/** Only what the body names, so that simultaneous changes stay; checked with the rest. Throws `invalid_request`. */
export function toProviderChanges(
  before: ProviderRow,
  body: Partial<ProviderBody>,
  rules: ProviderRules,
): Partial<ProviderSettings> {
  const stored = toBreakerBody(before.breaker ?? DEFAULT_BREAKER);
  const whole = { kind: before.kind, base_url: before.baseUrl, ...body, breaker: { ...stored, ...body.breaker } };
  const settings = toProviderSettings(whole, rules);
  const names = Object.keys(body) as (keyof ProviderBody)[];
  return Object.fromEntries(names.map((name) => [SETTING_OF[name], settings[SETTING_OF[name]]]));
}

/** Throws `invalid_request` for a name that no provider can have. */
export function assertProviderName(name: string): void {
  if (PROVIDER_NAME.test(name)) return;
  throw new ServiceError(
    'invalid_request',
    'The name of a provider has 1 to 63 lower-case letters, digits, - and _, the first a letter or digit.',
    { param: 'name' },
  );
}

/** Throws `not_found`; text that cannot be a name never reaches the database. */
export async function findProvider(providers: ProviderRepository, name: string): Promise<ProviderRow> {
  return found(PROVIDER_NAME.test(name) ? await providers.find(name) : undefined, 'provider');
}
