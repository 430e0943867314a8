/** `failed`: its lines never arrived whole. The other words are those of docs/spec/contract.md section 3. */
export const BATCH_STATUSES = [
  'validating',
  'in_progress',
  'completed',
  'failed',
  'expired',
  'cancelling',
  'cancelled',
] as const;
export type BatchStatus = (typeof BATCH_STATUSES)[number];

/** What keeps a batch from sending its next line. */
export type BatchWait =
  'tpm' | 'credits' | 'budget' | 'daily_requests' | 'test_tokens' | 'account' | 'queue' | 'provider';

/** docs/spec/contract.md section 3. */
export const BATCH_LIMITS = {
  linesMax: 10_000,
  bytesMax: 50 * 1024 * 1024,
  customIdMax: 256,
  /** Of one tenant that have not ended: a bound on what is stored for it. */
  openMax: 100,
  /** Of one tenant, in batches that have ended, too: what is stored of it until its batches are removed. */
  storedLinesMax: 500_000,
  storedBytesMax: 5 * 1024 * 1024 * 1024,
  /** Of one key. */
  perMinute: 10,
  /** What has not run by then is not run any more. */
  lifeMs: 24 * 3_600_000,
  /** From the batch's making: 30 days after the latest moment at which it can end. */
  keptMs: 31 * 24 * 3_600_000,
  /** Of a line that fails by its provider while other lines succeed; docs/spec/contract.md section 8, Batches. */
  triesMax: 5,
  /** Of the key's tokens a minute, so that its other requests are not locked out. */
  tpmShare: 0.8,
} as const;

const OPEN: ReadonlySet<BatchStatus> = new Set(['validating', 'in_progress', 'cancelling']);

/** A batch of which nothing runs any more, nor will. */
export function isEndedBatch(status: BatchStatus): boolean {
  return !OPEN.has(status);
}
