import type { Cluster, Redis } from 'ioredis';

import { repeat } from '../../lifecycle/repeat.ts';
import type { Repeating } from '../../lifecycle/repeat.ts';
import { mastersBySlot, nameOf } from './cluster-slots.ts';
import { inTime } from './timing.ts';

const LOOK_EVERY_MS = 250;
/** A master that is away for longer may stay away, and its cluster is asked less often. */
const LONG_MS = 30_000;
const LOOK_SELDOM_MS = 1_000;
const ANSWER_MS = 1_000;

/** Slots whose master left at the same time. */
interface Outage {
  slots: Set<number>;
  goneAt: number;
}

export interface MasterOutages {
  /** Whether a slot, or any of them, has no master that answers. */
  isAway(slot: number | undefined): boolean;
  stop(): void;
}

/**
 * A cluster client stays `ready` while one of its masters is replaced or gone, and the slots of the other masters go on. A slot
 * is away from the moment at which the connection to its master ends, or at which it has another master, and back when its
 * master answers. `onBack` hears of slots that are back, and for how long they were away at the most.
 */
export function watchMasters(
  cluster: Cluster,
  onBack: (slots: ReadonlySet<number>, awayMs: number) => void,
): MasterOutages {
  /** As of the latest refresh: between two, a redirection changes what the client says of other slots, too. */
  let masters = mastersBySlot(cluster);
  const outages = new Set<Outage>();
  let looking: Repeating | undefined;
  let isStopped = false;

  const isOpen = (slot: number) => [...outages].some(({ slots }) => slots.has(slot));

  function begin(isGone: (master: string, slot: number) => boolean): void {
    if (isStopped) return;
    const slots = new Set<number>();
    masters.forEach((master, slot) => {
      if (isGone(master, slot) && !isOpen(slot)) slots.add(slot);
    });
    if (slots.size === 0) return;
    outages.add({ slots, goneAt: performance.now() });
    looking ??= repeat(look, pauseMs, () => undefined);
  }

  /** The shortest one decides: a master that was lost just then is about to be replaced. */
  function pauseMs(): number {
    const isLong = [...outages].every(({ goneAt }) => performance.now() - goneAt > LONG_MS);
    return isLong ? LOOK_SELDOM_MS : LOOK_EVERY_MS;
  }

  async function isMaster(name: string): Promise<boolean> {
    const node = cluster.nodes('master').find((each) => nameOf(each) === name);
    const info = await inTime(node?.info('replication') ?? Promise.resolve(''), ANSWER_MS).catch(() => '');
    return info.includes('role:master');
  }

  async function look(): Promise<void> {
    const names = new Set([...outages].flatMap(({ slots }) => [...slots].map((slot) => masters[slot] ?? '')));
    const answers = await Promise.all([...names].map(async (name) => ((await isMaster(name)) ? [name] : [])));
    const living = new Set(cluster.status === 'ready' ? answers.flat() : []);
    for (const outage of isStopped ? [] : outages) end(outage, living);
    if (outages.size > 0) cluster.refreshSlotsCache();
    else stopLooking();
  }

  function end(outage: Outage, living: ReadonlySet<string>): void {
    const back = new Set([...outage.slots].filter((slot) => living.has(masters[slot] ?? '')));
    if (back.size === 0) return;
    for (const slot of back) outage.slots.delete(slot);
    if (outage.slots.size === 0) outages.delete(outage);
    onBack(back, performance.now() - outage.goneAt);
  }

  function stopLooking(): void {
    void looking?.stop();
    looking = undefined;
  }

  cluster.on('-node', (node: Redis) => {
    if (node.options.readOnly !== true) begin((master) => master === nameOf(node));
  });
  cluster.on('refresh', () => {
    const before = masters;
    masters = mastersBySlot(cluster);
    begin((master, slot) => before[slot] !== undefined && before[slot] !== master);
  });
  return {
    isAway: (slot) => cluster.status !== 'ready' || (slot === undefined ? outages.size > 0 : isOpen(slot)),
    stop() {
      isStopped = true;
      stopLooking();
    },
  };
}
