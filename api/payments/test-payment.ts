import { Router } from 'express';
import type { Request, Response } from 'express';

import { toCredits, toMajor } from '../../shared/domain/pricing.ts';
import type {
  CheckoutRow,
  CheckoutStatus,
  CheckoutRepository,
} from '../../shared/mongo/accounts/checkout-repository.ts';
import type { Payment } from './payment.ts';
import type { BookPayment } from './book-payment.ts';
import { ServiceError } from '../../shared/errors/service-error.ts';
import type { Clock } from '../../shared/lifecycle/clock.ts';
import { setAddressHeaders } from '../http/count-requests.ts';
import { methodNotAllowed } from '../http/error-handler.ts';
import { contextOf } from '../http/request-context.ts';
import { readForm } from '../admin/access/admin-session.ts';
import { checkoutStatus } from '../resources/billing/billing-resource.ts';
import { readParam } from '../contract/path-parameters.ts';

/** Browsers also apply `form-action` to the redirect after the form. */
function testPaymentPolicy({ successUrl, cancelUrl }: CheckoutRow): string {
  const origins = [successUrl, cancelUrl].map((url) => new URL(url).origin);
  return [
    "default-src 'none'",
    "style-src 'unsafe-inline'",
    `form-action 'self' ${[...new Set(origins)].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const NOTICES: Record<Exclude<CheckoutStatus, 'open'>, string> = {
  completed: 'This checkout has been paid.',
  processing: 'This checkout is being paid.',
  cancelled: 'This checkout was cancelled.',
  expired: 'This checkout has expired.',
  failed: 'This checkout could not be paid.',
};

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** An amount in minor units as people write it: `$5.00`. */
function priceText({ amount, currency }: CheckoutRow): string {
  return new Intl.NumberFormat('en', { style: 'currency', currency }).format(toMajor(amount, currency));
}

const FORM = `<form method="post">
<button type="submit" name="action" value="pay">Pay</button>
<button type="submit" name="action" value="cancel">Cancel</button>
</form>`;

/** The test payment page: plain HTML, no script, nothing loaded from elsewhere. */
function renderTestPayment(checkout: CheckoutRow, status: CheckoutStatus): string {
  const credits = toCredits(checkout.creditsMicro).toLocaleString('en', { maximumFractionDigits: 6 });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Parley test payment</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 24rem; margin: 15vh auto; padding: 0 1rem }
button { font: inherit; padding: .5rem 1.5rem; margin: .5rem .5rem 0 0 }
</style>
</head>
<body>
<h1>Test payment</h1>
<p>${escape(credits)} credits for ${escape(priceText(checkout))}. No money is taken.</p>
${status === 'open' ? FORM : `<p role="status">${NOTICES[status]}</p>`}
</body>
</html>
`;
}

/** Below `/platform/v1`; followed by the checkout's id. */
const TEST_PAYMENT_PATH = '/billing/test_payment';

/** Takes no money: a page of this service stands in for the payment provider (`PAYMENTS=test`). */
export function createTestPayment(): Payment {
  return {
    name: 'test',
    open: ({ _id, expiresAt }, origin) =>
      Promise.resolve({ url: `${origin}/platform/v1${TEST_PAYMENT_PATH}/${_id}`, expiresAt }),
  };
}

export interface TestPaymentDeps {
  checkouts: CheckoutRepository;
  bookPayment: BookPayment;
  clock: Clock;
}

function actionIn(body: unknown): 'pay' | 'cancel' {
  const action: unknown = typeof body === 'object' && body !== null && 'action' in body ? body.action : undefined;
  if (action === 'pay' || action === 'cancel') return action;
  throw new ServiceError('invalid_request', '`action` must be pay or cancel.', { param: 'action' });
}

function setSafeHeaders(res: Response): void {
  setAddressHeaders(res);
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Referrer-Policy', 'no-referrer');
  res.setHeader('Cache-Control', 'no-store');
}

function sendPage(res: Response, checkout: CheckoutRow, status: CheckoutStatus, code = 200): void {
  setSafeHeaders(res);
  res.setHeader('Content-Security-Policy', testPaymentPolicy(checkout));
  res.status(code).type('html').send(renderTestPayment(checkout, status));
}

/** The page that pays or cancels a test payment, once. Knowing its unguessable id is the permission. */
export function createTestPaymentRoute({ checkouts, bookPayment, clock }: TestPaymentDeps): Router {
  async function find(req: Request): Promise<CheckoutRow> {
    const checkout = await checkouts.findAny(readParam(req, 'checkoutId'));
    if (checkout?.payment === 'test') return checkout;
    throw new ServiceError('not_found', 'There is no checkout with this id.');
  }

  /** Pressing the same button twice has the same result as pressing it once. */
  async function act(checkout: CheckoutRow, action: 'pay' | 'cancel', requestId: string): Promise<boolean> {
    const checkoutId = checkout._id;
    if (action === 'pay') await bookPayment.complete({ checkoutId, onlyOpen: true }, requestId);
    else if (checkoutStatus(checkout, clock.now()) === 'open') await checkouts.cancel(checkoutId);
    const now = await checkouts.findAny(checkoutId);
    return now?.status === (action === 'pay' ? 'completed' : 'cancelled');
  }

  const router = Router();
  router
    .route(`${TEST_PAYMENT_PATH}/:checkoutId`)
    .get(async (req, res) => {
      const checkout = await find(req);
      sendPage(res, checkout, checkoutStatus(checkout, clock.now()));
    })
    .post(readForm(), async (req, res) => {
      const checkout = await find(req);
      const action = actionIn(req.body);
      if (await act(checkout, action, contextOf(res).requestId)) {
        setSafeHeaders(res);
        res.redirect(303, action === 'pay' ? checkout.successUrl : checkout.cancelUrl);
        return;
      }
      const after = await find(req);
      sendPage(res, after, checkoutStatus(after, clock.now()), 409);
    })
    .all(methodNotAllowed('GET', 'POST'));
  return router;
}
