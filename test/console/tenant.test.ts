import { readFile } from 'node:fs/promises';

import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';

import { WITHOUT_PAST } from '../../scripts/start/demo-week.ts';
import { chatOf, postChat, requestIdOf } from '../support/chat.ts';
import { apiOf } from '../support/tenant-api.ts';
import { useService, useStarted, useTenant } from '../support/use-service.ts';
import { waitFor, waitUntil } from '../support/wait-for.ts';
import { startWebhookReceiver } from '../support/webhook-receiver.ts';
import { faultsOf, picture, scrolled, settle, shiftOf, until, useBrowser, visit, wideIn } from './browser.ts';
import { isDrifting } from '../../workers/settlement/reconcile.ts';
import { playDemo, reconcileAll } from './demo-data.ts';

/** An answer that takes a while and is long, so that a cut falls into it. */
const SLOW = 'sim?first_token_ms=150&chunk_ms=25&chunks=80';
const MARKUP = '<img src=x onerror="document.title=\'pwned\'"><script>document.title="pwned"</script>';

const service = useService({ env: { PAYMENTS: 'test', WEBHOOK_ALLOW_PRIVATE: 'true' } });
const tenant = useTenant(service, { tenant: WITHOUT_PAST });
const receiver = useStarted('receiver', startWebhookReceiver);
const browser = useBrowser();
const api = (...call: Parameters<ReturnType<typeof apiOf>>) => apiOf(service, tenant.key)(...call);
const consoleUrl = () => `${service.url}/console/`;

let page: Page;
beforeAll(async () => {
  await playDemo(service, tenant);
  await service.setTargets('oloid', [{ provider: 'simulated', model: SLOW, context_window: 128_000 }]);
  page = await browser.signIn(consoleUrl(), tenant.key);
});

const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
const main = () => page.locator('main');
const untilAnswerHas = (characters: number) =>
  until(page, `document.querySelector('.answer')?.textContent.length > ${characters}`);

describe('the week of npm start -- --demo', () => {
  it('gives every list of the console something to show', async () => {
    for (const list of [
      'keys',
      'entities',
      'batches',
      'webhooks',
      'requests',
      'billing/purchases',
      'compliance/exports',
    ])
      expect([list, (await api('get', `/${list}`)).body.data.length]).not.toEqual([list, 0]);
    const { data } = (await api('get', '/requests?status=failed')).body;
    expect(data.length).toBeGreaterThan(0);
  });

  it('leaves accounts, usage and Redis as the ledger has them', async () => {
    const settled = await waitFor(async () => {
      const { found, failed } = await reconcileAll(service);
      return isDrifting(found) ? undefined : { failed };
    }, 'no drift');

    expect(settled.failed).toBe(0);
  });
});

describe('signing in', () => {
  it('refuses a key in the words of the service, with the request id', async () => {
    const stranger = await browser.open(consoleUrl());
    await stranger.fill('#secret', 'svc_sk_live_nobody');
    await stranger.getByRole('button', { name: 'Sign in' }).click();
    const alert = stranger.getByRole('alert');
    await alert.waitFor();

    expect(await alert.textContent()).toMatch(/API key.*invalid_api_key.*req_\w{24}/s);
    expect(await faultsOf(stranger)).toEqual([]);
    await picture(stranger, 'sign-in-light');
  });

  it('keeps the key in the tab alone', async () => {
    const kept = await page.evaluate<string>(
      '[JSON.stringify(localStorage), document.cookie, location.href].join(" ")',
    );
    const other = await page.context().newPage();
    await other.goto(consoleUrl());

    expect(kept).not.toContain(tenant.key);
    await other.locator('#secret').waitFor();
    await other.close();
  });

  it('shows only what the scopes of a key open', async () => {
    const { body } = await api('post', '/keys', { scopes: ['usage'] });
    const narrow = await browser.signIn(consoleUrl(), String(body.value));
    await settle(narrow);
    const items = () => narrow.getByRole('navigation', { name: 'Console' }).getByRole('link').allTextContents();
    await waitUntil(async () => (await items()).length < 6, 'the navigation');

    expect(await items()).toEqual(['Overview', 'Usage', 'API reference']);
  });
});

