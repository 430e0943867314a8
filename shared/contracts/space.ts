export const KEY_MODES = ['live', 'test'] as const;
export type KeyMode = (typeof KEY_MODES)[number];

/**
 * A tenant's live things, or its test things. The two are apart (docs/spec/contract.md section 8, Test keys): whoever
 * looks for one of them says in which space.
 */
export interface Space {
  tenantId: string;
  mode: KeyMode;
}

/** Where rows are looked for; `any`: in both spaces, for those who work for the tenant as a whole. */
export interface SearchedSpace {
  tenantId: string;
  mode: KeyMode | 'any';
}

/** Whose webhooks hear of a key: live ones of every key, test ones of test keys. */
export function overseersOf(keyMode: KeyMode): SearchedSpace['mode'] {
  return keyMode === 'test' ? 'any' : 'live';
}

/** What keys of this mode oversee: live keys also the tenant's test keys and what those have used and done. */
export function overseenBy({ tenantId, mode }: Space): SearchedSpace {
  return { tenantId, mode: mode === 'live' ? 'any' : mode };
}
