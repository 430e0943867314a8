import type { Request, Response, Router } from 'express';

import { pageOf, parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { toCredits } from '../../../shared/domain/pricing/pricing.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { CheckoutRow } from '../../../shared/infra/mongo/accounts/checkout-repository.ts';
import type { CheckoutRepository } from '../../../shared/infra/mongo/accounts/checkout-repository.ts';
import type { LedgerRepository } from '../../../shared/infra/mongo/accounts/ledger-repository.ts';
import type { PriceRepository } from '../../../shared/infra/mongo/accounts/price-repository.ts';
import type { PurchaseRepository } from '../../../shared/infra/mongo/accounts/purchase-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { AuditTrail } from '../audit-log/audit-trail.ts';
import { createdBefore, idForNew, principalOf } from '../../http/request-context.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';
import type { Payment } from '../../payments/payment.ts';
import { readBalance } from '../../admin/tenants/balance.ts';
import type { BalanceDeps } from '../../admin/tenants/balance.ts';
import { pathId } from '../../contract/path-id.ts';
import { readAccountStatus } from './account-status.ts';
import { assertRoomFor, letPay, openCheckout } from './open-checkout.ts';
import { toOrder } from './order.ts';
import { toCheckoutResource, toPackageResource, toPurchaseResource, toTransactionResource } from './resource.ts';
import { parseCheckout, parseTransactionType } from './schema.ts';

export interface BillingRouteDeps extends BalanceDeps {
  serve: ServeEndpoints;
  checkouts: CheckoutRepository;
  purchases: Pick<PurchaseRepository, 'list'>;
  prices: Pick<PriceRepository, 'current'>;
  ledger: Pick<LedgerRepository, 'list'>;
  /** Undefined: nothing is sold here. */
  payment: Payment | undefined;
  auditTrail: AuditTrail;
  clock: Clock;
}

/** How the caller reaches this service; Express believes a trusted proxy's headers only. */
function originOf(req: Request): string {
  return `${req.protocol}://${req.host}`;
}

/** `/billing` (docs/spec/contract.md section 6). */
export function createBillingRoute(deps: BillingRouteDeps): Router {
  const { serve, checkouts, purchases, prices, ledger, payment, auditTrail, clock } = deps;

  async function noteCheckout(res: Response, { _id, creditsMicro, amount, currency }: CheckoutRow): Promise<void> {
    const details = { credits: toCredits(creditsMicro), amount, currency };
    await auditTrail.byKey(res, { action: 'checkout.created', target: _id, details, isOnce: true });
  }

  return serve({
    getBilling: async (_req, res) => {
      res.json(await readAccountStatus(deps, principalOf(res), clock.now()));
    },

    listBillingPackages: async (req, res) => {
      const query = parseListQuery(req.query);
      const { packages, currency, pricePerMillion } = await prices.current();
      const now = clock.now();
      const sold = packages.filter(({ expiresAt }) => expiresAt === undefined || expiresAt > now);
      const rows = pageOf(sold, query, ({ id }) => id);
      res.json({
        ...toListPage(rows, query.limit, (row) => toPackageResource(row, currency)),
        currency,
        price_per_million_credits: pricePerMillion,
      });
    },

    createCheckout: async (req, res) => {
      const wanted = parseCheckout(req.body);
      if (payment === undefined) {
        throw new ServiceError('conflict', 'This service takes no payments; ask its administrator for credits.');
      }
      const now = clock.now();
      const checkoutId = idForNew(res, 'cs');
      const before = await createdBefore(res, () => checkouts.find(principalOf(res).tenantId, checkoutId));
      if (before !== undefined) {
        const checkout = await letPay({ checkouts, payment }, before, originOf(req));
        await noteCheckout(res, checkout);
        res.status(201).json(toCheckoutResource(checkout, now));
        return;
      }
      const order = toOrder(await prices.current(), wanted, now);
      const { tenantId, keyId, shard } = principalOf(res);
      const { balanceMicro } = await readBalance(deps, { _id: tenantId, shard }, now);
      const buyer = { tenantId, keyId, balanceMicro, origin: originOf(req) };
      assertRoomFor(order, buyer);
      const checkout = await openCheckout({ checkouts, payment }, order, wanted, buyer, checkoutId, now);
      await noteCheckout(res, checkout);
      res.status(201).json(toCheckoutResource(checkout, now));
    },

    getCheckout: async (req, res) => {
      const checkout = await checkouts.find(principalOf(res).tenantId, pathId(req, 'checkoutId', 'cs'));
      if (checkout === undefined) throw new ServiceError('not_found', 'There is no checkout with this id.');
      res.json(toCheckoutResource(checkout, clock.now()));
    },

    listPurchases: async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = await purchases.list(principalOf(res).tenantId, query);
      res.json(toListPage(rows, query.limit, toPurchaseResource));
    },

    listTransactions: async (req, res) => {
      const query = parseListQuery(req.query);
      const rows = await ledger.list(principalOf(res).tenantId, parseTransactionType(req.query), query);
      res.json(toListPage(rows, query.limit, toTransactionResource));
    },
  });
}
