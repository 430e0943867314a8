import type { Principal } from '../../shared/domain/principal.ts';
import type { WindowFigures } from '../../shared/requests/admission-store.ts';

/**
 * The limits of keys and the ceilings of their tenants, as plain lists of requests (docs/spec.md#rate-limits,
 * docs/spec.md#tenant-ceilings). It knows what to expect of each call; whoever drives it tells it what was admitted.
 */
const MINUTE_MS = 60_000;
const DAY_MINUTES = 1_440;
const BATCH_SHARE = 0.8;

/** How much came in each second, or minute. */
type Counts = Map<number, number>;

export interface ModelTenant {
  requests: Counts;
  tokens: Counts;
  open: Set<string>;
  isPoor: boolean;
  isSuspended: boolean;
}

export interface ModelKey {
  principal: Principal;
  tenant: ModelTenant;
  log: number[];
  /** By the endpoint that has a limit of its own. */
  logs: Map<string, number[]>;
  days: Counts;
  tokens: Counts;
}

export interface ModelRequest {
  endpoint: 'chat' | 'chat.stream';
  isBatch: boolean;
  estimate: number;
  /** Its Idempotency-Key has a request already. */
  isJoined: boolean;
}

export const newTenant = (isPoor: boolean): ModelTenant => ({
  requests: new Map(),
  tokens: new Map(),
  open: new Set(),
  isPoor,
  isSuspended: false,
});

export const newKey = (principal: Principal, tenant: ModelTenant): ModelKey => ({
  principal,
  tenant,
  log: [],
  logs: new Map(),
  days: new Map(),
  tokens: new Map(),
});

const secondOf = (time: number) => Math.floor(time / 1_000);
const minuteOf = (time: number) => Math.floor(time / MINUTE_MS);
const sumOf = (list: readonly [number, number][]) => list.reduce((sum, [, count]) => sum + count, 0);

function add(counts: Counts, at: number, more: number): void {
  counts.set(at, Math.max(0, (counts.get(at) ?? 0) + more));
}

/** What has not left: a second or minute leaves whole. */
function leftOf(counts: Counts, first: number): [number, number][] {
  return [...counts].filter(([at, count]) => at >= first && count > 0).sort(([a], [b]) => a - b);
}
const inMinute = (counts: Counts, now: number) => leftOf(counts, secondOf(now) - 60);
const inDay = (counts: Counts, now: number) => leftOf(counts, minuteOf(now) - DAY_MINUTES);

/** When no more than `most` are left: the last of those that have to leave. */
function lastToLeave(list: readonly [number, number][], most: number): number | undefined {
  let left = sumOf(list);
  return list.find(([, count]) => (left -= count) <= most)?.[0];
}

function waitForTokens(counts: Counts, most: number, now: number): number {
  const second = lastToLeave(inMinute(counts, now), Math.max(0, most));
  return second === undefined ? 61_000 : (second + 61) * 1_000 - now;
}

/** Request counts are exact to the millisecond. */
const inLog = (log: readonly number[], now: number) =>
  log.filter((time) => time > now - MINUTE_MS).sort((a, b) => a - b);

/** 0: there is a place. */
function waitForPlace(log: readonly number[], limit: number, now: number): number {
  const list = inLog(log, now);
  const oldest = list[list.length - limit];
  return oldest === undefined ? 0 : oldest + MINUTE_MS - now;
}

export function logOf(key: ModelKey, endpoint: string): number[] {
  const log = key.logs.get(endpoint) ?? [];
  key.logs.set(endpoint, log);
  return log;
}

/** The log of the endpoint's throttle; undefined: it is no tighter than the key's rpm, or does not concern the request. */
function throttleOf(key: ModelKey, { endpoint, isBatch }: ModelRequest): { log: number[]; limit: number } | undefined {
  const { limits } = key.principal;
  const limit = endpoint === 'chat' ? limits.chatRpm : limits.streamRpm;
  return isBatch || limit >= limits.rpm ? undefined : { log: logOf(key, endpoint), limit };
}