describe('the playground', () => {
  it.each(['/chat/stream', '/chat/completions'])('goes on at %s after a cut, without a byte lost', async (path) => {
    await visit(page, '/');
    await visit(page, '/playground?model=oloid');
    if (path === '/chat/completions') {
      await button('Example tool').click();
      await page.getByLabel('Tools are called').selectOption('none');
    }
    await page.getByLabel('Message').fill('Tell me about bridges.');
    expect(await page.getByLabel('The call in curl').textContent()).toContain(path);
    await button('Send').click();
    const answer = page.getByRole('log', { name: 'Answer' });
    await untilAnswerHas(60);
    await button('Cut the network').click();
    const cut = (await answer.textContent()) ?? '';
    await button('Resume').click();
    await main().getByText('Completed').waitFor();
    const whole = (await answer.textContent()) ?? '';
    const id = (await page.locator('main a[href^="#/requests/req_"]').textContent()) ?? '';
    const { body } = await api('get', `/chat/${id}`);

    expect(cut.length).toBeLessThan(whole.length);
    expect(whole.startsWith(cut)).toBe(true);
    expect(whole).toBe(body.response.choices[0].message.content);
    expect(await main().textContent()).toContain('resumed once');
  });

  it('shows the calls of tools as they come, and sends their results back', async () => {
    await visit(page, '/');
    await visit(page, '/playground?model=mobius');
    await button('Example tool').click();
    await page.getByLabel('Tools', { exact: true }).fill('[{');
    expect(await button('Send').isDisabled()).toBe(true);
    await main().getByText('This is no JSON list of tools.').waitFor();
    await page.getByLabel('Tools', { exact: true }).fill('');
    await button('Example tool').click();
    await button('Send').click();
    await page.getByLabel('Result of get_weather').fill('{"celsius": -7}');
    expect(await page.getByLabel('The call of get_weather').textContent()).toMatch(/^get_weather\(\{"city":.*\}\)$/);
    expect(await faultsOf(page)).toEqual([]);
    await picture(page, 'playground-tools-light');
    await button('Reply with the result').click();
    await untilAnswerHas(20);
    await main().getByText('Completed').waitFor();

    expect(await page.getByRole('log', { name: 'Answer' }).textContent()).toContain('-7');
    const code = (await page.getByLabel('The call in curl').textContent()) ?? '';
    expect(code).toContain('/chat/completions');
    expect(code).toContain('"role": "tool"');
  });

  it('asks for JSON by a schema', async () => {
    await visit(page, '/');
    await visit(page, '/playground?model=oloid');
    await page.getByLabel('Format').selectOption('json_schema');
    await button('Send').click();
    await main().getByText('Completed').waitFor();
    const answer = (await page.getByRole('log', { name: 'Answer' }).textContent()) ?? '';

    expect(Object.keys(JSON.parse(answer) as object)).toEqual(['answer', 'confidence']);
  });

  it('ends an answer that fails with its error, and does not offer to go on', async () => {
    await visit(page, '/');
    await visit(page, '/playground?model=mobius');
    service.provider.change({ fail: 'reset', fail_after: 3 });
    await button('Example tool').click();
    await button('Send').click();
    await main().getByText('Failed', { exact: true }).waitFor();
    service.provider.restore();
    expect(await main().getByRole('alert').textContent()).toContain('model_unavailable');
    expect(await main().textContent()).toContain('Events4Request');
  });

  it('cancels what runs, and shows the call without the key', async () => {
    await visit(page, '/');
    await visit(page, '/playground?model=oloid');
    await page.getByLabel('Message').fill('Tell me about bridges.');
    await button('Send').click();
    await untilAnswerHas(30);
    await button('Cancel').click();
    await main().getByText('cancelled', { exact: true }).waitFor();
    for (const language of ['curl', 'JavaScript', 'Python', 'openai']) {
      await button(language).click();
      const text = (await page.getByLabel(`The call in ${language}`).textContent()) ?? '';
      expect(text).toContain('Tell me about bridges.');
      expect(text).not.toContain(tenant.key);
    }
  });
});

