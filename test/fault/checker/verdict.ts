/** One promise and everything that speaks against it. */
export interface Verdict {
  /** "I1", or the experiment's own words. */
  name: string;
  faults: readonly string[];
}

/** Longer lists would bury what they show. */
const SHOWN_MAX = 5;

export function renderFaults({ name, faults }: Verdict): string[] {
  const more = faults.length > SHOWN_MAX ? [`${name}: and ${faults.length - SHOWN_MAX} more`] : [];
  return [...faults.slice(0, SHOWN_MAX).map((fault) => `${name}: ${fault}`), ...more];
}
