import type { Connection, Model } from 'mongoose';

import { filterOf } from '../collection.ts';
import type { RowFilter } from '../collection.ts';
import { prefixOf } from '../credentials.ts';
import type { CredentialCipher } from '../credentials.ts';
import { providerModel } from '../routing/provider-repository.ts';
import { webhookModel } from '../webhooks/webhook-repository.ts';
import { serviceSecretModel } from './service-secrets.ts';

/** Counts rows by the key that encrypted their secrets. */
interface CredentialCount {
  current: string;
  keys: { id: string; rows: number }[];
  /** Earlier versions named no key; other keys are not known here. */
  others: number;
}

export type CredentialRotation = ReturnType<typeof createCredentialRotation>;

const PAGE_ROWS = 200;

interface Holder {
  count(filter: 'all' | RegExp): Promise<number>;
  /** Ids of rows after `after` with a secret that lacks the prefix. */
  stale(current: RegExp, after: string): Promise<string[]>;
  /** False: the row has changed meanwhile. Throws where a secret cannot be decrypted. */
  renew(id: string): Promise<boolean>;
}

function holder<Row extends { _id: string }>(
  rows: Model<Row>,
  filters: { all: RowFilter<Row>; of: (prefix: RegExp) => RowFilter<Row>; stale: (prefix: RegExp) => RowFilter<Row> },
  renew: Holder['renew'],
): Holder {
  return {
    renew,
    count: (filter) => rows.countDocuments(filterOf(filter === 'all' ? filters.all : filters.of(filter))),
    async stale(current, after) {
      const found: unknown = await rows
        .find(filterOf({ $and: [{ _id: { $gt: after } }, filters.stale(current)] }), { _id: 1 })
        .sort({ _id: 1 })
        .limit(PAGE_ROWS)
        .lean();
      // lean() of a generic model has a type that TypeScript cannot resolve.
      return (found as { _id: string }[]).map(({ _id }) => _id);
    },
  };
}

/** Encrypts a secret with the current key for `place`, where it is stored. */
type Again = (encrypted: string, place: string) => string;

function holdWebhooks(connection: Connection, again: Again): Holder {
  const webhooks = webhookModel(connection);
  return holder(
    webhooks,
    {
      all: {},
      of: (prefix) => ({ encryptedSecret: prefix }),
      stale: (prefix) => ({
        $or: [
          { encryptedSecret: { $not: prefix } },
          { previousSecrets: { $elemMatch: { encrypted: { $not: prefix } } } },
        ],
      }),
    },
    async (_id) => {
      const row = await webhooks.findById(_id).lean();
      if (row === null) return false;
      const { encryptedSecret, previousSecrets } = row;
      const place = `webhooks/${_id}`;
      const previous = previousSecrets?.map((one) => ({ ...one, encrypted: again(one.encrypted, place) }));
      const $set = {
        encryptedSecret: again(encryptedSecret, place),
        ...(previous === undefined ? {} : { previousSecrets: previous }),
      };
      // A change of the previous secrets changes the secret as well.
      return (await webhooks.updateOne({ _id, encryptedSecret }, { $set })).modifiedCount === 1;
    },
  );
}

function createHolders(connection: Connection, cipher: CredentialCipher): Holder[] {
  const providers = providerModel(connection);
  const secrets = serviceSecretModel(connection);
  const again: Again = (encrypted, place) => cipher.encrypt(cipher.decrypt(encrypted, place), place);

  return [
    holder(
      providers,
      {
        all: { encryptedApiKey: { $exists: true } },
        of: (prefix) => ({ encryptedApiKey: prefix }),
        stale: (prefix) => ({ encryptedApiKey: { $exists: true, $not: prefix } }),
      },
      async (_id) => {
        const { encryptedApiKey } = (await providers.findById(_id).lean()) ?? {};
        if (encryptedApiKey === undefined) return false;
        const $set = { encryptedApiKey: again(encryptedApiKey, `providers/${_id}`) };
        return (await providers.updateOne({ _id, encryptedApiKey }, { $set })).modifiedCount === 1;
      },
    ),
    holdWebhooks(connection, again),
    holder(
      secrets,
      { all: {}, of: (prefix) => ({ encrypted: prefix }), stale: (prefix) => ({ encrypted: { $not: prefix } }) },
      async (_id) => {
        const { encrypted } = (await secrets.findById(_id).lean()) ?? {};
        if (encrypted === undefined) return false;
        const $set = { encrypted: again(encrypted, `service_secrets/${_id}`) };
        return (await secrets.updateOne({ _id, encrypted }, { $set })).modifiedCount === 1;
      },
    ),
  ];
}

export function createCredentialRotation(connection: Connection, cipher: CredentialCipher) {
  const holders = createHolders(connection, cipher);
  const prefixPattern = (keyId: string) => new RegExp(`^${prefixOf(keyId)}`);
  const sum = async (counts: Promise<number>[]) => (await Promise.all(counts)).reduce((total, one) => total + one, 0);

  return {
    async count(): Promise<CredentialCount> {
      const [current] = cipher.keyIds;
      const all = await sum(holders.map((one) => one.count('all')));
      const keys = await Promise.all(
        cipher.keyIds.map(async (id) => ({ id, rows: await sum(holders.map((one) => one.count(prefixPattern(id)))) })),
      );
      return { current, keys, others: all - keys.reduce((total, { rows }) => total + rows, 0) };
    },

    /**
     * Re-encrypts with the current key row by row, only rows that have not changed meanwhile. Safe to repeat and to run
     * twice at once. `unreadable`: ids of rows that no known key decrypts.
     */
    async rotate(): Promise<{ rotated: number; remaining: number; unreadable: string[] }> {
      const current = prefixPattern(cipher.keyIds[0]);
      const result = { rotated: 0, remaining: 0, unreadable: [] as string[] };
      for (const { stale, renew } of holders) {
        for (let ids = await stale(current, ''); ids.length > 0; ids = await stale(current, ids.at(-1) ?? '')) {
          for (const id of ids) {
            const renewed = await renew(id).catch(() => undefined);
            if (renewed === true) result.rotated += 1;
            else result.remaining += 1;
            if (renewed === undefined) result.unreadable.push(id);
          }
        }
      }
      return result;
    },
  };
}
