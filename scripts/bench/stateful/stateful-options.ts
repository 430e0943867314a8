import type { Target } from '../rivals/contenders.ts';
import type { Size } from './lab.ts';

/** Those that the benchmark starts itself. */
export const STATEFUL_SYSTEMS = ['parley', 'portkey', 'litellm'] as const;
export type StatefulSystemName = (typeof STATEFUL_SYSTEMS)[number];

export interface StatefulOptions {
  systems: StatefulSystemName[];
  /** Files that describe systems which run already. */
  adapters: string[];
  /** Systems of which only the address is known. */
  targets: Target[];
  measures: string[];
  /** Where the provider listens that all systems have to lead to; undefined: a free port. */
  providerPort: number | undefined;
  size: Size;
  isKept: boolean;
}
