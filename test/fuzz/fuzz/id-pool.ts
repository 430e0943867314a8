import type { Chance } from '../../support/chance.ts';

/** Of each kind so many ids are kept. */
const KEPT_MAX = 40;

/** Ids of things that a tenant has, by the names of path parameters: `key_id`. */
export interface IdPool {
  /** Notes what a call has made. */
  note(parameter: string, id: string): void;
  pick(chance: Chance, parameter: string): string | undefined;
}

export function createIdPool(): IdPool {
  const ids = new Map<string, string[]>();
  return {
    note(parameter, id) {
      const known = ids.get(parameter) ?? [];
      ids.set(parameter, [...known.slice(1 - KEPT_MAX), id]);
    },
    pick(chance, parameter) {
      const known = ids.get(parameter) ?? [];
      return known.length === 0 ? undefined : chance.pick(known);
    },
  };
}

/** The parameter that stands for a thing, by the `object` of its answer. */
const PARAMETERS: Readonly<Record<string, string>> = {
  api_key: 'key_id',
  batch: 'batch_id',
  'compliance.export': 'export_id',
  'compliance.deletion': 'deletion_id',
  entity: 'entity_id',
  webhook: 'webhook_id',
  'webhook.delivery': 'delivery_id',
  'billing.checkout': 'checkout_id',
  'chat.completion': 'request_id',
  'chat.request': 'request_id',
};

/** Which path parameter an answer gives a value for. */
export function namedBy(answer: { object?: unknown; id?: unknown }): { parameter: string; id: string } | undefined {
  const { object, id } = answer;
  const parameter = typeof object === 'string' ? PARAMETERS[object] : undefined;
  return parameter === undefined || typeof id !== 'string' ? undefined : { parameter, id };
}
