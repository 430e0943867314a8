import type { ComplianceScope } from '../../shared/contracts/compliance.ts';
import type { KeyMode, Space } from '../../shared/contracts/space.ts';
import type { Logger } from '../../shared/logging/logger.ts';

/** The actor and its request: the id of an API key with its mode, or `administrator`, whose mode is live. */
export interface Actor extends Space {
  id: string;
  requestId: string;
}

/** The subject of an export or a deletion. Deleting the entity removes `entity_id` from the audit log. */
interface AboutEntity {
  scope: ComplianceScope;
  entity_id?: string | undefined;
  entity_hash?: string | undefined;
}

type Nothing = Readonly<Record<string, never>>;
type Money = { credits: number; amount: number; currency: string };

/** Events of a tenant's account: names as in the audit log, with details. Details hold no secrets. */
interface TenantEventDetails {
  'tenant.created': { credits: number };
  'tenant.updated': { fields: string[] };
  'tenant.suspended': { fields: string[] };
  'tenant.activated': { fields: string[] };
  'tenant.closed': Nothing;
  'tenant.moved': { from: number; to: number };
  'key.created': { mode: KeyMode; scopes: readonly string[] };
  'key.updated': { fields: string[] };
  'key.rotated': { grace_seconds: number };
  'key.revoked': { mode: KeyMode };
  'entity.deleted': Nothing;
  'entity.history_deleted': Nothing;
  'webhook.created': { url: string; events: readonly string[] };
  'webhook.updated': { fields: string[] };
  'webhook.secret_rotated': { grace_seconds: number };
  'webhook.deleted': Nothing;
  'batch.created': { requests: number };
  'batch.cancelled': Nothing;
  'checkout.created': Money;
  'credits.granted': { credits: number; reason: string };
  'credits.adjusted': { credits: number; reason: string };
  'compliance.export_requested': AboutEntity;
  'compliance.export_downloaded': Nothing;
  'compliance.deletion_requested': AboutEntity;
}

export type TenantEventType = keyof TenantEventDetails;

/** Events that happen to a target only once, also where a repeated call emits them again. */
export const HAPPENS_ONCE: ReadonlySet<TenantEventType> = new Set<TenantEventType>([
  'tenant.closed',
  'key.created',
  'webhook.created',
  'batch.created',
  'checkout.created',
  'credits.granted',
  'credits.adjusted',
  'compliance.export_requested',
  'compliance.deletion_requested',
]);

/** `target` is the id of the thing acted on. */
export type TenantEvent = {
  [Type in TenantEventType]: { type: Type; by: Actor; target: string; details: TenantEventDetails[Type] };
}[TenantEventType];

type EventOf<Type extends TenantEventType> = Extract<TenantEvent, { type: Type }>;

export type TenantEventListener = (event: TenantEvent) => Promise<void>;

export interface TenantEvents {
  /** Resolves when every listener has handled the event. Never rejects, because the event has already happened. */
  emit<Type extends TenantEventType>(
    by: Actor,
    type: Type,
    target: string,
    ...details: TenantEventDetails[Type] extends Nothing ? [] : [details: TenantEventDetails[Type]]
  ): Promise<void>;
}

/** The target's name in a log line. An entity's id is personal data, and a log outlives the entity's deletion. */
export function targetInLog({ type, target }: TenantEvent): string {
  return type.startsWith('entity.') ? 'an entity' : target;
}

/** Calls the listeners in turn. One that fails does not stop the next. */
export function createTenantEvents(listeners: readonly TenantEventListener[], log: Logger): TenantEvents {
  return {
    async emit(by, type, target, ...[details = {}]) {
      // The signature ties the shape of `details` to `type`.
      const event = { by, type, target, details } as EventOf<typeof type>;
      for (const listener of listeners) {
        try {
          await listener(event);
        } catch (error) {
          const { tenantId, requestId } = by;
          log.error(`A listener failed: ${type} of ${targetInLog(event)} by ${by.id}.`, { requestId, tenantId, error });
        }
      }
    },
  };
}
