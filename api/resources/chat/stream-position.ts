import { setTimeout as pause } from 'node:timers/promises';

import Joi from 'joi';

import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { RequestRecord } from '../../../shared/infra/redis/requests/record-store.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';

const POSITION = /^\d{1,15}$/;
const POSITION_RULE = '{{#label}} must be the number of an event: a whole number from 0';
/** The number of an event as text; 0 stands for the position before the first. */
export const positionSchema = Joi.string()
  .pattern(POSITION)
  .meta({ reads: { type: 'integer', minimum: 0, maximum: 999_999_999_999_999 } })
  .messages({ 'string.base': POSITION_RULE, 'string.empty': POSITION_RULE, 'string.pattern.base': POSITION_RULE });

const headerSchema = Joi.object<{ 'Last-Event-ID': string }, true>({ 'Last-Event-ID': positionSchema });

/** The number in `Last-Event-ID`; undefined: the caller sent none. Throws `invalid_request`. */
export function lastEventId(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  checkAgainst(headerSchema, { 'Last-Event-ID': header });
  return Number(header);
}

/**
 * If Redis came back without its last second, a worker rewrites the loss with its next text
 * (docs/decisions/0007-redis-data-loss.md).
 */
const REWRITE_MS = 1_000;
const REWRITE_POLL_MS = 50;

/** Whether a client has all events that there are or will be. `position`: the number of its last one. */
export function hasAllEvents({ state, sentSeq }: RequestRecord, position: number): boolean {
  return state === 'done' && position >= sentSeq;
}

/**
 * The record, once the stream has reached the client's position: Redis may have lost events that the client has. If it
 * does not get there, throws an error that tells the client how to go on.
 */
export async function reached(
  position: number,
  look: () => Promise<RequestRecord>,
  clock: Clock,
): Promise<RequestRecord> {
  const until = clock.now() + REWRITE_MS;
  for (;;) {
    const record = await look();
    const { sentSeq, state } = record;
    if (position <= sentSeq) return record;
    if (state === 'done')
      throw new ServiceError(
        'invalid_request',
        `The stream has ended with event ${sentSeq}; there is no event ${position} to go on after. Read it from the start.`,
      );
    if (clock.now() > until)
      throw new ServiceError(
        'model_unavailable',
        `The stream has ${sentSeq} events so far, and none after event ${position}; send the same call again shortly.`,
        { retryAfterSeconds: 1 },
      );
    await pause(REWRITE_POLL_MS);
  }
}
