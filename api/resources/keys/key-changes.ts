import Joi from 'joi';

import { createApiKey } from '../../../shared/domain/api-key.ts';
import type { NewApiKey } from '../../../shared/domain/api-key.ts';
import { flagOf } from '../../../shared/domain/principal.ts';
import type { Principal } from '../../../shared/domain/principal.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { randomBase62 } from '../../../shared/lifecycle/ids.ts';
import type { Logger } from '../../../shared/logging/logger.ts';
import { isActiveKey } from '../../../shared/mongo/tenants/key-repository.ts';
import type { KeyChanges, KeyRepository, KeyRow, KeySettings } from '../../../shared/mongo/tenants/key-repository.ts';
import type { TenantRepository, TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';
import type { AccessFlags } from '../../../shared/redis/stores/access-flags.ts';
import { defineEndpoint, json, ok, optionalJsonBody } from '../../contract/endpoint.ts';
import { countSchema } from '../../contract/json-schema.ts';
import { found } from '../../contract/path-parameters.ts';
import type { TenantEvents } from '../../contract/tenant-events.ts';
import { contextOf } from '../../http/request-context.ts';
import { KEY_WITH_VALUE_EXAMPLE, apiKeyWithValueSchema, keyResource } from './keys-resource.ts';
import type { KeyMode } from '../../../shared/contracts/space.ts';

/** The grant of an API key, resolved to final numbers. */
interface Grant {
  mode: KeyMode;
  scopes: readonly string[];
  /** Milliseconds since the epoch; undefined: the key does not expire. */
  expiresAt?: number | undefined;
  rpm: number;
  tpm: number;
  /** 0 means unlimited, so it compares as infinite. */
  dailyRequests: number;
}

type GrantPart = 'mode' | 'scopes' | 'expires_at' | 'rpm' | 'tpm' | 'daily_requests';

function size(limit: number): number {
  return limit === 0 ? Infinity : limit;
}

/** The first part in which `wanted` goes beyond `owned`; undefined: it does not. */
export function excessOf(owned: Grant, wanted: Grant): GrantPart | undefined {
  if (owned.mode === 'test' && wanted.mode === 'live') return 'mode';
  // `*` also covers scopes added later, so it is more than all of today's scopes by name.
  const isWithin = owned.scopes.includes('*') || wanted.scopes.every((scope) => owned.scopes.includes(scope));
  if (!isWithin) return 'scopes';
  if ((wanted.expiresAt ?? Infinity) > (owned.expiresAt ?? Infinity)) return 'expires_at';
  if (size(wanted.rpm) > size(owned.rpm)) return 'rpm';
  if (size(wanted.tpm) > size(owned.tpm)) return 'tpm';
  if (size(wanted.dailyRequests) > size(owned.dailyRequests)) return 'daily_requests';
  return undefined;
}

/** The grant of a key with these settings: its own limits, or else its tenant's. */
export function grantOf(
  key: Pick<KeyRow | KeySettings, 'mode' | 'scopes' | 'expiresAt' | 'rpm' | 'tpm' | 'dailyRequests'>,
  tenant: TenantRow,
): Grant {
  return {
    mode: key.mode,
    scopes: key.scopes,
    expiresAt: key.expiresAt,
    rpm: key.rpm ?? tenant.rpm,
    tpm: key.tpm ?? tenant.tpm,
    dailyRequests: key.dailyRequests ?? tenant.dailyRequests,
  };
}

const MESSAGES: Record<GrantPart, string> = {
  mode: 'A test key cannot make or widen a live key; send `mode` test or use a live key.',
  scopes: 'A key cannot grant scopes that it does not have; send `scopes` within those of the key you call with.',
  expires_at:
    'A key cannot grant a longer life than its own; send `expires_at` no later than that of the key you call with.',
  rpm: 'A key cannot grant more than its own limits; send `rpm` no higher than that of the key you call with.',
  tpm: 'A key cannot grant more than its own limits; send `tpm` no higher than that of the key you call with.',
  daily_requests:
    'A key cannot grant more than its own limits; send `daily_requests` no higher than that of the key you call with (0 means unlimited).',
};

/** Throws `endpoint_not_allowed` if a test key manages a live key (docs/spec.md#test-keys). */
export function assertMayManage({ mode }: Principal, key: KeyRow): void {
  if (mode === 'live' || key.mode === 'test') return;
  throw new ServiceError(
    'endpoint_not_allowed',
    'A test key cannot change, rotate or revoke a live key; call with a live key.',
    { param: 'mode' },
  );
}

/** Throws `endpoint_not_allowed` if `wanted` exceeds the caller's key (docs/spec.md#keys). */
export function assertGranted({ mode, scopes, expiresAt, limits }: Principal, wanted: Grant): void {
  const { rpm, tpm, dailyRequests } = limits;
  const excess = excessOf({ mode, scopes, expiresAt, rpm, tpm, dailyRequests }, wanted);
  if (excess !== undefined) throw new ServiceError('endpoint_not_allowed', MESSAGES[excess], { param: excess });
}

export interface ChangeKeyDeps {
  keys: KeyRepository;
  tenants: TenantRepository;
  accessFlags: AccessFlags;
  events: TenantEvents;
  clock: Clock;
}

/** Throws `not_found`. */
export async function findTenant(tenants: TenantRepository, tenantId: string): Promise<TenantRow> {
  return found(await tenants.find(tenantId), 'tenantId');
}

/** The shard that a tenant has been moved to. Flags set before the move moved along; later ones are due there as well. */
async function shardAfter(tenants: TenantRepository, { tenantId, shard }: Principal): Promise<number | undefined> {
  const tenant = await tenants.find(tenantId);
  return tenant === undefined || tenant.shard === shard ? undefined : tenant.shard;
}

export async function revokeAtOnce(
  { keys, tenants, accessFlags }: ChangeKeyDeps,
  principal: Principal,
  { _id: keyId, revision = 0 }: KeyRow,
): Promise<void> {
  const { tenantId, shard } = principal;
  const flag = flagOf({ keyId, revision });
  const revoked = await accessFlags.blockAround(shard, flag, () => keys.revoke(tenantId, keyId));
  // The key may have been changed meanwhile.
  const last = flagOf({ keyId, revision: revoked?.revision ?? revision });
  const elsewhere = await shardAfter(tenants, principal);
  if (elsewhere !== undefined || last !== flag) await accessFlags.block(elsewhere ?? shard, last);
}

export function ownTenant({ tenants }: ChangeKeyDeps, { tenantId }: Principal): Promise<TenantRow> {
  return findTenant(tenants, tenantId);
}

/** The changes, and whether they take back something that the key has allowed. */
interface KeyDecision {
  changes: KeyChanges;
  takesBack: boolean;
}

/** Changes a key that is not revoked, as `decide` says. Throws `not_found`, `conflict` or `endpoint_not_allowed`. */
export async function changeKey(
  { keys, tenants, accessFlags }: ChangeKeyDeps,
  principal: Principal,
  keyId: string,
  now: number,
  decide: (key: KeyRow) => KeyDecision,
) {
  const { tenantId, shard } = principal;
  const changed = await keys.change(tenantId, keyId, now, (row) => {
    assertMayManage(principal, row);
    if (row.status === 'revoked') {
      throw new ServiceError('conflict', 'This API key has been revoked; create a new one.');
    }
    const { changes, takesBack } = decide(row);
    return takesBack ? { ...changes, revision: (row.revision ?? 0) + 1 } : changes;
  });
  const key = found(changed, 'keyId');
  const { revision = 0 } = key;
  return {
    key,
    /** Tells every ingress; what was taken back counts no more even where that message is missed. Safe to repeat. */
    async announce(): Promise<void> {
      if (revision === 0) return accessFlags.announce(keyId);
      // A change that takes nothing back may be the repeat of one whose flag was not set.
      const flag = flagOf({ keyId, revision: revision - 1 });
      await accessFlags.outdate(shard, flag);
      const elsewhere = await shardAfter(tenants, principal);
      if (elsewhere !== undefined) await accessFlags.outdate(elsewhere, flag);
    },
  };
}

/** A week (docs/spec.md#keys). */
const GRACE_SECONDS_MAX = 604_800;
/** Each earlier value is one more valid secret for the same key. */
const PREVIOUS_VALUES_MAX = 10;

const rotationSchema = Joi.object<{ grace_seconds?: number }, true>({
  grace_seconds: countSchema(0, GRACE_SECONDS_MAX).description(
    'How long the previous value keeps working, in seconds; 0 by default.',
  ),
}).required();

/** No earlier value outlives the grace: 0 leaves only the new one. Throws `conflict` if too many would still work. */
function rotationOf(key: KeyRow, next: NewApiKey, graceMs: number, now: number): KeyChanges {
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

export interface RotateKeyDeps extends ChangeKeyDeps {
  keyPrefix: string;
  log: Logger;
}

export const rotateKey = defineEndpoint({
  method: 'POST',
  path: '/keys/:keyId/rotate',
  scopes: ['keys'],
  tag: 'Keys',
  summary: 'Rotate an API key',
  description: 'Needs no body. The previous value keeps working for `grace_seconds`.',
  body: optionalJsonBody('ApiKeyRotation', rotationSchema),
  answers: { 200: json('The key, with its value.', apiKeyWithValueSchema) },
  examples: {
    at_once: { summary: 'The previous value stops working', body: {}, status: 200, answer: KEY_WITH_VALUE_EXAMPLE },
    grace: {
      summary: 'The previous value works for an hour',
      body: { grace_seconds: 3_600 },
      status: 200,
      answer: { ...KEY_WITH_VALUE_EXAMPLE, previous_value_expires_at: 1_795_258_800 },
    },
  },
  async handle({ res, principal, params, body, actor }, deps: RotateKeyDeps) {
    const { keyId } = params;
    const { grace_seconds: graceSeconds = 0 } = body;
    const now = deps.clock.now();
    const tenant = await ownTenant(deps, principal);
    const rotatedUnder = contextOf(res).run?.name;
    let value: string | undefined;
    const { key, announce } = await changeKey(deps, principal, keyId, now, (row) => {
      // The caller gets the key's new value, so the key must not allow more than the caller's own.
      assertGranted(principal, grantOf(row, tenant));
      if (!isActiveKey(row, now)) {
        throw new ServiceError('conflict', 'This API key has expired; set a later `expires_at` before rotating it.');
      }
      // An earlier run has already rotated it; the value it made is no longer known.
      if (rotatedUnder !== undefined && row.rotatedUnder === rotatedUnder) return { changes: {}, takesBack: false };
      const next = createApiKey(deps.keyPrefix, row.mode, randomBase62(26));
      ({ value } = next);
      const changes = { ...rotationOf(row, next, graceSeconds * 1000, now), rotatedUnder };
      return { changes, takesBack: graceSeconds === 0 };
    });
    // Shown even if the announcement fails, because there is no other chance: caches forget the old value by
    // themselves.
    await announce().catch((error: unknown) => {
      deps.log.warn('A rotation could not be announced; old values may be accepted a few seconds longer.', {
        keyId,
        error,
      });
    });
    await deps.events.emit(actor, 'key.rotated', keyId, { grace_seconds: graceSeconds });
    return ok({ ...keyResource.of(key, tenant, now), ...(value === undefined ? {} : { value }) });
  },
});
