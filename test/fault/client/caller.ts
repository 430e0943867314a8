import type { ClientRequest, Reading } from '../checker/evidence.ts';
import { canaryOf, promptOf } from '../checker/canaries.ts';
import { requestIdOf } from '../checker/requests-by-id.ts';
import { openReading } from '../../support/stream-client.ts';
import type { LeaveAt, OpenReading } from '../../support/stream-client.ts';

/** A tenant of the experiment, with a key. */
export interface Tenant {
  tenantId: string;
  keyId: string;
  key: string;
}

export interface Call {
  /** Base URL of an ingress, without a path. */
  url: string;
  tenant: Tenant;
  /** Default: true. */
  stream?: boolean;
  /** Of the prompt. Default: 40. */
  words?: number;
  /** Whether the provider gives the prompt back. Default: true. */
  isEchoed?: boolean;
  model?: 'mobius' | 'oloid';
  /** More fields of the body. */
  body?: Record<string, unknown>;
  idempotencyKey?: string;
  leaveAt?: LeaveAt;
  /** The prompt and canary of an earlier request, for a second call of the same. */
  like?: SentRequest;
}

export interface SentRequest extends Pick<OpenReading, 'head' | 'ended' | 'leave'>, ClientRequest {
  readings: Reading[];
  tenant: Tenant;
  prompt: string;
  /** The request id, once a head has told it. */
  id(): string;
  /** The latest reading. */
  last(): Reading;
  /** Sequence number of the last event that the client has. */
  lastSeq(): number;
}

/** The clients of an experiment; everything they send and hear is written down. */
export interface Caller {
  requests: readonly SentRequest[];
  /** Posts a chat request; resolves nothing, see `head` and `ended` of what it returns. */
  send(call: Call): SentRequest;
  /** Sends the same POST again, for a client that does not know whether the first one arrived. */
  repeat(sent: SentRequest, call: Call): OpenReading;
  /** Reads the request's stream on, behind the last event that the client has, and writes it down. */
  resume(sent: SentRequest, url: string, leaveAt?: LeaveAt): OpenReading;
  /** Reads a stream from its start, written down nowhere. */
  reread(sent: SentRequest, url: string): Promise<Reading>;
  /** Cuts every connection that is open. */
  leaveAll(): void;
}

const WORDS_DEFAULT = 40;

function headersOf({ key }: Tenant, more: Record<string, string | undefined>): Record<string, string> {
  const headers: Record<string, string> = { Authorization: `Bearer ${key}` };
  for (const [name, value] of Object.entries(more)) if (value !== undefined) headers[name] = value;
  return headers;
}

function openPost(call: Call, prompt: string): OpenReading {
  const { url, tenant, stream = true, model, body = {}, idempotencyKey, leaveAt } = call;
  return openReading(
    {
      method: 'POST',
      url: `${url}/platform/v1/chat${stream ? '/stream' : ''}`,
      headers: headersOf(tenant, { 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey }),
      body: JSON.stringify({ messages: [{ role: 'user', content: prompt }], model, ...body }),
    },
    leaveAt,
  );
}

export function createCaller(): Caller {
  const requests: SentRequest[] = [];
  const open = new Set<OpenReading>();

  function track(opened: OpenReading): OpenReading {
    open.add(opened);
    void opened.ended.then(() => open.delete(opened));
    return opened;
  }

  function openStream({ tenant, id }: SentRequest, url: string, lastEventId: number, leaveAt?: LeaveAt): OpenReading {
    const headers = headersOf(tenant, { 'Last-Event-ID': lastEventId === 0 ? undefined : String(lastEventId) });
    const target = `${url}/platform/v1/chat/stream/${id()}`;
    return track(openReading({ method: 'GET', url: target, headers, body: undefined }, leaveAt));
  }

  return {
    requests,
    send(call) {
      const { tenant, stream = true, words = WORDS_DEFAULT, isEchoed = true, like } = call;
      const canary = like?.canary ?? canaryOf(requests.length);
      const prompt = like?.prompt ?? promptOf(canary, words);
      const opened = track(openPost(call, prompt));
      const readings = [opened.reading];
      const sent: SentRequest = {
        canary,
        prompt,
        tenant,
        stream,
        readings,
        expectedText: isEchoed ? prompt : undefined,
        tenantId: tenant.tenantId,
        head: opened.head,
        ended: opened.ended,
        leave: opened.leave,
        id: () => requestIdOf(sent),
        last: () => readings.at(-1) ?? opened.reading,
        lastSeq: () => readings.findLast(({ events }) => events.length > 0)?.events.at(-1)?.seq ?? 0,
      };
      requests.push(sent);
      return sent;
    },
    repeat(sent, call) {
      const opened = track(openPost(call, sent.prompt));
      sent.readings.push(opened.reading);
      return opened;
    },
    resume(sent, url, leaveAt) {
      const opened = openStream(sent, url, sent.lastSeq(), leaveAt);
      sent.readings.push(opened.reading);
      return opened;
    },
    reread: (sent, url) => openStream(sent, url, 0).ended,
    leaveAll() {
      for (const opened of open) opened.leave();
    },
  };
}
