import type { ErrorCode } from '../../shared/errors/codes.ts';
import type { Logger } from '../../shared/logging/logger.ts';
import type { IngressMetrics } from '../../shared/metrics/ingress-series.ts';
import type { Closer } from '../../shared/lifecycle/closer.ts';

/** The error codes for callers that are unknown, or that ask for more than they may. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'missing_api_key',
  'invalid_api_key',
  'expired_api_key',
  'endpoint_not_allowed',
  'account_suspended',
]);

type Plane = 'public' | 'admin';

/** Informs operators of failed authentications, refused scopes and bursts of 404 without a log line for each. */
export type RefusalWatch = ReturnType<typeof createRefusalWatch>;

interface Refused {
  plane: Plane;
  address: string;
  count: number;
  errors: Record<string, number>;
}

/** A flood from many addresses must fill neither the memory nor the log: further addresses share one line. */
const ADDRESSES_MAX = 100;
const OTHERS = 'others';
/** Anybody may ask for what is gone; a caller that does so this often within a minute is searching. */
const NOT_FOUND_MIN = 30;

export interface RefusalWatchDeps {
  count: (plane: Plane, code: ErrorCode) => void;
  countNotFound: (plane: Plane) => void;
  log: Logger;
}

function addTo(all: Map<string, Refused>, plane: Plane, code: ErrorCode, from: string): void {
  const isKnown = all.has(`${plane} ${from}`) || all.size < ADDRESSES_MAX;
  const address = isKnown ? from : OTHERS;
  const name = `${plane} ${address}`;
  const entry = all.get(name) ?? { plane, address, count: 0, errors: {} };
  entry.count += 1;
  entry.errors[code] = (entry.errors[code] ?? 0) + 1;
  all.set(name, entry);
}

export function createRefusalWatch({ count, countNotFound, log }: RefusalWatchDeps) {
  let refused = new Map<string, Refused>();
  // Separate, so that ordinary 404s take no place from refused addresses.
  let lost = new Map<string, Refused>();

  return {
    /** `address` is the caller's. Other codes are ignored. */
    note(plane: Plane, code: ErrorCode, from: string): void {
      if (code === 'not_found') {
        countNotFound(plane);
        addTo(lost, plane, code, from);
      } else if (REFUSALS.has(code)) {
        count(plane, code);
        addTo(refused, plane, code, from);
      }
    },

    /** Logs a line for each address that, since the last flush, was refused or looked for much that does not exist. */
    flush(): void {
      const write = ({ plane, ...fields }: Refused, what: string) => {
        const where = plane === 'admin' ? 'the administration' : 'the API';
        log.warn(`Calls of an address to ${where} ${what} within the last minute.`, fields);
      };
      for (const entry of refused.values()) write(entry, 'were refused');
      for (const entry of lost.values()) if (entry.count >= NOT_FOUND_MIN) write(entry, 'found nothing');
      refused = new Map();
      lost = new Map();
    },
  };
}

const REFUSALS_TOLD_MS = 60_000;

/** Counts refused callers at once, and logs them once a minute. */
export function openRefusalWatch(
  { refusals, notFound }: IngressMetrics,
  { closer, log }: { closer: Closer; log: Logger },
) {
  const watch = createRefusalWatch({
    log,
    count: (plane, code) => {
      refusals.inc({ plane, code });
    },
    countNotFound: (plane) => {
      notFound.inc({ plane });
    },
  });
  const timer = setInterval(watch.flush, REFUSALS_TOLD_MS);
  closer.defer('refusals', () => {
    clearInterval(timer);
    watch.flush();
  });
  return watch;
}
