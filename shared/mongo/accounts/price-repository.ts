import type { Connection } from 'mongoose';

import { collection } from '../collection.ts';

export interface PackageRow {
  id: string;
  name: string;
  creditsMicro: number;
  amount: number;
  createdAt: number;
  expiresAt?: number;
}

/** The only row has the `_id` `current`. */
export interface PriceListRow {
  _id: string;
  currency: string;
  /** Minor units for a million credits; null: only packages are sold. */
  pricePerMillion: number | null;
  packages: PackageRow[];
  updatedAt: number;
}

export const priceListModel = collection<PriceListRow>('price_lists');

const CURRENT = 'current';

/** `updatedAt` is missing until an administrator sets the prices. */
export type PriceList = Omit<PriceListRow, '_id' | 'updatedAt'> & { updatedAt?: number };

export type NewPriceList = Omit<PriceListRow, '_id' | 'updatedAt' | 'packages'> & {
  packages: Omit<PackageRow, 'createdAt'>[];
};

export type PriceRepository = ReturnType<typeof createPriceRepository>;

/** `unset` holds until an administrator has put a list. */
export function createPriceRepository(connection: Connection, unset: PriceList) {
  const priceLists = priceListModel(connection);

  async function current(): Promise<PriceList> {
    return (await priceLists.findById(CURRENT).lean()) ?? unset;
  }
  return {
    current,

    /** Replaces the whole list; a package keeps the time at which its id was first used. */
    async put({ packages, ...prices }: NewPriceList, now: number): Promise<PriceList> {
      const before = new Map((await current()).packages.map(({ id, createdAt }) => [id, createdAt]));
      const list = {
        ...prices,
        packages: packages.map((each) => ({ ...each, createdAt: before.get(each.id) ?? now })),
        updatedAt: now,
      };
      await priceLists.replaceOne({ _id: CURRENT }, { _id: CURRENT, ...list }, { upsert: true });
      return list;
    },
  };
}
