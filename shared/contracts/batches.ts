/** `failed`: its lines never arrived completely. Others: docs/spec.md#batches. */
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

/** Each keeps a batch from sending its next line. */
export type BatchWait =
  'tpm' | 'credits' | 'budget' | 'daily_requests' | 'test_tokens' | 'account' | 'queue' | 'provider';

/** docs/spec.md#batches. */
export const BATCH_LIMITS = {
  linesMax: 10_000,
  bytesMax: 50 * 1024 * 1024,
  customIdMax: 256,
  /** Bounds what is stored for one tenant. */
  openMax: 100,
  /** For one tenant until its batches are removed; ended batches count too. */
  storedLinesMax: 500_000,
  storedBytesMax: 5 * 1024 * 1024 * 1024,
  /** Uploads of one tenant: begun in a minute, under way on an ingress, and (next field) those of all tenants there. */
  perMinute: 10,
  atOnce: 4,
  atOnceOfAll: 32,
  /** The uploads of one tenant write at most this; each line counts more than its bytes. */
  writtenBytesPerMinute: 200 * 1024 * 1024,
  lineBytes: 4_096,
  /** Lines that have not run by then are not run at all. */
  lifeMs: 24 * 3_600_000,
  /** From the batch's creation: 30 days after the latest moment at which it can end. */
  keptMs: 31 * 24 * 3_600_000,
  /** For a line that its provider fails while other lines succeed; docs/spec.md#batch-lines. */
  triesMax: 5,
  /** Share of the key's tokens per minute, so that its other requests are not locked out. */
  tpmShare: 0.8,
} as const;

const OPEN: ReadonlySet<BatchStatus> = new Set(['validating', 'in_progress', 'cancelling']);

/** No line of such a batch is running or will run again. */
export function isEndedBatch(status: BatchStatus): boolean {
  return !OPEN.has(status);
}
