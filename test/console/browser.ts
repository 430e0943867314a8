import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { afterAll, beforeAll, expect } from '@jest/globals';
import axe from 'axe-core';
import type { AxeResults } from 'axe-core';
import { chromium } from 'playwright-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';

import { findProgram } from '../../scripts/embedded/find-program.ts';
import { ROOT } from '../../scripts/harness/program.ts';
import { waitUntil } from '../support/wait-for.ts';

/** `PICTURES=docs npm run test:console` takes those of the documentation; else they are beside the other test data. */
const PICTURES = join(ROOT, process.env['PICTURES'] === 'docs' ? 'docs/console' : '.data/console');
const VIEW = { width: 1_180, height: 760 };
const PHONE = { width: 390, height: 800 };

export interface TestBrowser {
  /** A tab of its own, watched: what leaves the host, what the policy refused, and what went wrong. */
  open(address: string, options?: { theme?: 'light' | 'dark'; isPhone?: boolean }): Promise<Page>;
  /** Signed in as who holds this secret. */
  signIn(address: string, secret: string, options?: { theme?: 'light' | 'dark'; isPhone?: boolean }): Promise<Page>;
  /** Everything that pages asked of other hosts. */
  strangers: string[];
  /** Refusals of the policy, and errors of scripts. */
  faults: string[];
}

/** Chromium for a whole file. At its end nothing has left the host, and no script has failed. */
export function useBrowser(): TestBrowser {
  let browser: Browser;
  const contexts: BrowserContext[] = [];
  const strangers: string[] = [];
  const faults: string[] = [];
  beforeAll(async () => {
    const executablePath = await findProgram('chromium');
    if (executablePath === undefined) throw new Error('Install Chromium: apt-get install -y chromium');
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
    await mkdir(PICTURES, { recursive: true });
  });
  afterAll(async () => {
    for (const context of contexts) await context.close();
    await browser.close();
    expect({ strangers, faults }).toEqual({ strangers: [], faults: [] });
  });

  const open: TestBrowser['open'] = async (address, { theme = 'light', isPhone = false } = {}) => {
    const context = await browser.newContext({ colorScheme: theme, viewport: isPhone ? PHONE : VIEW, locale: 'en-GB' });
    contexts.push(context);
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const page = await context.newPage();
    await page.addInitScript(`window.shift = 0; new PerformanceObserver((list) => {
      for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.shift += value;
    }).observe({ type: 'layout-shift', buffered: true })`);
    page.on('request', (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (protocol.startsWith('http') && hostname !== '127.0.0.1') strangers.push(request.url());
    });
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('console', (message) => {
      // The browser notes every answer of 4xx as an error, too.
      const isAnswer = message.text().startsWith('Failed to load resource');
      if (message.type() === 'error' && !isAnswer) faults.push(message.text());
    });
    await page.goto(address);
    return page;
  };

  return {
    open,
    strangers,
    faults,
    async signIn(address, secret, options) {
      const page = await open(address, options);
      await page.fill('#secret', secret);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.locator('.shell').waitFor();
      return page;
    },
  };
}

/** Opens a page of the console and waits until its data has come. */
export async function visit(page: Page, path: string): Promise<void> {
  await page.evaluate(`window.shift = 0; location.hash = ${JSON.stringify(path)}`);
  await settle(page);
}

/** Asks again and again, because waiting inside of the page would need an `eval`, which its policy refuses. */
export async function until(page: Page, condition: string): Promise<void> {
  await waitUntil(async () => await page.evaluate<boolean>(condition), condition);
}

export async function settle(page: Page): Promise<void> {
  await page.locator('main h1').waitFor();
  await until(page, 'document.querySelector(".skeleton, [aria-busy=true]") === null');
  await page.waitForLoadState('networkidle', { timeout: 2_000 }).catch(() => undefined);
}

/** The serious faults that axe finds: which rule, and where. */
export async function faultsOf(page: Page): Promise<string[]> {
  // By the debugger's protocol, which the page's policy does not concern.
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`));
}

/** The most that a page may move while its data comes, as Chromium counts it. */
const SHIFT_MAX = 0.02;

/** Tells of what has moved by itself since the address was changed. */
export async function shiftOf(page: Page): Promise<string[]> {
  const shift = await page.evaluate<number>('window.shift');
  return shift > SHIFT_MAX ? [`it moves by ${shift.toFixed(3)} while its data comes`] : [];
}

/** Finds the elements that reach beyond the width of the window, but for those that scroll by themselves. */
export const wideIn = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(`[...document.querySelectorAll('main *')]
    .filter((each) => each.closest('.table-wrap') === null && each.getBoundingClientRect().right > innerWidth + 1)
    .map((each) => each.tagName + '.' + each.className + ' ' + each.textContent.slice(0, 40))`);

/** The tables that have to be scrolled sideways in this window. */
export const scrolled = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(`[...document.querySelectorAll('main .table-wrap')]
    .filter(({ clientWidth, scrollWidth }) => scrollWidth > clientWidth)
    .map((each) => each.getAttribute('aria-label') + ' is too wide by ' + (each.scrollWidth - each.clientWidth))`);

/** The documentation has a choice of them: only those that are there are taken anew. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env['PICTURES'] === 'docs' && !existsSync(join(PICTURES, `${name}.png`))) return;
  await page.screenshot({ path: join(PICTURES, `${name}.png`), animations: 'disabled' });
}
