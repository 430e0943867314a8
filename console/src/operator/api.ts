import type { paths } from '../../../scripts/admin-api.d.ts';
import { createApi, ok, tryOut } from '../shell/api.ts';
import { createSession } from '../shell/session.ts';

const BASE = '../v1';

export const session = createSession('parley-admin-token');
export const { client: api } = createApi<paths>(BASE, session);

/** Throws where a token is refused. */
export const tryToken = (token: string) => ok(tryOut<paths>(BASE, token).client.GET('/processes'));
