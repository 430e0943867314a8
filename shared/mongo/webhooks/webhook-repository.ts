import type { Connection } from 'mongoose';

import type { KeyMode, SearchedSpace, Space } from '../../contracts/space.ts';
import type { ListQuery } from '../../contracts/list-page.ts';
import type { WebhookEventType } from '../../contracts/webhook-events.ts';
import { ServiceError } from '../../errors/service-error.ts';
import { collection, toFieldUpdate, listRows, inSpace } from '../collection.ts';
import type { RowOfSpace } from '../collection.ts';
import { tenantModel } from '../tenants/tenant-repository.ts';

interface PreviousSecret {
  encrypted: string;
  /** It signs until then. */
  expiresAt: number;
}

export interface WebhookRow extends RowOfSpace {
  _id: string;
  url: string;
  events: WebhookEventType[];
  description: string;
  status: 'active' | 'disabled';
  /** `request`: by the tenant; `gone`: the receiver answered 410; `failing`: for days. */
  disabledReason?: 'request' | 'gone' | 'failing';
  /** AES-256-GCM, see shared/mongo/credentials.ts. */
  encryptedSecret: string;
  previousSecrets?: PreviousSecret[];
  /** The run under an `Idempotency-Key` of the last rotation. */
  rotatedUnder?: string;
  /** The first failed attempt since the latest success, and the number of failures since; absent after a success. */
  failingSince?: number;
  failures?: number;
  /** The latest attempt succeeded but took long. */
  slow?: boolean;
  createdAt: number;
}

export const webhookModel = collection<WebhookRow>('webhooks', [[{ tenantId: 1, createdAt: -1 }], [{ events: 1 }]]);

/** Per tenant and mode, disabled ones included. */
export const WEBHOOKS_MAX = 20;

/** Undefined leaves a field as it is, null takes it away. */
export type WebhookChanges = {
  [Name in 'url' | 'events' | 'description' | 'status' | 'encryptedSecret' | 'rotatedUnder']?:
    WebhookRow[Name] | undefined;
} & {
  [Name in 'disabledReason' | 'previousSecrets' | 'failingSince' | 'failures' | 'slow']?:
    WebhookRow[Name] | null | undefined;
};

export interface Subscriber {
  webhookId: string;
  mode: KeyMode;
}

export type WebhookRepository = ReturnType<typeof createWebhookRepository>;

async function insertWebhook(
  connection: Connection,
  tenants: ReturnType<typeof tenantModel>,
  webhooks: ReturnType<typeof webhookModel>,
  row: WebhookRow,
): Promise<void> {
  const { tenantId, mode = 'live' } = row;
  await connection.transaction(async (session) => {
    // Writing the tenant makes concurrent calls take turns.
    await tenants.updateOne({ _id: tenantId }, { $inc: { webhooksMade: 1 } }, { session });
    const count = await webhooks.countDocuments(inSpace({ tenantId, mode }), { session });
    if (count >= WEBHOOKS_MAX) {
      throw new ServiceError(
        'conflict',
        `The tenant has ${WEBHOOKS_MAX} ${mode} webhooks, which is the most it may have; delete one first.`,
      );
    }
    await webhooks.create([row], { session });
  });
}

export function createWebhookRepository(connection: Connection) {
  const tenants = tenantModel(connection);
  const webhooks = webhookModel(connection);

  async function find(space: SearchedSpace, webhookId: string): Promise<WebhookRow | undefined> {
    return (await webhooks.findOne({ _id: webhookId, ...inSpace(space) }).lean()) ?? undefined;
  }

  return {
    find,

    /** Throws `conflict` when the tenant has 20 of this mode; exact under concurrent calls. */
    insert: (row: WebhookRow): Promise<void> => insertWebhook(connection, tenants, webhooks, row),

    list: (space: Space, query: ListQuery): Promise<WebhookRow[]> => listRows(webhooks, inSpace(space), query),

    async change(space: SearchedSpace, webhookId: string, changes: WebhookChanges): Promise<WebhookRow | undefined> {
      await webhooks.updateOne({ _id: webhookId, ...inSpace(space) }, toFieldUpdate(changes));
      return find(space, webhookId);
    },

    /** False: another call has rotated the secret of `row`. */
    async replaceSecret({ _id, tenantId, encryptedSecret }: WebhookRow, changes: WebhookChanges): Promise<boolean> {
      const { matchedCount } = await webhooks.updateOne({ _id, tenantId, encryptedSecret }, toFieldUpdate(changes));
      return matchedCount === 1;
    },

    /** False: the webhook was not active any more. */
    async disable(tenantId: string, webhookId: string, disabledReason: 'gone' | 'failing'): Promise<boolean> {
      const { matchedCount } = await webhooks.updateOne(
        { _id: webhookId, tenantId, status: 'active' },
        { $set: { status: 'disabled', disabledReason } },
      );
      return matchedCount === 1;
    },

    /** Its deliveries expire; a worker fails those that wait. False: the space has no such webhook. */
    async remove(space: Space, webhookId: string): Promise<boolean> {
      const { deletedCount } = await webhooks.deleteOne({ _id: webhookId, ...inSpace(space) });
      return deletedCount === 1;
    },

    async subscriptions(tenantId: string): Promise<Map<WebhookEventType, Subscriber[]>> {
      const rows = await webhooks.find({ tenantId, status: 'active' }, { events: 1, mode: 1 }).lean();
      const byType = new Map<WebhookEventType, Subscriber[]>();
      for (const { _id: webhookId, mode = 'live', events } of rows)
        for (const type of events) byType.set(type, [...(byType.get(type) ?? []), { webhookId, mode }]);
      return byType;
    },

    tenantsWith: (type: WebhookEventType): Promise<string[]> =>
      webhooks.distinct('tenantId', { events: type, status: 'active' }),
  };
}
