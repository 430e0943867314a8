import { ServiceError } from '../../shared/errors/service-error.ts';

const MEBIBYTE = 1024 * 1024;

/** How much all bodies being read may hold together (docs/spec.md#bodies). */
const TENANT_BYTES_MAX = 64 * MEBIBYTE;
const PROCESS_BYTES_MAX = 512 * MEBIBYTE;

/** A body usually arrives within seconds; a stalled one is given up after half a minute. */
const RETRY_SECONDS = 5;

/** One body's share of the budget. */
export interface BodyShare {
  /** From now on, the body holds this many bytes. Throws `model_unavailable` if there is no room for them. */
  hold(bytes: number): void;
  /** The body is no longer held. Safe to repeat. */
  close(): void;
}

/** The bytes that bodies hold while they are read, per tenant and in total. */
export interface BodyBudget {
  open(tenantId: string): BodyShare;
}

function noRoom(whose: string): ServiceError {
  return new ServiceError(
    'model_unavailable',
    `${whose} request bodies take all the room there is; try again shortly.`,
    {
      retryAfterSeconds: RETRY_SECONDS,
    },
  );
}

/** Keeps many slowly arriving bodies, of one tenant or of many, from using up the memory of the process. */
export function createBodyBudget(tenantBytesMax = TENANT_BYTES_MAX, processBytesMax = PROCESS_BYTES_MAX): BodyBudget {
  const byTenant = new Map<string, number>();
  let all = 0;

  return {
    open(tenantId) {
      let held = 0;

      function change(bytes: number): void {
        const ofTenant = (byTenant.get(tenantId) ?? 0) + bytes;
        if (ofTenant > 0) byTenant.set(tenantId, ofTenant);
        else byTenant.delete(tenantId);
        all += bytes;
        held += bytes;
      }

      return {
        hold(bytes) {
          const more = bytes - held;
          if (more > 0 && (byTenant.get(tenantId) ?? 0) + more > tenantBytesMax) throw noRoom("The account's");
          if (more > 0 && all + more > processBytesMax) throw noRoom('Other');
          change(more);
        },
        close() {
          change(-held);
        },
      };
    },
  };
}
