import Joi from 'joi';

import { tenantRules, tenantSettingsOf, toTenantWire } from '../../../shared/contracts/tenant-fields.ts';
import type { TenantWire } from '../../../shared/contracts/tenant-fields.ts';
import { toCredits } from '../../../shared/domain/pricing.ts';
import type { TenantRow } from '../../../shared/mongo/tenants/tenant-repository.ts';
import {
  constant,
  creditsSchema,
  id,
  integer,
  named,
  number,
  object,
  oneOf,
  pageSchema,
  time,
  toSeconds,
} from '../../contract/json-schema.ts';
import type { FieldsOf, JsonSchema } from '../../contract/json-schema.ts';
import { fromJoi } from '../../contract/from-joi.ts';
import { PATH_PARAMETERS } from '../../contract/path-parameters.ts';
import type { Balance } from '../../resources/billing/billing-status.ts';

// Object.entries loses the names, which are those of `tenantRules`.
const settings = Object.fromEntries(Object.entries(tenantRules).map(([name, rule]) => [name, fromJoi(rule)])) as Record<
  keyof TenantWire,
  JsonSchema
>;

const fields = {
  id: id('ten'),
  object: constant('tenant'),
  created_at: time(),
  status: oneOf(['active', 'suspended', 'closed']),
  ...settings,
  balance: number('Credits; below zero where an answer cost more than was left.'),
  held: number('Credits held by requests in progress.'),
  available: number('The balance less what is held.'),
  shard: integer('The part of Redis that has what the tenant has in flight.', 0),
};
export const tenantSchema = named('Tenant', object(fields));
export const tenantListSchema = named('TenantList', pageSchema(tenantSchema));

export function toTenantResource(row: TenantRow, { balanceMicro, heldMicro }: Balance) {
  return {
    id: row._id,
    object: 'tenant',
    created_at: toSeconds(row.createdAt),
    status: row.closedAt === undefined ? row.status : 'closed',
    ...toTenantWire(row),
    balance: toCredits(balanceMicro),
    held: toCredits(heldMicro),
    available: toCredits(balanceMicro - heldMicro),
    shard: row.shard,
  } satisfies FieldsOf<typeof fields>;
}

export const TENANT_EXAMPLE: ReturnType<typeof toTenantResource> = {
  id: PATH_PARAMETERS.tenantId.example,
  object: 'tenant',
  created_at: 1_795_255_200,
  status: 'active',
  ...toTenantWire(tenantSettingsOf({ name: 'Lakeside School' })),
  balance: 250_000,
  held: 0,
  available: 250_000,
  shard: 0,
};

export const newTenantSchema = Joi.object<Partial<TenantWire> & { name: string; credits?: number }>({
  ...tenantRules,
  name: tenantRules.name.required(),
  credits: creditsSchema.min(0).description('Granted at once.'),
}).required();

export const tenantChangesSchema = Joi.object<Partial<TenantWire> & { status?: TenantRow['status'] }>({
  ...tenantRules,
  status: Joi.string().valid('active', 'suspended'),
}).required();

export const tenantMoveSchema = Joi.object<{ shard: number }, true>({
  shard: Joi.number().integer().min(0).required().description('The number of the shard, as `GET /queues` lists them.'),
}).required();
