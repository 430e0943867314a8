import type { ClientRequest, Evidence, LedgerLine, ProviderCount, Reading, RequestState } from './evidence.ts';

/** Everything that is known of one request id. */
export interface JoinedRequest {
  requestId: string;
  /** Several where callers shared an Idempotency-Key; none where the client left before it was told the id. */
  clients: readonly ClientRequest[];
  provider: ProviderCount | undefined;
  ledger: readonly LedgerLine[];
  record: RequestState | undefined;
}

/** By the latest event that names it; without one, by the first head: a resumption's call has an id of its own. */
export function requestIdOf({ readings }: ClientRequest): string {
  const named = readings.findLast(({ hasOwnId }) => hasOwnId) ?? readings.find(({ requestId }) => requestId !== '');
  return named?.requestId ?? '';
}

/** The service took it on: the head was 200, or an event came. */
export function isAccepted({ readings }: ClientRequest): boolean {
  return readings.some(({ status }) => status === 200);
}

/** The service said no, and nothing contradicts it later. */
export function isRefused({ readings }: ClientRequest): boolean {
  return readings.some(({ status }) => status >= 400) && readings.every(({ status }) => status !== 200);
}

/** The client itself ended its last connection. */
export function hasLeft({ readings }: ClientRequest): boolean {
  return readings.at(-1)?.end === 'left';
}

export function isTerminal({ finishReason, errorCode }: Reading): boolean {
  return finishReason !== undefined || errorCode !== undefined;
}

/** Ended by an event of the stream or by an error status. */
export function hasFailed({ readings }: ClientRequest): boolean {
  return readings.some(({ errorCode }) => errorCode !== undefined);
}

/** The text that the client has, over all its connections. */
export function textOf({ readings }: ClientRequest): string {
  return readings.map(({ text }) => text).join('');
}

/** A reading that began behind the start, and nothing before it. */
export function startsLate({ readings }: ClientRequest): boolean {
  const first = readings.find(({ events }) => events.length > 0)?.events[0];
  return first !== undefined && first.seq !== 1;
}

function groupBy<T>(items: readonly T[], idOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const id = idOf(item);
    const group = groups.get(id);
    if (group === undefined) groups.set(id, [item]);
    else group.push(item);
  }
  groups.delete('');
  return groups;
}

export function joinById({ requests, provider, ledger, records }: Evidence): JoinedRequest[] {
  const clients = groupBy(requests, requestIdOf);
  const usage = groupBy(
    ledger.filter(({ type }) => type === 'usage'),
    ({ requestId }) => requestId ?? '',
  );
  const states = new Map(records?.map((record) => [record.requestId, record] as const));
  const ids = new Set([...clients.keys(), ...usage.keys(), ...states.keys(), ...provider.keys()]);
  return [...ids].map((requestId) => ({
    requestId,
    clients: clients.get(requestId) ?? [],
    provider: provider.get(requestId),
    ledger: usage.get(requestId) ?? [],
    record: states.get(requestId),
  }));
}
