import { isIP } from 'node:net';

import Joi from 'joi';

const PORT_MESSAGES = Object.fromEntries(
  ['number.integer', 'number.min', 'number.max'].map((rule) => [rule, '{{#label}} must be a port, 0 to 65535']),
);

export const port = Joi.number().integer().min(0).max(65_535).messages(PORT_MESSAGES);
export const integer = (min: number, max: number) => Joi.number().integer().min(min).max(max);
export const oneOf = <Value extends string>(...values: Value[]) => Joi.string<Value>().valid(...values);
export const neededWith = (setting: string) =>
  Joi.required().messages({ 'any.required': `{{#label}} is required with ${setting}` });

export const keyPrefix = Joi.string()
  .pattern(/^[a-z][a-z0-9]{1,15}$/)
  .message('{{#label}} must have 2 to 16 lower-case letters and digits, the first of them a letter');

export const headerValue = Joi.string()
  .pattern(/^[\x21-\x7e]+$/)
  .message('{{#label}} must be visible ASCII characters without spaces');

const ROOTS = ['always_on', 'always_off', 'traceidratio'];

/** OpenTelemetry's samplers that need no other service. */
export const sampler = oneOf(...ROOTS, ...ROOTS.map((root) => `parentbased_${root}`));

const OF_SENTINEL = '{{#label}} is of sentinels only: REDIS_URL must be redis+sentinel:// or rediss+sentinel://';
const OF_TLS = '{{#label}} is of TLS only: REDIS_URL must begin with rediss';

const REDIS_SCHEMES = ['redis:', 'rediss:', 'redis+cluster:', 'redis+sentinel:', 'rediss+cluster:', 'rediss+sentinel:'];

/** `parseRedisUrl` takes the value apart in the same way. */
function redisAddressesOf(value: string): string[] {
  const hosts = /^rediss?\+\w+:\/\/(?:[^@]*@)?([^/]*)/.exec(value)?.[1];
  return hosts === undefined ? [value] : hosts.split(',').map((host) => `redis://${host === '' ? ':' : host}`);
}

export const redisUrl = Joi.string().custom((value: string, helpers) => {
  if (!REDIS_SCHEMES.some((scheme) => value.startsWith(`${scheme}//`)) || value.split('//')[1] === '')
    return helpers.error('redis.url');
  if (/^rediss?\+sentinel:\/\/[^/]*\/?$/.test(value)) return helpers.error('redis.master');
  if (!redisAddressesOf(value).every((address) => URL.canParse(address))) return helpers.error('redis.address');
  // The client would silently take database 0 for it.
  const isDatabase = !/^rediss?:/.test(value) || /^\/?\d*$/.test(new URL(value).pathname);
  return isDatabase ? value : helpers.error('redis.database');
});

export const mongoUri = Joi.string().custom((value: string, helpers) =>
  /^mongodb(?:\+srv)?:\/\/[^/?]/.test(value) ? value : helpers.error('mongo.url'),
);

/** A setting that only `redis+sentinel://` has. */
export function withSentinel<Value>(schema: Joi.AnySchema<Value>): Joi.AnySchema<Value> {
  const isSentinel = Joi.string()
    .pattern(/^rediss?\+sentinel:/)
    .required();
  return schema.when('REDIS_URL', {
    is: isSentinel,
    otherwise: Joi.forbidden().messages({ 'any.unknown': OF_SENTINEL }),
  });
}

export function withRedisTls<Value>(schema: Joi.AnySchema<Value>): Joi.AnySchema<Value> {
  const isEncrypted = Joi.string()
    .pattern(/^rediss[:+]/)
    .required();
  return schema.when('REDIS_URL', { is: isEncrypted, otherwise: Joi.forbidden().messages({ 'any.unknown': OF_TLS }) });
}

/** Paths are appended to it, and a credential in it would end up in logs. */
export const baseUrl = Joi.string().custom((value: string, helpers) => {
  const url = URL.parse(value);
  const isPlain = url !== null && url.username === '' && url.password === '' && !/[?#\s]/.test(value);
  return isPlain && ['http:', 'https:'].includes(url.protocol) ? value : helpers.error('base.url');
});

export const partsOf = (list: string) =>
  list
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

export function listOf(isValid: (part: string) => boolean, fault: string) {
  return Joi.string<string[]>()
    .allow('')
    .custom((value: string, helpers) => {
      const parts = partsOf(value);
      return parts.every(isValid) ? parts : helpers.error(fault);
    });
}

/** Accepts what Express takes for `trust proxy`: an address, a block of them, or one of its names for private ones. */
export function isProxy(value: string): boolean {
  const [address = '', bits, ...rest] = value.split('/');
  const family = isIP(address);
  if (family === 0) return ['loopback', 'linklocal', 'uniquelocal'].includes(value);
  if (rest.length > 0) return false;
  // With a block of all addresses every caller could choose its own.
  return bits === undefined || (/^\d+$/.test(bits) && Number(bits) > 0 && Number(bits) <= (family === 4 ? 32 : 128));
}

export function isOrigin(value: string): boolean {
  return /^https?:/.test(value) && URL.parse(value)?.origin === value;
}

export const RULE_MESSAGES = {
  'redis.url':
    '{{#label}} must be redis://, redis+cluster://h1:p1,h2:p2 or redis+sentinel://h1:p1,h2:p2/name, or one of them with rediss for TLS',
  'redis.address':
    '{{#label}} must name each server as HOST:PORT, and write @, :, /, # and ? of a password percent-encoded',
  'redis.database': '{{#label}} must end in the number of a database, as in redis://HOST:PORT/3, or in none',
  'redis.master': '{{#label}} must end in the name of the master, as in redis+sentinel://h1:26379,h2:26379/mymaster',
  'proxy.address':
    '{{#label}} must be a list of addresses or blocks (10.0.0.0/8), loopback, linklocal or uniquelocal, separated by commas, and not everybody (/0)',
  'origin.form': '{{#label}} must be a list of origins such as https://app.example.com, separated by commas',
  'base.url': '{{#label}} must be an http or https URL without credentials, query and fragment',
  'mongo.url':
    '{{#label}} must be mongodb://HOST:PORT/DATABASE?replicaSet=NAME, with several HOST:PORT separated by commas, or mongodb+srv://HOST/DATABASE',
  'string.pattern.base': '{{#label}} does not have the expected form',
  'boolean.base': '{{#label}} must be true or false',
  'string.max': '{{#label}} must have at most {{#limit}} characters',
  'object.and': '{{#presentWithLabels.0}} needs {{#missingWithLabels.0}} beside it; set both or neither',
};
