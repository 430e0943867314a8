import { isErrorCode } from '../../../shared/errors/codes.ts';

const REDACTED = '[redacted]';

/** Ids of docs/spec/contract.md section 2, as in `req_…`. */
const ID = /^[a-z]{2,8}_[0-9A-Za-z]{24}$/;

/** BullMQ's own sentences about jobs that it took back; they hold no words of a tenant. */
const BULLMQ_REASON = /^job stalled more than \w+ limit$|^Missing lock for job \S+$/;

/** What the board may show of a job's data or result: the ids in it. Everything else is replaced. */
export function keepIds(value: unknown): unknown {
  if (typeof value === 'string') return ID.test(value) ? value : REDACTED;
  if (value === null || value === undefined) return value;
  if (typeof value !== 'object' || Array.isArray(value)) return REDACTED;
  const ids = Object.entries(value).filter(([, field]) => typeof field === 'string' && ID.test(field));
  return Object.fromEntries(ids);
}

/** A job's name is one word of ours. */
export function keepName(name: unknown): string {
  return typeof name === 'string' && /^[a-z][a-z-]{0,31}$/.test(name) ? name : REDACTED;
}

/** Messages of errors can quote what was being read, so only words of a closed list are shown. */
export function keepReason(reason: string): string {
  return isErrorCode(reason) || BULLMQ_REASON.test(reason) ? reason : `${REDACTED} (the log has it, by the job's id)`;
}
