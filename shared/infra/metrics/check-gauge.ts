import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';

export interface CheckGauges {
  /** What `/health/ready` asks, by name: `ok`, or what is wrong. */
  checks: () => Promise<Readonly<Record<string, string>>>;
}

/**
 * Tells operators which store is away: errors and queues that show nothing look the same for each. The page takes as
 * long as the slowest check then.
 */
export function gaugeChecks(registers: Registry[], { checks }: CheckGauges): void {
  new Gauge({
    name: 'parley_check_passes',
    help: 'The checks of /health/ready by name (redis, mongo; work: a worker is given what waits): 1 passes, 0 fails.',
    labelNames: ['check'],
    registers,
    async collect() {
      for (const [check, state] of Object.entries(await checks())) this.set({ check }, Number(state === 'ok'));
    },
  });
}
