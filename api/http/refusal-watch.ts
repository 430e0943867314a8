import type { ErrorCode } from '../../shared/errors/codes.ts';
import type { Logger } from '../../shared/infra/logging/logger.ts';

/** What a caller is refused for who is not known, or who asks for more than it may. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'missing_api_key',
  'invalid_api_key',
  'expired_api_key',
  'endpoint_not_allowed',
  'account_suspended',
]);

/** The public API, or the administration. */
type Plane = 'public' | 'admin';

/** Tells operators of failed authentications and refused scopes without writing a line for each. */
export interface RefusalWatch {
  /** `address`: the caller's. Codes that are no refusal of a caller are ignored. */
  note(plane: Plane, code: ErrorCode, address: string): void;
  /** Writes a line for each address that was refused since the last time. */
  flush(): void;
}

interface Refused {
  plane: Plane;
  address: string;
  count: number;
  errors: Record<string, number>;
}

/** A flood from many addresses fills neither the memory nor the log: the rest share one line. */
const ADDRESSES_MAX = 100;
const OTHERS = 'others';

export interface RefusalWatchDeps {
  count: (plane: Plane, code: ErrorCode) => void;
  log: Pick<Logger, 'warn'>;
}

export function createRefusalWatch({ count, log }: RefusalWatchDeps): RefusalWatch {
  let refused = new Map<string, Refused>();

  return {
    note(plane, code, from) {
      if (!REFUSALS.has(code)) return;
      count(plane, code);
      const isKnown = refused.has(`${plane} ${from}`) || refused.size < ADDRESSES_MAX;
      const address = isKnown ? from : OTHERS;
      const name = `${plane} ${address}`;
      const entry = refused.get(name) ?? { plane, address, count: 0, errors: {} };
      entry.count += 1;
      entry.errors[code] = (entry.errors[code] ?? 0) + 1;
      refused.set(name, entry);
    },

    flush() {
      const lines = refused.values();
      refused = new Map();
      for (const { plane, ...fields } of lines) {
        const where = plane === 'admin' ? 'the administration' : 'the API';
        log.warn(`Calls of an address to ${where} were refused within the last minute.`, fields);
      }
    },
  };
}
