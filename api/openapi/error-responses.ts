import { ERRORS } from '../../shared/errors/codes.ts';
import type { ErrorCode } from '../../shared/errors/codes.ts';
import { ERROR_MEANINGS } from './errors.ts';
import { headersOf, KEY_HEADERS, UNIFORM_HEADERS } from './headers.ts';
import { ref } from './schema.ts';

/** The errors that share a status; endpoints with the same ones share their description. */
export interface ErrorGroup {
  status: number;
  codes: readonly ErrorCode[];
}

export function groupByStatus(codes: readonly ErrorCode[]): ErrorGroup[] {
  return [...Map.groupBy(codes, (code) => ERRORS[code].status)].map(([status, group]) => ({ status, codes: group }));
}

/** Its name among the components. */
export function nameOfGroup({ status, codes }: ErrorGroup): string {
  return [status, ...codes].join('.');
}

/** All errors of a status: which ones, in words and in `x-error-codes`. */
export function describeErrorGroup({ status, codes }: ErrorGroup, ownExamples: object = {}) {
  // Who has no valid key is told of the limit of the address alone.
  const headers = status === 401 ? Object.keys(UNIFORM_HEADERS) : KEY_HEADERS;
  const waits = status === 429 || status === 503 || status === 402 ? ['Retry-After'] : [];
  const examples = codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_MEANINGS[code]}`).join('\n\n'),
    headers: headersOf([...headers, ...waits]),
    content: {
      'application/json': {
        schema: ref('Error'),
        examples: { ...ownExamples, ...(Object.fromEntries(examples) as object) },
      },
    },
    'x-error-codes': codes,
  };
}