it('the overview counts the errors of today, and leads to them', async () => {
  await visit(page, '/');
  const today = String(Math.floor(Date.now() / 86_400_000) * 86_400);
  const { data } = (await api('get', `/requests?status=refused&start_time=${today}&limit=100`)).body;
  await page.getByRole('link', { name: `${data.length} refused` }).click();
  await main().getByText('Refused', { exact: true }).first().waitFor();

  expect(page.url()).toContain(`status=refused&start_time=${today}`);
  expect(await main().locator('tbody tr').count()).toBe(Math.min(25, data.length));
});

it('a request is found by its id, with its timeline and its answer', async () => {
  const id = requestIdOf(await postChat(service.app, tenant.key, chatOf('Where is my request?')));
  await visit(page, '/requests');
  await page.getByLabel('Request id').fill(id);
  await button('Find').click();
  await page.getByText('Timeline, to scale').waitFor();
  await settle(page);

  expect(page.url()).toContain(`#/requests/${id}`);
  expect(await page.locator('.timeline .span').count()).toBeGreaterThan(2);
  await page.goBack();
  expect(page.url()).toMatch(/#\/requests$/);
});

it('a request whose answer is gone is found by its address, the oldest too', async () => {
  const { data } = (await api('get', '/requests?status=refused&order=asc&limit=1')).body;
  await visit(page, `/requests/${data[0].id}`);
  await main().getByText('What is kept of it').waitFor();
  expect(await main().textContent()).toContain(data[0].error_code);

  await visit(page, '/requests/req_nothing');
  await main().getByRole('button', { name: 'Copy request id' }).waitFor();
});

it('a key is made, is shown once, works, and is revoked', async () => {
  await visit(page, '/keys');
  await button('Create a key').click();
  await page.getByLabel('Name').fill(MARKUP);
  await button('Create').click();
  const value = (await page.getByLabel('The value').textContent()) ?? '';
  expect((await apiOf(service, value)('get', '/models')).status).toBe(200);

  await button('I have copied it').click();
  await page.getByRole('link', { name: MARKUP }).click();
  await button('Revoke').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await until(page, `location.hash === '#/keys'`);
  await waitUntil(async () => (await apiOf(service, value)('get', '/models')).status === 401, 'the end');
});

it('a batch goes from a file to its results, with its failures', async () => {
  const lines = Array.from({ length: 6 }, (_, at) => ({
    custom_id: `line-${at}`,
    body: chatOf(`Name ${at} bridges.`),
  }));
  const file = [...lines, { custom_id: 'wrong', body: { messages: [] } }]
    .map((line) => JSON.stringify(line))
    .join('\n');
  await visit(page, '/batches');
  await page.setInputFiles('input[type=file]', {
    name: 'bridges.ndjson',
    mimeType: 'application/x-ndjson',
    buffer: Buffer.from(file),
  });
  await page.getByText('Progress').waitFor();
  await main().getByText('Completed', { exact: true }).waitFor();
  await main().getByText('1 failed').waitFor();
  await page.getByLabel('Failures only').uncheck();
  await main().getByRole('cell', { name: 'line-5' }).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), button('Download').click()]);

  const rows = (await readFile(await download.path(), 'utf8')).trim().split('\n');
  expect(rows).toHaveLength(7);
});

it('a webhook is made, tested, and its event sent again', async () => {
  await visit(page, '/webhooks');
  await button('Create a webhook').click();
  await page.getByLabel('Address').fill(receiver.url);
  await button('Create').click();
  await button('I have copied it').click();
  await page.getByRole('link', { name: receiver.url }).click();
  await button('Send a test event').click();
  await receiver.next('ping');
  await main().getByText('Succeeded').first().waitFor();
  await page.getByRole('button', { name: 'Redeliver ping' }).first().click();

  const again = await receiver.next('ping', 2);
  expect(again.body.id).toBe(receiver.received[0]?.body.id);
});

it('a checkout is paid on the test page, and the balance grows', async () => {
  const before = (await api('get', '/billing')).body.balance as number;
  await visit(page, '/billing');
  await button('Buy Small').click();
  await page.getByRole('button', { name: /^pay/i }).click();
  await page.getByText(/1,000,000 credits were bought for US\$5\.00/).waitFor();

  expect((await api('get', '/billing')).body.balance).toBe(before + 1_000_000);
});

