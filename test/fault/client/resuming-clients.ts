import { range } from '../experiments/findings.ts';
import type { Ingress, Lab } from '../lab/lab.ts';
import type { Caller, SentRequest, Tenant } from './caller.ts';

const TRIES = 10;

interface Conversation {
  tenant: Tenant;
  /** Of the prompt; the lab's own number where it is left out. */
  words?: number;
}

/** Sends one request as a client that resumes does: whatever happens to its connection, it goes on elsewhere. */
async function converse(
  caller: Caller,
  conversation: Conversation,
  number: number,
  anyUrl: () => string,
): Promise<SentRequest> {
  const call = () => ({ url: anyUrl(), ...conversation, idempotencyKey: `turn-${number}` });
  const sent = caller.send(call());
  await sent.ended;
  for (let tries = 0; tries < TRIES && sent.last().finishReason === undefined; tries += 1) {
    const { status } = sent.last();
    // Before it knows the id it can only ask again; the Idempotency-Key makes that safe.
    const isKnown = sent.lastSeq() > 0;
    if (isKnown && status !== 200 && status !== 204 && status !== 0 && status < 500) break;
    await (isKnown ? caller.resume(sent, anyUrl()) : caller.repeat(sent, call())).ended;
  }
  return sent;
}

/** Clients that send one request after the other, to the ingresses of a load balancer's list in turn. */
export function startResumingClients(
  { caller, ingresses }: Pick<Lab, 'caller' | 'ingresses'>,
  count: number,
  conversation: Conversation,
) {
  let rotation: Ingress[] = [...ingresses];
  let turns = 0;
  const anyUrl = () => rotation[(turns += 1) % rotation.length]?.url ?? '';
  let isOver = false;
  let numbers = 0;
  const finished: SentRequest[] = [];
  const client = async () => {
    while (!isOver) finished.push(await converse(caller, conversation, (numbers += 1), anyUrl));
  };
  const clients = range(count, client);
  return {
    finished,
    /** Takes an ingress off the list and puts another one on it. */
    replace(old: Ingress, fresh: Ingress): void {
      rotation = [...rotation.filter(({ name }) => name !== old.name), fresh];
    },
    /** Resolves when the requests under way have ended. */
    async end(): Promise<void> {
      isOver = true;
      await Promise.all(clients);
    },
  };
}
