import type { NewApiKey } from '../../../shared/domain/keys/api-key.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { KeyChanges } from '../../../shared/infra/mongo/tenants/key-repository.ts';
import type { KeyRow } from '../../../shared/infra/mongo/tenants/key-repository.ts';

/** Each is one more secret that opens the same door. */
const PREVIOUS_VALUES_MAX = 10;

/**
 * What rotating a key changes: `next` takes the place of its value, and no earlier value works beyond the grace. So a
 * grace of 0 leaves the new value alone. Throws `conflict` when too many earlier values would still work.
 */
export function rotationOf(key: KeyRow, next: NewApiKey, graceMs: number, now: number): KeyChanges {
  const end = now + graceMs;
  const previous = [...(key.previous ?? []), { hash: key.hash, expiresAt: end }]
    .map(({ hash, expiresAt }) => ({ hash, expiresAt: Math.min(expiresAt, end) }))
    .filter(({ expiresAt }) => expiresAt > now);
  if (previous.length > PREVIOUS_VALUES_MAX) {
    throw new ServiceError(
      'conflict',
      `${PREVIOUS_VALUES_MAX} earlier values of this key still work; wait for the end of their grace or send \`grace_seconds\` 0.`,
      { param: 'grace_seconds' },
    );
  }
  return { hash: next.hash, redactedValue: next.redactedValue, previous };
}
