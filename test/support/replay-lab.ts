import request from 'supertest';

import { chatOf, postChat, waitFor } from './chat.ts';
import type { TestService, TestTenant } from './service.ts';

export const QUESTION = 'What is left of it?';
const ASYNC = ['Prefer', 'respond-async'] as const;

/** The answer of `POST /admin/v1/requests/replay`. */
interface Replay {
  replayed: number;
  skipped: number;
  matched: number;
  skipped_reasons: { reason: string; count: number }[];
  data: { id: string; kind: string | null; error_code: string | null; outcome: string; reason: string | null }[];
  retry_after_seconds: number | null;
  next_page: string | null;
}

interface FailedRequest {
  id: string;
  /** The 202. */
  accepted: request.Response;
}

export interface ReplayLab {
  get(tenant: TestTenant, id: string): request.Test;
  /** Looks the request up until it has this status. */
  ended(tenant: TestTenant, id: string, status?: string): Promise<request.Response>;
  /** Sends an asynchronous request, whatever becomes of it. */
  send(tenant: TestTenant, content: string, more?: object): request.Test;
  /** One that an outage of its provider has failed; the outage is over afterwards. */
  failed(tenant: TestTenant, more?: object, headers?: Record<string, string>): Promise<FailedRequest>;
  replay(body: object): Promise<Replay>;
  /** Why this request was not run again; null: it was. */
  reasonOf(id: string): Promise<string | null | undefined>;
}

export function replayLab(service: TestService): ReplayLab {
  const get: ReplayLab['get'] = (tenant, id) =>
    request(service.app).get(`/platform/v1/chat/${id}`).auth(tenant.key, { type: 'bearer' });
  const send: ReplayLab['send'] = (tenant, content, more = {}) =>
    postChat(service.app, tenant.key, chatOf(content, more)).set(...ASYNC);
  const ended: ReplayLab['ended'] = (tenant, id, status = 'completed') =>
    waitFor(
      async () => {
        const response = await get(tenant, id);
        return response.body.status === status ? response : undefined;
      },
      `${id} to be ${status}`,
      20_000,
    );
  async function replay(body: object): Promise<Replay> {
    const answer = await service.admin('post', '/requests/replay', body);
    if (answer.status !== 200) throw new Error(`The replay was refused: ${answer.text}`);
    return answer.body as Replay;
  }
  return {
    get,
    ended,
    send,
    async failed(tenant, more = {}, headers = {}) {
      service.provider.change({ fail: 'status', status: 503 });
      const accepted = await send(tenant, QUESTION, more).set(headers);
      const id = String(accepted.body.id);
      await ended(tenant, id, 'failed');
      await waitFor(() => service.models.answers.findById(id).lean(), 'its end in MongoDB');
      service.provider.restore();
      service.provider.reset();
      return { id, accepted };
    },
    replay,
    reasonOf: async (id) => (await replay({ request_ids: [id] })).data[0]?.reason,
  };
}
