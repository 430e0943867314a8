import type { AddressInfo } from 'node:net';

import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Page, Route } from 'playwright-core';

import { WITHOUT_PAST } from '../../scripts/start/demo-week.ts';
import { chatOf, postChat } from '../support/chat.ts';
import { replayLab } from '../support/replay-lab.ts';
import { useService, useTenant } from '../support/use-service.ts';
import { waitUntil } from '../support/wait-for.ts';
import { faultsOf, picture, scrolled, settle, shiftOf, useBrowser, visit, wideIn } from './browser.ts';
import { playDemo } from './demo-data.ts';

const WRITES = 'an-administrator-token-of-tests-0123456789';
const READS = 'a-reading-token-of-tests-0123456789abcdef';
/** A button that changes something says so in these words. */
const WRITING = /pause|resume|reset|try|suspend|close|credits|limits|new tenant|replay/i;

const service = useService({ env: { ADMIN_TOKENS: `reader:read:${READS}` } });
const tenant = useTenant(service, { tenant: WITHOUT_PAST });
const browser = useBrowser();
const lab = replayLab(service);

const consoleUrl = () => `http://127.0.0.1:${(service.adminApp.address() as AddressInfo).port}/admin/console/`;

interface Tenant {
  balance: number;
  rpm: number;
}

let page: Page;
let failedId: string;
beforeAll(async () => {
  await service.setProvider({ max_retries: 0, breaker: { min_attempts: 1, failure_ratio: 0.01, open_ms: 60_000 } });
  await playDemo(service, tenant);
  ({ id: failedId } = await lab.failed(tenant));
  page = await browser.signIn(consoleUrl(), WRITES);
});

const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
const main = () => page.locator('main');

it('a breaker that a failing provider has opened is reset', async () => {
  await visit(page, '/providers');
  await main().getByText('skipped: its breaker is open').first().waitFor();
  await button('Reset breaker').click();
  await button('Reset breaker').waitFor({ state: 'detached' });

  await main()
    .getByText(/drawn by its weight/)
    .first()
    .waitFor();
  const { data } = (await service.admin('get', '/breakers')).body as { data: { state: string }[] };
  expect(data.map(({ state }) => state)).not.toContain('open');
});

it('a failed request is found by its id, shows why, and is replayed', async () => {
  await visit(page, '/requests');
  await page.getByLabel('Find by id').fill(failedId);
  await page.keyboard.press('Enter');
  // The list shows the reason, too.
  await main().getByText('Where the time went').waitFor();
  await main()
    .getByText(/model_unavailable: simulated/)
    .waitFor();
  expect(await page.locator('.timeline .span').count()).toBeGreaterThan(1);
  await button('Can it be replayed?').click();
  await button('Replay it now').click();

  const { body } = await lab.ended(tenant, failedId);
  expect(body.response.choices[0].message.content).not.toBe('');
});

it('a provider is called for a try', async () => {
  await visit(page, '/providers');
  await button('Try a call').first().click();

  await main()
    .getByRole('status')
    .getByText(/simulated: /)
    .waitFor();
});

it('a queue is paused and goes on', async () => {
  await visit(page, '/');
  await main()
    .getByRole('row', { name: /interactive, shard 0/ })
    .getByRole('button', { name: 'Pause' })
    .click();
  const paused = async () =>
    ((await service.admin('get', '/queues')).body.data as { id: string; paused: boolean }[]).filter(
      (queue) => queue.paused,
    );
  await waitUntil(async () => (await paused()).length === 1, 'the pause');
  await button('Resume').click();

  await waitUntil(async () => (await paused()).length === 0, 'the end of the pause');
});

it('an action that fails says so', async () => {
  await visit(page, '/');
  const path = '**/queues/*/pause';
  await page.route(path, (route) => route.abort());
  await button('Pause').first().click();

  await main()
    .getByRole('alert')
    .getByText(/did not answer/)
    .waitFor();
  await page.unroute(path);
});

it('a grant that is sent again after its answer was lost is booked once', async () => {
  const balance = async () => ((await service.admin('get', `/tenants/${tenant.tenantId}`)).body as Tenant).balance;
  await visit(page, `/tenants/${tenant.tenantId}`);
  const before = await balance();
  const lose = async (route: Route) => {
    await route.fetch();
    await route.abort();
  };
  await page.route('**/credits', lose, { times: 1 });
  await button('Credits').click();
  await page.getByLabel('Credits', { exact: true }).fill('300');
  await button('Book').click();
  await page.getByRole('dialog').getByRole('alert').waitFor();
  await button('Book').click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });

  expect(await balance()).toBe(before + 300);
});

it('a tenant gets limits and credits, is suspended, and let in again', async () => {
  await visit(page, `/tenants/${tenant.tenantId}`);
  const before = (await service.admin('get', `/tenants/${tenant.tenantId}`)).body as Tenant;
  await button('Limits').click();
  await page.getByLabel('Requests a minute of a key').fill('77');
  await button('Save').click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await button('Credits').click();
  await page.getByLabel('Credits', { exact: true }).fill('500');
  await button('Book').click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  const changed = (await service.admin('get', `/tenants/${tenant.tenantId}`)).body as Tenant;
  expect(changed).toMatchObject({ rpm: 77, balance: before.balance + 500 });

  await button('Suspend').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click();
  const callStatus = async () => (await postChat(service.app, tenant.key, chatOf('Let in?'))).status;
  await waitUntil(async () => (await callStatus()) === 403, 'the refusal');
  await button('Reactivate').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Reactivate' }).click();

  await waitUntil(async () => (await callStatus()) === 200, 'the readmission');
});

describe('every page', () => {
  const paths = () => ({
    fleet: '/',
    requests: '/requests',
    request: `/requests/${failedId}`,
    providers: '/providers',
    tenants: '/tenants',
    tenant: `/tenants/${tenant.tenantId}`,
    money: '/money?by=tier',
    settlement: '/settlement',
    audit: '/audit',
  });

  it.each(['light', 'dark'] as const)('can be used by everyone in the %s theme', async (theme) => {
    const shown = await browser.signIn(consoleUrl(), WRITES, { theme });
    const faults: Record<string, string[]> = {};
    for (const [name, path] of Object.entries(paths())) {
      await visit(shown, path);
      const found = [...(await shiftOf(shown)), ...(await faultsOf(shown)), ...(await scrolled(shown))];
      if (found.length > 0) faults[name] = found;
      await picture(shown, `operator-${name}-${theme}`);
    }

    expect(faults).toEqual({});
  });

  it('shows a token that only reads no button that writes, and fits a phone', async () => {
    const reader = await browser.signIn(consoleUrl(), READS, { isPhone: true });
    const wrong: string[] = [];
    for (const [name, path] of Object.entries(paths())) {
      await visit(reader, path);
      await settle(reader);
      const buttons = await reader.locator('main').getByRole('button').allTextContents();
      wrong.push(...buttons.filter((text) => WRITING.test(text)).map((text) => `${name}: ${text}`));
      wrong.push(...(await wideIn(reader)).map((each) => `${name} is too wide: ${each}`));
    }

    expect(wrong).toEqual([]);
  });
});
