import { Router } from 'express';
import Joi from 'joi';

import { codePoints } from '../../../shared/contracts/chat-request.ts';
import { creditsSchema } from '../../../shared/contracts/credits.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { toCredits, toMicro } from '../../../shared/domain/pricing/pricing.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { AccountRepository } from '../../../shared/infra/mongo/account-repository.ts';
import type { TenantRepository } from '../../../shared/infra/mongo/tenant-repository.ts';
import type { AccountStore } from '../../../shared/infra/redis/account-store.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { methodNotAllowed } from '../../middleware/error-handler.ts';
import { findTenant } from '../admin-tenants/route.ts';
import { pathId } from '../path-id.ts';

const REASON_CHARACTERS_MAX = 500;
/** Amounts beyond this would not be exact as micro-credits in a number; what is left of 2^53 is for usage. */
const BALANCE_MICRO_MAX = 8_000_000_000_000_000;

const schema = Joi.object({
  credits: creditsSchema.invalid(0).required().messages({ 'any.invalid': '{{#label}} must not be 0' }),
  reason: Joi.string().allow('').custom(codePoints(REASON_CHARACTERS_MAX)),
}).required();

export interface AdminCreditsDeps {
  tenants: TenantRepository;
  accounts: AccountRepository;
  accountStore: AccountStore;
  clock: Clock;
}

/** `POST /admin/v1/tenants/{id}/credits`: a grant, or with a negative amount an adjustment. */
export function createAdminCreditsRoute({ tenants, accounts, accountStore, clock }: AdminCreditsDeps): Router {
  async function assertExact(tenantId: string, amountMicro: number): Promise<void> {
    const balanceMicro = (await accounts.read(tenantId))?.balanceMicro ?? 0;
    if (Math.abs(balanceMicro + amountMicro) <= BALANCE_MICRO_MAX) return;
    throw new ServiceError(
      'invalid_request',
      `\`credits\` must leave a balance between ${-toCredits(BALANCE_MICRO_MAX)} and ${toCredits(BALANCE_MICRO_MAX)}.`,
      { param: 'credits' },
    );
  }

  const router = Router();
  router
    .route('/tenants/:tenantId/credits')
    .post(async (req, res) => {
      const tenantId = pathId(req, 'tenantId', 'ten');
      checkAgainst(schema, req.body);
      // The schema has just checked both fields.
      const { credits, reason = '' } = req.body as { credits: number; reason?: string };
      const tenant = await findTenant(tenants, tenantId);
      const amountMicro = toMicro(credits);
      await assertExact(tenantId, amountMicro);
      const type = credits > 0 ? 'grant' : 'adjustment';
      const now = clock.now();
      const { transactionId, book } = await accounts.book({ tenantId, type, amountMicro, reason, now });
      await accountStore.publishBook(tenant.shard, tenantId, book);
      res.status(201).json({
        id: transactionId,
        object: 'transaction',
        created_at: Math.floor(now / 1000),
        type,
        credits,
        balance_after: toCredits(book.balanceMicro),
        reason,
      });
    })
    .all(methodNotAllowed('POST'));
  return router;
}
