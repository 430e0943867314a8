import type { Target } from '../rivals/contenders.ts';
import type { Size } from './lab.ts';

/** The systems that the benchmark starts itself. */
export const STATEFUL_SYSTEMS = ['parley', 'portkey', 'litellm'] as const;
export type StatefulSystemName = (typeof STATEFUL_SYSTEMS)[number];

export interface StatefulOptions {
  systems: StatefulSystemName[];
  /** Files that describe systems which are already running. */
  adapters: string[];
  /** Systems of which only the address is known. */
  targets: Target[];
  measures: string[];
  /** The port of the provider to which all systems must lead; undefined: any free port. */
  providerPort: number | undefined;
  size: Size;
  isKept: boolean;
}
