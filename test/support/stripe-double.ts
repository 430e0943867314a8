import request from 'supertest';
import Stripe from 'stripe';

import type { TestService } from './service.ts';
import { startScriptedServer } from './scripted-server.ts';

const WEBHOOK_SECRET = 'whsec_of_the_tests';

/** The settings with which a service uses the double. */
export const STRIPE_ENV = { STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET };

interface StripeSession {
  id: string;
  /** As the service has sent them, form-encoded. */
  fields: Record<string, string>;
  expiresAt: number;
}

/** Stripe's API as far as checkouts go, over HTTP: one session for each idempotency key. */
export interface StripeDouble {
  url: string;
  sessions: StripeSession[];
  /** The session of a checkout as Stripe's events carry it once it is paid; `more` replaces fields. */
  paid(checkoutId: string, more?: object): object;
  /** How often the API was called. */
  calls(): number;
  /** The next call is carried out, but its answer is cut off. */
  loseNextAnswer(): void;
  /** Every call fails from now on; undefined: none. */
  refuse(refusal: { status: number; error: object } | undefined): void;
  close(): Promise<void>;
}

export async function startStripeDouble(): Promise<StripeDouble> {
  const server = await startScriptedServer();
  const byKey = new Map<string, StripeSession>();
  let isLost = false;
  let refusal: { status: number; error: object } | undefined;

  function sessionFor(key: string, body: string): StripeSession {
    const known = byKey.get(key);
    if (known !== undefined) return known;
    const session = {
      id: `cs_test_${byKey.size + 1}${key}`,
      fields: Object.fromEntries(new URLSearchParams(body)),
      expiresAt: Math.floor(Date.now() / 1000) + 3_600,
    };
    byKey.set(key, session);
    return session;
  }

  /** Stripe copies the metadata of a session's payment to the payment, whose id the tests derive from the checkout's. */
  function findPayment(url: string): object | undefined {
    const id = /^\/v1\/payment_intents\/(pi_\w+)$/.exec(url)?.[1];
    const session = [...byKey].find(([checkoutId]) => id === `pi_${checkoutId}`)?.[1];
    if (id === undefined || session === undefined) return undefined;
    const checkoutId = session.fields['payment_intent_data[metadata][checkout_id]'];
    return { id, object: 'payment_intent', metadata: { checkout_id: checkoutId } };
  }

  server.answer((res, req) => {
    const body = server.requests.at(-1)?.body ?? '';
    res.setHeader('Content-Type', 'application/json');
    if (refusal !== undefined) {
      res.writeHead(refusal.status).end(JSON.stringify({ error: refusal.error }));
      return;
    }
    const payment = req.method === 'GET' ? findPayment(req.url ?? '') : undefined;
    if (payment !== undefined) {
      res.end(JSON.stringify(payment));
      return;
    }
    if (req.method !== 'POST' || req.url !== '/v1/checkout/sessions') {
      res.writeHead(404).end(JSON.stringify({ error: { type: 'invalid_request_error', code: 'resource_missing' } }));
      return;
    }
    const { id, expiresAt } = sessionFor(String(req.headers['idempotency-key']), body);
    if (isLost) {
      isLost = false;
      res.destroy();
      return;
    }
    const url = `https://checkout.stripe.test/${id}`;
    res.end(JSON.stringify({ id, object: 'checkout.session', url, expires_at: expiresAt }));
  });

  return {
    url: server.url,
    get sessions() {
      return [...byKey.values()];
    },
    paid(checkoutId, more = {}) {
      const unknown: Pick<StripeSession, 'id' | 'fields'> = { id: 'cs_test_unknown', fields: {} };
      const { id, fields } = byKey.get(checkoutId) ?? unknown;
      return {
        id,
        object: 'checkout.session',
        mode: fields['mode'] ?? 'payment',
        livemode: false,
        client_reference_id: checkoutId,
        metadata: { checkout_id: fields['metadata[checkout_id]'] ?? checkoutId },
        amount_total: Number(fields['line_items[0][price_data][unit_amount]'] ?? 0),
        currency: fields['line_items[0][price_data][currency]'] ?? 'eur',
        payment_status: 'paid',
        payment_intent: `pi_${checkoutId}`,
        ...more,
      };
    },
    calls: () => server.requests.length,
    loseNextAnswer: () => (isLost = true),
    refuse: (next) => (refusal = next),
    close: () => server.close(),
  };
}

let lastEvent = 0;

export interface StripeEvent {
  id: string;
  type: string;
  object: object;
}

export function eventOf(type: string, object: object): StripeEvent {
  lastEvent += 1;
  return { id: `evt_${process.pid}_${lastEvent}`, type, object };
}

const { webhooks } = new Stripe('sk_test_1');

interface Signing {
  secret?: string;
  ageSeconds?: number;
}

/** Sends any text as Stripe sends an event, signed now with the service's secret unless told otherwise. */
export async function callBackWith(
  { app }: Pick<TestService, 'app'>,
  payload: string,
  { secret = WEBHOOK_SECRET, ageSeconds = 0 }: Signing = {},
): Promise<request.Response> {
  const timestamp = Math.floor(Date.now() / 1000) - ageSeconds;
  return request(app)
    .post('/platform/v1/billing/stripe/webhook')
    .type('json')
    .set('Stripe-Signature', webhooks.generateTestHeaderString({ payload, secret, timestamp }))
    .send(payload);
}

/** Sends an event as Stripe does. */
export async function callBack(
  service: Pick<TestService, 'app'>,
  { id, type, object }: StripeEvent,
  signing: Signing = {},
): Promise<request.Response> {
  return callBackWith(service, JSON.stringify({ id, object: 'event', type, data: { object } }), signing);
}
