import { describe, expect, it } from '@jest/globals';
import type { Request, Response } from 'express';

import { requireHttps } from '../../../../api/http/head-guards.ts';

/** Whether a request is let through; Express fills `secure` and `ip` by its trust in proxies. */
function isLetThrough(request: { secure: boolean; ip: string | undefined }): boolean {
  const socket = { remoteAddress: request.ip, ...(request.secure ? { encrypted: true } : {}) };
  try {
    // It reads nothing else.
    requireHttps(
      { headers: {}, socket, ...request } as unknown as Request,
      { setHeader: () => undefined } as unknown as Response,
    );
  } catch {
    return false;
  }
  return true;
}

describe('HTTPS', () => {
  it.each(['127.0.0.1', '127.8.9.1', '::1', '::ffff:127.0.0.1'])('HTTPS is not needed from this machine: %s', (ip) => {
    expect(isLetThrough({ secure: false, ip })).toBe(true);
  });

  it.each(['203.0.113.9', '::ffff:203.0.113.9', '2001:db8::1', '127.evil.example', '1270.0.0.1', '', undefined])(
    'HTTPS is needed from anywhere else: %s',
    (ip) => {
      expect(isLetThrough({ secure: false, ip })).toBe(false);
      expect(isLetThrough({ secure: true, ip })).toBe(true);
    },
  );
});
