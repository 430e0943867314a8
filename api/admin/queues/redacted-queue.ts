import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';

import { TIERS } from '../../../shared/contracts/chat-request.ts';
import { FINISH_REASONS } from '../../../shared/contracts/events.ts';
import { CHAT_ROUTES } from '../../../shared/contracts/jobs.ts';
import type { JobFacts } from '../../../shared/contracts/jobs.ts';
import { isErrorCode } from '../../../shared/errors/codes.ts';
import type { HistoryKey, QueueHistory } from '../../../shared/redis/stores/queue-history.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { readMinutes } from './board-history.ts';
import { shardOfQueue } from './queues-endpoints.ts';
import type { BullQueue } from './queues-endpoints.ts';

const REDACTED = '[redacted]';

/** An id as in docs/spec.md#conventions: `req_…`. */
const ID = /^[a-z]{2,8}_[0-9A-Za-z]{24}$/;

/** BullMQ's own messages about jobs that it took back. They contain nothing that a tenant wrote. */
const BULLMQ_REASON = /^job stalled more than \w+ limit$|^Missing lock for job \S+$/;

type IsFact = (value: unknown) => boolean;
const isCount: IsFact = (value) => Number.isFinite(value);
/** The names of providers and models, which operators choose. */
const isName: IsFact = (value) => typeof value === 'string' && /^[\w.:/@?=&+-]{0,128}$/.test(value);
const isOneOf =
  (words: readonly string[]): IsFact =>
  (value) =>
    typeof value === 'string' && words.includes(value);

/** The facts that a kept job holds about its request, and how to recognize each one. Ids are always shown. */
const FACTS: Readonly<Record<Exclude<keyof JobFacts, 'tenantId'>, IsFact>> = {
  tier: isOneOf(TIERS),
  endpoint: isOneOf(CHAT_ROUTES),
  finishReason: isOneOf(FINISH_REASONS),
  provider: isName,
  model: isName,
  waitedMs: isCount,
  tookMs: isCount,
  promptTokens: isCount,
  completionTokens: isCount,
  errorCode: (value) => typeof value === 'string' && isErrorCode(value),
};
const isFact = new Map<string, IsFact>(Object.entries(FACTS));

/** The part of a job's data or result that the board may show: ids and facts. Everything else is removed or replaced. */
export function keepFacts(value: unknown): unknown {
  if (typeof value === 'string') return ID.test(value) ? value : REDACTED;
  if (value === null || value === undefined) return value;
  if (typeof value !== 'object' || Array.isArray(value)) return REDACTED;
  const kept = Object.entries(value).filter(
    ([name, field]) => (typeof field === 'string' && ID.test(field)) || isFact.get(name)?.(field) === true,
  );
  return Object.fromEntries(kept);
}

/** The service names its jobs with a single word; anything else is replaced. */
export function keepName(name: unknown): string {
  return typeof name === 'string' && /^[a-z][a-z-]{0,31}$/.test(name) ? name : REDACTED;
}

/** The words that `failureOf` writes behind the code: our own, and the names of providers and models. */
const FAILURE = /^[a-z_]+$|^[\w.:/@?=&+-]{0,128} [\w.:/@?=&+-]{0,128} [a-z0-9_]+, attempt \d+$/;

/** Error messages can quote what was being read, so only what is made of known words is shown. */
export function keepReason(reason: string): string {
  const [code = '', failure] = reason.split(/: (.*)/s);
  const isFailure = isErrorCode(code) && (failure === undefined || FAILURE.test(failure));
  return isFailure || BULLMQ_REASON.test(reason) ? reason : `${REDACTED} (the log has it, by the job's id)`;
}

interface ReadJob {
  failedReason?: string;
  deferredFailure?: string;
  stacktrace: string[] | null;
}

/** The board formats data and results but not failure reasons, so those are redacted on the job itself. */
function hideReasons(job: ReadJob): void {
  if (typeof job.failedReason === 'string') job.failedReason = keepReason(job.failedReason);
  if (typeof job.deferredFailure === 'string') job.deferredFailure = keepReason(job.deferredFailure);
  job.stacktrace = [];
}

export interface QueueWatch {
  history: QueueHistory;
  clock: Clock;
}

const CHAT_QUEUE =
  'Waiting requests are under PRIORITIZED, also while the queue is paused. COMPLETED is a sample: one a second from each worker at most. FAILED has all of a day, up to 1,000.';

/** A queue as the board may show it: counts, times, states and ids, but nothing that a tenant wrote. */
export class RedactedQueue extends BullMQAdapter {
  readonly place: HistoryKey;
  readonly #watch: QueueWatch;

  constructor(queue: BullQueue, watch: QueueWatch, rights: { readOnlyMode: boolean; allowRetries: boolean }) {
    // Queues of different shards have the same name; the prefix distinguishes them.
    const shard = shardOfQueue(queue);
    const ofChat = { prefix: `shard-${shard}.`, delimiter: '.', description: CHAT_QUEUE };
    super(queue, { ...rights, ...(shard === undefined ? {} : ofChat) });
    this.place = { prefix: queue.opts.prefix ?? '', queue: queue.name };
    this.#watch = watch;
    this.setFormatter('data', keepFacts);
    this.setFormatter('returnValue', keepFacts);
    this.setFormatter('progress', keepFacts);
    this.setFormatter('name', (job: { name?: unknown }) => keepName(job.name));
  }

  override async getJob(id: string) {
    const job = await super.getJob(id);
    if (job !== undefined) hideReasons(job);
    return job;
  }

  override async getJobs(...query: Parameters<BullMQAdapter['getJobs']>) {
    const jobs = await super.getJobs(...query);
    for (const job of jobs) hideReasons(job);
    return jobs;
  }

  /** Uses the service's own counts instead of BullMQ's (workers/observers/queue-recorder.ts). */
  override getMetrics(type: 'completed' | 'failed') {
    const { history, clock } = this.#watch;
    return readMinutes(history, this.place, type, clock.now());
  }

  override getJobLogs(): Promise<string[]> {
    return Promise.resolve([]);
  }

  /** Providers have limits, queues have none: the board offers no button for them. */
  override get supportsGlobalRateLimit(): boolean {
    return false;
  }
}