describe('markup of others', () => {
  it('stays text: names, metadata, entity ids, answers', async () => {
    await api('post', '/entities', { entity_id: MARKUP, name: MARKUP, metadata: { [MARKUP]: MARKUP } });
    await postChat(service.app, tenant.key, { ...chatOf(MARKUP), entity_id: MARKUP });
    await visit(page, '/entities');
    await page.getByRole('link', { name: MARKUP }).click();
    await page.getByText('Conversation').waitFor();
    await settle(page);

    expect(await main().textContent()).toContain(MARKUP);
    expect(await page.title()).not.toBe('pwned');
    expect(await page.locator('main img, main script').count()).toBe(0);
  });

  it('would run nothing even where it became an element', async () => {
    const victim = await browser.open(consoleUrl());
    await victim.evaluate(`
      document.body.insertAdjacentHTML('beforeend', ${JSON.stringify(MARKUP)});
      const script = document.createElement('script');
      script.textContent = 'document.title = "pwned"';
      document.body.append(script);`);

    expect(await victim.title()).not.toBe('pwned');
    await waitFor(() => browser.faults.find((fault) => /Content Security Policy/.test(fault)), 'the refusal');
    // These refusals are what the test asks for.
    browser.faults.length = 0;
  });
});

describe('every page', () => {
  let paths: Record<string, string>;
  beforeAll(async () => {
    const [hook, batch, entity] = [await api('get', '/webhooks'), await api('get', '/batches'), 'visitor-1'];
    const request = await api('get', '/requests?status=completed');
    await api('post', '/compliance/exports', { scope: 'entity', entity_id: 'visitor-1' });
    await api('post', '/compliance/deletions', { scope: 'entity', entity_id: 'visitor-4', reason: 'asked for' });
    const first = ({ body }: { body: { data: { id: string }[] } }) => String(body.data[0]?.id);
    paths = {
      overview: '/',
      playground: '/playground?model=oloid',
      requests: '/requests',
      request: `/requests/${first(request)}`,
      usage: '/usage',
      billing: '/billing',
      keys: '/keys',
      key: `/keys/${tenant.keyId}`,
      entities: '/entities',
      entity: `/entities/view?id=${entity}`,
      batches: '/batches',
      batch: `/batches/${first(batch)}`,
      webhooks: '/webhooks',
      webhook: `/webhooks/${first(hook)}`,
      compliance: '/compliance',
      audit: '/audit',
    };
  });

  it.each(['light', 'dark'] as const)('can be used by everyone in the %s theme', async (theme) => {
    const shown = await browser.signIn(consoleUrl(), tenant.key, { theme });
    const faults: Record<string, string[]> = {};
    for (const [name, path] of Object.entries(paths)) {
      await visit(shown, path);
      const moved = await shiftOf(shown);
      if (name === 'playground') {
        await shown.getByRole('button', { name: 'Send' }).click();
        await shown.locator('main').getByText('Completed').waitFor();
      }
      const found = [...moved, ...(await faultsOf(shown)), ...(await scrolled(shown))];
      if (found.length > 0) faults[name] = found;
      await picture(shown, `${name}-${theme}`);
    }

    expect(faults).toEqual({});
  });

  it('fits a phone: nothing reaches beyond its width', async () => {
    const phone = await browser.signIn(consoleUrl(), tenant.key, { isPhone: true });
    const wide: string[] = [];
    for (const [name, path] of Object.entries(paths)) {
      await visit(phone, path);
      wide.push(...(await wideIn(phone)).map((each) => `${name}: ${each}`));
      if (['overview', 'requests', 'playground'].includes(name)) await picture(phone, `${name}-phone`);
    }

    expect(wide).toEqual([]);
  });

  it('is worked by the keyboard: the menu, a page, a dialog and back', async () => {
    await visit(page, '/keys');
    await button('Create a key').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Escape');

    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Create a key');
  });

  it('is there within a second', async () => {
    const fresh = await browser.signIn(consoleUrl(), tenant.key);
    await fresh.reload();
    await settle(fresh);
    const shownAfter = await fresh.evaluate<number>(
      'performance.getEntriesByName("first-contentful-paint")[0].startTime',
    );

    expect(shownAfter).toBeLessThan(1_000);
  });
});
