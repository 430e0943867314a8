import request from 'supertest';

import type { TestService } from './service.ts';
import { apiOf } from './tenant-api.ts';
import type { CallApi } from './tenant-api.ts';
import { waitFor } from './wait-for.ts';
import { unzip } from './zip.ts';

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

/** The files of a new export. */
export async function filesOf({ app }: TestService, key: string, subject: object): Promise<Map<string, Buffer>> {
  const api = apiOf({ app }, key);
  const { body } = await api('post', '/compliance/exports', subject);
  const { id } = await jobOf(api, 'exports', String(body.id));
  const path = `/platform/v1/compliance/exports/${id}/download`;
  const archive = await request(app).get(path).auth(key, { type: 'bearer' }).responseType('blob');
  return unzip(archive.body as Buffer);
}
