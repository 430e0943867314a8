import { beforeEach, describe, expect, it } from '@jest/globals';

import { balanceOf, buy, expectRunningBalance, transactionsOf } from '../../support/billing.ts';
import { refusalOf } from '../../support/refusal.ts';
import { callBack, eventOf } from '../../support/stripe-double.ts';
import type { StripeEvent } from '../../support/stripe-double.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { useTenantPerTest } from '../../support/use-service.ts';
import { useStripeShop } from '../../support/use-stripe-shop.ts';

const { service, stripe } = useStripeShop();
let checkoutId: string;
const tenant = useTenantPerTest(service, { credits: 0 });
beforeEach(async () => {
  checkoutId = String((await buy(service, tenant, { credits: 2_000_000 })).body.id);
});

const paid = () => eventOf('checkout.session.completed', stripe.paid(checkoutId));
const refunded = (amount: number) =>
  eventOf('charge.refunded', { payment_intent: `pi_${checkoutId}`, metadata: {}, amount_refunded: amount });

function dispute(funds: 'withdrawn' | 'reinstated', more: object = {}): StripeEvent {
  const what = { id: `du_${checkoutId}`, object: 'dispute', payment_intent: `pi_${checkoutId}`, metadata: {} };
  return eventOf(`charge.dispute.funds_${funds}`, { ...what, amount: 1_000, currency: 'eur', ...more });
}

async function send(...events: StripeEvent[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const event of events) statuses.push((await callBack(service, event)).status);
  return statuses;
}

const entries = async () =>
  (await transactionsOf(service, tenant)).map(({ type, credits }) => [type, credits] as const);

describe('a dispute', () => {
  it('takes the credits back once, and gives them again once', async () => {
    await send(paid());
    const withdrawn = dispute('withdrawn');
    await Promise.all([send(withdrawn), send(withdrawn), send(withdrawn)]);
    expect(await balanceOf(service, tenant)).toBe(0);

    const reinstated = dispute('reinstated');
    expect(await send(reinstated, reinstated, withdrawn)).toEqual([200, 200, 200]);
    expect(await entries()).toEqual([
      ['purchase', 2_000_000],
      ['adjustment', -2_000_000],
      ['adjustment', 2_000_000],
    ]);
    await expectRunningBalance(service, tenant, 3);
    const log = await apiOf(service, tenant.key)('get', '/compliance/audit_log?limit=3');
    expect((log.body.data as { action: string }[]).map(({ action }) => action)).toEqual([
      'credits.reinstated',
      'credits.disputed',
      'credits.purchased',
    ]);
  });

  it('a dispute of a part takes that part', async () => {
    await send(paid(), dispute('withdrawn', { amount: 250 }));
    expect(await balanceOf(service, tenant)).toBe(1_500_000);
    await expectRunningBalance(service, tenant, 2);
  });

  it('whose two notices change places leaves the balance as it was', async () => {
    expect(await send(paid(), dispute('reinstated'), dispute('withdrawn'))).toEqual([200, 200, 200]);
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
    await expectRunningBalance(service, tenant, 1);
  });

  it('that is lost after it was won takes the credits back again', async () => {
    await send(paid(), dispute('withdrawn'), dispute('reinstated'), dispute('withdrawn'));
    expect(await balanceOf(service, tenant)).toBe(0);
    await expectRunningBalance(service, tenant, 4);
  });

  it('that Stripe says in two events of different ids counts once', async () => {
    const [out, back, outAgain] = [-1_000, 1_000, -1_000].map((amount, index) => ({ id: `txn_${index}`, amount }));
    const withdrawn = () => dispute('withdrawn', { balance_transactions: [out] });
    const reinstated = () => dispute('reinstated', { balance_transactions: [out, back] });
    await send(paid());
    await Promise.all([send(withdrawn()), send(withdrawn())]);
    expect(await send(withdrawn(), reinstated(), withdrawn())).toEqual([200, 200, 200]);
    expect(await balanceOf(service, tenant)).toBe(2_000_000);

    const lost = () => dispute('withdrawn', { balance_transactions: [out, back, outAgain] });
    await send(lost(), reinstated(), lost());
    expect(await balanceOf(service, tenant)).toBe(0);
    await expectRunningBalance(service, tenant, 4);
  });

  it.each<[string, (events: { half: StripeEvent; all: StripeEvent }) => StripeEvent[]]>([
    ['before', ({ half, all }) => [half, all]],
    ['after', ({ half, all }) => [all, half]],
  ])('and a refund %s it take no more than was bought', async (_when, order) => {
    await send(paid(), ...order({ half: refunded(500), all: dispute('withdrawn') }));
    expect(await balanceOf(service, tenant)).toBe(0);

    await send(dispute('reinstated'));
    expect(await balanceOf(service, tenant)).toBe(1_000_000);
    const { body } = await apiOf(service, tenant.key)('get', '/billing/purchases');
    expect(body.data).toEqual([expect.objectContaining({ refunded_amount: 500, refunded_credits: 1_000_000 })]);
    const { balanceMicro } = (await service.models.accounts.findById(tenant.tenantId).lean()) ?? {};
    expect(balanceMicro).toBe(1_000_000_000_000);
  });

  it('a dispute of spent credits leaves a debt', async () => {
    await send(paid());
    await service.admin('post', `/tenants/${tenant.tenantId}/credits`, { credits: -1_500_000 });
    await send(dispute('withdrawn'));
    expect(await balanceOf(service, tenant)).toBe(-1_500_000);
  });

  it('that is earlier than its payment is to be sent again', async () => {
    const event = dispute('withdrawn');
    expect(refusalOf(await callBack(service, event))).toMatchObject({ status: 409, code: 'conflict' });
    expect(await send(paid(), event)).toEqual([200, 200]);
    expect(await balanceOf(service, tenant)).toBe(0);
  });

  it('a dispute of what was not sold here is heard', async () => {
    expect(await send(paid(), dispute('withdrawn', { payment_intent: 'pi_other' }))).toEqual([200, 200]);
    expect(await send(dispute('withdrawn', { payment_intent: null }))).toEqual([200]);
    expect(await balanceOf(service, tenant)).toBe(2_000_000);
  });

  it('is to be sent again while Stripe cannot say what it is about', async () => {
    stripe.refuse({ status: 401, error: { type: 'invalid_request_error' } });
    const answer = await callBack(service, dispute('withdrawn'));
    stripe.refuse(undefined);
    expect(refusalOf(answer)).toMatchObject({ status: 503, code: 'model_unavailable' });
  });
});
