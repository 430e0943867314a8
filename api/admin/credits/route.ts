import { Router } from 'express';
import Joi from 'joi';

import { codePoints } from '../../../shared/contracts/chat-request.ts';
import { creditsSchema } from '../../contract/credits.ts';
import { checkAgainst } from '../../../shared/contracts/parse.ts';
import { toCredits, toMicro } from '../../../shared/domain/pricing/pricing.ts';
import type { TenantRepository } from '../../../shared/infra/mongo/tenants/tenant-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { AuditTrail } from '../../resources/audit-log/audit-trail.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { findTenant } from '../tenants/route.ts';
import { pathId } from '../../contract/path-id.ts';
import { idempotencyKeyOf } from '../../admission/idempotency.ts';
import { toSeconds } from '../../contract/unix-seconds.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { derivedId } from '../../../shared/lifecycle/ids.ts';
import { bookCredits } from './book-credits.ts';
import type { BookCreditsDeps, Booking } from './book-credits.ts';

const REASON_CHARACTERS_MAX = 500;

const schema = Joi.object({
  credits: creditsSchema.invalid(0).required().messages({ 'any.invalid': '{{#label}} must not be 0' }),
  reason: Joi.string().allow('').custom(codePoints(REASON_CHARACTERS_MAX)),
}).required();

export interface AdminCreditsDeps extends BookCreditsDeps {
  tenants: TenantRepository;
  auditTrail: AuditTrail;
  clock: Clock;
}

/**
 * `POST /admin/v1/tenants/{id}/credits`: a grant, or with a negative amount an adjustment. An `Idempotency-Key` is the
 * ledger entry's for good: a call under it books once, whatever dies and however late it comes again.
 */
export function createAdminCreditsRoute(deps: AdminCreditsDeps): Router {
  const { tenants, auditTrail, clock } = deps;
  const router = Router();
  router
    .route('/tenants/:tenantId/credits')
    .post(async (req, res) => {
      const tenantId = pathId(req, 'tenantId', 'ten');
      checkAgainst(schema, req.body);
      // The schema has just checked both fields.
      const { credits, reason = '' } = req.body as { credits: number; reason?: string };
      const tenant = await findTenant(tenants, tenantId);
      const type = credits > 0 ? 'grant' : 'adjustment';
      const now = clock.now();
      const key = idempotencyKeyOf(req);
      const booking: Booking = {
        type,
        amountMicro: toMicro(credits),
        reason,
        ...(key === undefined ? {} : { transactionId: derivedId('txn', tenantId, 'admin-credits', key) }),
      };
      const { entry, isRepeated } = await bookCredits(deps, tenant, booking, now);
      const { _id: transactionId, balanceAfterMicro } = entry;
      if (entry.amountMicro !== booking.amountMicro || entry.reason !== reason) {
        throw new ServiceError(
          'idempotency_mismatch',
          'This Idempotency-Key has booked other credits; send a new key.',
        );
      }
      if (isRepeated) res.setHeader('Idempotent-Replayed', 'true');
      const action = type === 'grant' ? 'credits.granted' : 'credits.adjusted';
      const act = { action, target: transactionId, details: { credits, reason }, isOnce: true };
      await auditTrail.byAdministrator(res, tenantId, act);
      res.status(201).json({
        id: transactionId,
        object: 'transaction',
        created_at: toSeconds(entry.createdAt),
        type,
        credits,
        balance_after: toCredits(balanceAfterMicro),
        reason,
      });
    })
    .all(methodNotAllowed('POST'));
  return router;
}
