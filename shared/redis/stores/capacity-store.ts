import { newCapacity } from '../../domain/capacity.ts';
import type { Capacity, CapacityReport } from '../../domain/capacity.ts';
import { afterReport } from '../../domain/capacity-shares.ts';
import type { RedisClient } from '../connection.ts';
import type { Keyspace } from '../keyspace.ts';
import { createSharedStates } from './shared-states.ts';

export interface CapacityOf {
  provider: string;
  /** Undefined: the provider as a whole. */
  model: string | undefined;
}

export interface CapacitySnapshot {
  /** All times of capacities are by Redis's clock. */
  now: number;
  capacities: readonly (CapacityOf & { capacity: Capacity })[];
}

/** All workers share them. */
export type CapacityStore = ReturnType<typeof createCapacityStore>;

/** Names of providers have no spaces. */
const nameOf = ({ provider, model }: CapacityOf) => (model === undefined ? provider : `${provider} ${model}`);

/** An unreadable value counts as a new capacity. */
function parseCapacity(json: string): Capacity {
  try {
    // Only this service writes it.
    return json === '' ? newCapacity() : (JSON.parse(json) as Capacity);
  } catch {
    return newCapacity();
  }
}

function ofName(name: string): CapacityOf {
  const space = name.indexOf(' ');
  return space === -1
    ? { provider: name, model: undefined }
    : { provider: name.slice(0, space), model: name.slice(space + 1) };
}

export function createCapacityStore(client: RedisClient, keyspace: Keyspace) {
  const shared = createSharedStates(client, keyspace.capacities, parseCapacity);

  return {
    /** Renews a worker's share. `ceiling` undefined: it is found. */
    async report(
      of: CapacityOf,
      report: CapacityReport,
      ceiling: number | undefined,
    ): Promise<{ capacity: Capacity; now: number }> {
      const { state, now } = await shared.change(nameOf(of), (current, time) =>
        afterReport(current, report, ceiling, time),
      );
      return { capacity: state, now };
    },

    async readAll(): Promise<CapacitySnapshot> {
      const { now, states } = await shared.readAll();
      const sorted = [...states].sort(([one], [other]) => (one < other ? -1 : 1));
      return { now, capacities: sorted.map(([name, capacity]) => ({ ...ofName(name), capacity })) };
    },

    /** For a provider that is changed or deleted: what was found belongs to another server. */
    async forget(provider: string): Promise<void> {
      const { states } = await shared.readAll();
      // Shares stay: workers with calls in flight hold them.
      for (const name of states.keys())
        if (ofName(name).provider === provider)
          await shared.change(name, ({ shares, version }) => ({ ...newCapacity(), shares, version }));
    },
  };
}
