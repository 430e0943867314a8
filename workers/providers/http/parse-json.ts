import { isRecord } from '../../../shared/contracts/parse.ts';
import { ProviderError } from '../provider.ts';

/** The parser's error message quotes the text, so it is not kept as a cause. */
export function notJson(): ProviderError {
  return new ProviderError('transient', 'The provider sent text that is not JSON');
}

/** Throws a transient ProviderError for anything but a JSON object. */
export function parseObject(json: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw notJson();
  }
  if (!isRecord(value)) throw new ProviderError('transient', 'The provider sent JSON that is no object');
  return value;
}

/** The model name a provider reports, if it is plausible: operators see it. */
export function modelName(value: unknown): string | undefined {
  return typeof value === 'string' && /^[\x21-\x7e]{1,256}$/.test(value) ? value : undefined;
}

/** More than any context window holds; a larger count is an error that nobody should be charged for. */
const TOKENS_MAX = 1_000_000_000;

/** A missing or implausible number is none; whether a zero can be true depends on the text (answer-usage.ts). */
export function tokenCount(value: unknown): number | undefined {
  const isCount = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= TOKENS_MAX;
  return isCount ? value : undefined;
}
