import type { CallApi } from './tenant-api.ts';
import { waitFor } from './wait-for.ts';

export type ComplianceResource = Record<string, unknown> & { id: string; status: string };

/** An export or a deletion, once it has ended. */
export async function jobOf(
  api: CallApi,
  kind: 'exports' | 'deletions',
  id: string,
  timeoutMs = 40_000,
): Promise<ComplianceResource> {
  return waitFor(
    async () => {
      const { body } = await api('get', `/compliance/${kind}/${id}`);
      const job = body as ComplianceResource;
      return job.status === 'completed' || job.status === 'failed' ? job : undefined;
    },
    `the end of ${id}`,
    timeoutMs,
  );
}