/** Which limits refuse a request, and how long each makes it wait. `endsInMs` is an estimate of the next end. */
export function waitsOf(key: ModelKey, asked: ModelRequest, endsInMs: number, now: number): Map<string, number> {
  const { tenant, principal } = key;
  const { limits, ceilings } = principal;
  const waits = new Map<string, number>();
  const wait = (name: string, ms: number | undefined) => {
    if (ms !== undefined && ms > 0) waits.set(name, ms);
  };
  const share = (limit: number) => (asked.isBatch ? Math.max(1, Math.floor(limit * BATCH_SHARE)) : limit);
  const tokens = (name: string, counts: Counts, limit: number | null) => {
    const taken = sumOf(inMinute(counts, now));
    if (limit === null || taken === 0 || taken + asked.estimate <= share(limit)) return;
    wait(name, waitForTokens(counts, share(limit) - asked.estimate, now));
  };
  if (!asked.isBatch) {
    wait('rpm', waitForPlace(key.log, limits.rpm, now));
    if (ceilings.rpm !== null && sumOf(inMinute(tenant.requests, now)) >= ceilings.rpm)
      wait('tenant_rpm', waitForTokens(tenant.requests, ceilings.rpm - 1, now));
  }
  // These come before all other limits, and take a place of the requests.
  if (tenant.isSuspended || asked.isJoined) return waits;
  const throttle = throttleOf(key, asked);
  if (throttle !== undefined) wait('throttle', waitForPlace(throttle.log, throttle.limit, now));
  if (limits.dailyRequests > 0 && sumOf(inDay(key.days, now)) >= limits.dailyRequests) {
    const minute = lastToLeave(inDay(key.days, now), limits.dailyRequests - 1) ?? minuteOf(now);
    wait('daily', (minute + 1 + DAY_MINUTES) * MINUTE_MS - now);
  }
  tokens('tpm', key.tokens, limits.tpm);
  tokens('tenant_tpm', tenant.tokens, ceilings.tpm);
  if (!asked.isBatch && ceilings.inFlight !== null && tenant.open.size >= ceilings.inFlight)
    wait('max_in_flight', endsInMs);
  return waits;
}

/** What becomes of a request that no limit refuses. */
export function passedAs({ tenant }: ModelKey, { isJoined }: ModelRequest): string {
  if (tenant.isSuspended) return 'suspended';
  if (isJoined) return 'joined';
  return tenant.isPoor ? 'credits' : 'admitted';
}

/** Refused for another reason than its limits, or joined. */
export function recordCounted(key: ModelKey, now: number): void {
  key.log.push(now);
  add(key.tenant.requests, secondOf(now), 1);
}

export function recordAdmitted(key: ModelKey, asked: ModelRequest, requestId: string, now: number): void {
  if (!asked.isBatch) {
    recordCounted(key, now);
    key.tenant.open.add(requestId);
  }
  throttleOf(key, asked)?.log.push(now);
  if (key.principal.limits.dailyRequests > 0) add(key.days, minuteOf(now), 1);
  for (const counts of [key.tokens, key.tenant.tokens]) add(counts, secondOf(now), asked.estimate);
}

/** An end, with what its tokens differ from the estimate. What a request took beyond it after its minute counts as of now. */
export function recordEnded(key: ModelKey, requestId: string, acceptedAt: number, more: number, now: number): void {
  key.tenant.open.delete(requestId);
  for (const counts of [key.tokens, key.tenant.tokens]) {
    if (secondOf(acceptedAt) >= secondOf(now) - 60) add(counts, secondOf(acceptedAt), more);
    else if (more > 0) add(counts, secondOf(now), more);
  }
}

/** What the headers say. */
export function figuresOf(key: ModelKey, now: number): WindowFigures {
  const requests = inLog(key.log, now);
  const tokens = inMinute(key.tokens, now);
  const [newest, last] = [requests.at(-1), tokens.at(-1)];
  return {
    requests: requests.length,
    requestsResetMs: newest === undefined ? 0 : newest + MINUTE_MS - now,
    tokens: sumOf(tokens),
    tokensResetMs: last === undefined ? 0 : (last[0] + 61) * 1_000 - now,
  };
}

/** The waits of a call that is no chat request: for the key's requests, and for those of its endpoint. */
export function countWaitsOf(key: ModelKey, own: { name: string; limit: number } | undefined, now: number) {
  return {
    rpm: waitForPlace(key.log, key.principal.limits.rpm, now),
    throttle: own === undefined ? 0 : waitForPlace(logOf(key, own.name), own.limit, now),
  };
}

/** The most requests of any true minute. */
export function worstMinute(times: readonly number[]): number {
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + MINUTE_MS).length));
}

/** Times at which something leaves a window. */
export function edgesOf(key: ModelKey, now: number): number[] {
  return [
    ...inLog(key.log, now).map((time) => time + MINUTE_MS),
    ...inMinute(key.tokens, now).map(([second]) => (second + 61) * 1_000),
  ];
}
