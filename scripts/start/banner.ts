import type { DemoTenant } from './demo-tenant.ts';
import type { StartSettings } from './settings.ts';
import { demoProviders } from './demo-routes.ts';

/** What a new user needs for the first requests. */
export function renderBanner(settings: StartSettings, tenant: DemoTenant, adminToken: string): string {
  const { baseUrl, adminUrl } = settings;
  const providers = demoProviders(settings).map(({ name }) => name);
  return [
    '',
    'Parley is ready.',
    '',
    `  Base URL      ${baseUrl}/platform/v1`,
    `  Live key      ${tenant.liveKey.value}`,
    `  Test key      ${tenant.testKey.value}`,
    `  Admin token   ${adminToken}`,
    `  Queues        ${adminUrl}/admin/queues (sign in with the admin token)`,
    `  Answers from  ${providers.join(', then ')} (while nobody has changed the routes of the tiers)`,
    '',
    'A complete answer:',
    '',
    curl(settings, tenant, "-sS -w '\\n'", '/chat', {
      messages: [{ role: 'user', content: 'What is a conversation?' }],
    }),
    '',
    'A stream, remembered for the entity "visitor-1":',
    '',
    curl(settings, tenant, '-sSN', '/chat/stream', {
      entity_id: 'visitor-1',
      messages: [{ role: 'user', content: 'Tell me about bridges.' }],
    }),
    '',
    'The log follows; Ctrl-C stops everything.',
    '',
  ].join('\n');
}

/** One line, to be pasted into any Bourne-like shell; the texts above contain no quotes. */
function curl({ baseUrl }: StartSettings, { liveKey }: DemoTenant, flags: string, path: string, body: object): string {
  const insecure = baseUrl.startsWith('https:') ? ' -k' : '';
  return (
    `curl ${flags}${insecure} ${baseUrl}/platform/v1${path} -H 'Authorization: Bearer ${liveKey.value}' ` +
    `-H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`
  );
}
