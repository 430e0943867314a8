import type { KeyMode, SearchedSpace, Space } from '../../contracts/space.ts';

/**
 * The mode of a row that belongs to one space. Only test rows have it in collections that are older than spaces: what
 * was stored before is live without being rewritten, and a unique index takes an old live row and a new one for the same.
 */
export interface RowOfSpace {
  tenantId: string;
  mode?: KeyMode;
}

/** The filter of a space's rows, and the only place that knows how a row says its mode. */
export function inSpace({ tenantId, mode }: SearchedSpace): {
  tenantId: string;
  mode?: 'test' | { $in: ('live' | null)[] };
} {
  if (mode === 'any') return { tenantId };
  // `null` is what has no mode. By `$ne` or `$exists` the stand-in for MongoDB would read the whole collection.
  return { tenantId, mode: mode === 'test' ? 'test' : { $in: [null, 'live'] } };
}

/** What a new row stores of its space. */
export function spaceFields({ tenantId, mode }: Space): RowOfSpace {
  return mode === 'test' ? { tenantId, mode } : { tenantId };
}
