import express, { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';

import type { Payment } from '../payment.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type {
  CheckoutRepository,
  CheckoutRow,
  CheckoutStatus,
} from '../../../shared/infra/mongo/accounts/checkout-repository.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import { setAddressHeaders } from '../../admission/limit-headers.ts';
import { methodNotAllowed } from '../../http/error-handler.ts';
import { contextOf } from '../../http/request-context.ts';
import type { BookPayment } from '../book-payment.ts';
import { checkoutStatus } from '../../resources/billing/billing-resource.ts';
import { readParam } from '../../contract/path-parameters.ts';
import { renderTestPayment, testPaymentPolicy } from './page.ts';

/** Below `/platform/v1`; followed by the checkout's id. */
const TEST_PAYMENT_PATH = '/billing/test_payment';

/** Takes no money: a page of this service stands for the payment (`PAYMENTS=test`). */
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

/** The form has one short field, and it is read from strangers. */
const FORM_BYTES_MAX = 1_024;

function readForm(): RequestHandler {
  const read: RequestHandler = express.urlencoded({ extended: false, limit: FORM_BYTES_MAX });
  return (req, res, next) => {
    read(req, res, (cause?: unknown) => {
      if (cause === undefined) next();
      else next(new ServiceError('invalid_request', 'The form could not be read.', { cause }));
    });
  };
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

/** The page on which a test payment is paid or cancelled, once; whoever knows the unguessable id may. */
export function createTestPaymentRoute({ checkouts, bookPayment, clock }: TestPaymentDeps): Router {
  async function find(req: Request): Promise<CheckoutRow> {
    const checkout = await checkouts.findAny(readParam(req, 'checkoutId'));
    if (checkout?.payment === 'test') return checkout;
    throw new ServiceError('not_found', 'There is no checkout with this id.');
  }

  /** A second press of the same button ends where the first one did. */
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
