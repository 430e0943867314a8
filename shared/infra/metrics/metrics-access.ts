import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';

import { bearerTokenOf, isSameSecret } from '../../domain/keys/bearer-token.ts';

export interface MetricsAccess {
  /** `METRICS_PUBLIC`. */
  isPublic: boolean;
  /** `METRICS_TOKEN`. */
  token?: string;
}

/** A proxy on this machine passes on what comes from others, and says so in one of these. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'via'];

/** Whether a program on this machine asks, for itself. */
function isFromHere({ socket, headers }: IncomingMessage): boolean {
  if (FORWARDED.some((name) => headers[name] !== undefined)) return false;
  const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  return address === '::1' || (isIP(address) === 4 && address.startsWith('127.'));
}

/** Whether somebody may read metrics and deep health without a token of the administration. */
export function mayReadMetrics(req: IncomingMessage, { isPublic, token }: MetricsAccess): boolean {
  if (isPublic || isFromHere(req)) return true;
  const given = bearerTokenOf(req.headers.authorization);
  return given !== undefined && token !== undefined && isSameSecret(given, token);
}
