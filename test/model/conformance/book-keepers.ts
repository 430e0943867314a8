import { ALL_GUARDS, publish, settle } from '../lifecycle.ts';
import type { Book } from '../lifecycle.ts';
import { isReadable } from '../../../shared/requests/outbox.ts';
import type { OutboxEntry } from '../../../shared/requests/outbox.ts';
import type { Fault, TwoWorlds } from './two-worlds.ts';

const GRANTED_LATER = 500;

interface Settler {
  phase: 'read' | 'commit' | 'publish' | 'acknowledge';
  entries: OutboxEntry[];
  result: Pick<Book, 'balance' | 'version'>;
}

const NOTHING_READ: Settler = { phase: 'read', entries: [], result: { balance: 0, version: 0 } };

export interface BookKeepers {
  /** One step of a settlement leader; for a moment there may be two. */
  settle(leader: number, fault: Fault): Promise<void>;
  /** One step of a grant. */
  grant(fault: Fault): Promise<void>;
  /** All of them start again. */
  restart(): void;
}

/** Who writes the book, which here is the model's own: only what they do to Redis is compared. */
export function createBookKeepers(worlds: TwoWorlds): BookKeepers {
  const { lab, shard, tenantId } = worlds;
  const settlers = [{ ...NOTHING_READ }, { ...NOTHING_READ }];
  const grant = { phase: 'commit', result: { balance: 0, version: 0 } };

  async function publishBoth(result: Pick<Book, 'balance' | 'version'>, ids: string[], fault: Fault): Promise<void> {
    if (fault === 'lost') lab.sendNextTwice();
    const { balance: balanceMicro, version } = result;
    await lab.accounts.publishBalance(shard, tenantId, { balanceMicro, version, tokensByMonth: {} }, ids);
    worlds.account = publish(worlds.account, result, ids, ALL_GUARDS);
  }

  async function stepSettler(settler: Settler, fault: Fault): Promise<void> {
    if (fault === 'crash') {
      Object.assign(settler, NOTHING_READ);
      return;
    }
    const ids = settler.entries.map(({ record }) => record?.requestId ?? '');
    switch (settler.phase) {
      case 'read':
        settler.entries = await lab.outbox.read(shard, 'redelivered', 10);
        if (settler.entries.length === 0) settler.entries = await lab.outbox.read(shard, 'new', 10);
        if (settler.entries.length > 0) settler.phase = 'commit';
        return;
      case 'commit': {
        const charges = settler.entries.map(({ record }, index) => ({
          requestId: ids[index] ?? '',
          cost: record?.costMicro ?? NaN,
        }));
        worlds.book = settle(worlds.book, charges, ALL_GUARDS);
        settler.result = { balance: worlds.book.balance, version: worlds.book.version };
        settler.phase = 'publish';
        return;
      }
      case 'publish':
        await publishBoth(settler.result, ids, fault);
        settler.phase = 'acknowledge';
        return;
      case 'acknowledge':
        await lab.outbox.acknowledge(shard, settler.entries.filter(isReadable));
        worlds.outbox = worlds.outbox.filter(({ requestId }) => !ids.includes(requestId));
        Object.assign(settler, NOTHING_READ);
    }
  }

  /** Another writer of the book, whose publication may come late. */
  async function stepGrant(fault: Fault): Promise<void> {
    if (grant.phase === 'commit') {
      worlds.book = { ...worlds.book, balance: worlds.book.balance + GRANTED_LATER, version: worlds.book.version + 1 };
      grant.result = { balance: worlds.book.balance, version: worlds.book.version };
      grant.phase = 'publish';
    } else if (grant.phase === 'publish') {
      await publishBoth(grant.result, [], fault);
      grant.phase = 'over';
    }
  }

  return {
    async settle(leader, fault) {
      const settler = settlers[leader % settlers.length];
      if (settler !== undefined) await stepSettler(settler, fault);
    },
    grant: stepGrant,
    restart() {
      for (const settler of settlers) Object.assign(settler, NOTHING_READ);
    },
  };
}
