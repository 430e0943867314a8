import { describe, expect, it } from '@jest/globals';
import request from 'supertest';

import { expectUniformHeaders, refusalOf } from '../../support/refusal.ts';
import { useService } from '../../support/use-service.ts';
const service = useService({ workers: 0 });

const get = (path: string) => request(service.app).get(path).buffer(true);

/** What the page loads, as its own address resolves it. */
async function loadedBy(path: string): Promise<URL[]> {
  const { text } = await get(path);
  const base = new URL(path, 'http://parley.test');
  return [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = '']) => new URL(address, base));
}

describe('/docs', () => {
  it('leads to the page, wherever a proxy has put it', async () => {
    const response = await get('/docs').redirects(0);

    expect(response.status).toBe(308);
    expect(response.headers['location']).toBe('docs/');
    expectUniformHeaders(response);
  });

  it('is a page that runs nothing inline and may load nothing from elsewhere', async () => {
    const response = await get('/docs/');

    expect(response.status).toBe(200);
    expectUniformHeaders(response);
    expect(response.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    });
    expect(response.text).not.toMatch(/<script>|<style|\son\w+=|style=/);
  });

  it('/docs loads everything from this service', async () => {
    const addresses = await loadedBy('/docs/');

    expect(addresses.map(({ host }) => host)).toEqual(addresses.map(() => 'parley.test'));
    const answers = await Promise.all(addresses.map(async ({ pathname }) => [pathname, (await get(pathname)).status]));
    expect(answers).toEqual([
      ['/docs/favicon-32x32.png', 200],
      ['/docs/swagger-ui.css', 200],
      ['/openapi.json', 200],
      ['/docs/swagger-ui-bundle.js', 200],
      ['/docs/initializer.js', 200],
    ]);
  });

  it('sends the document to no validator on the Internet', async () => {
    const { text } = await get('/docs/initializer.js');

    expect(text).toContain("url: '../openapi.json'");
    expect(text).toContain('validatorUrl: null');
    expect(text).not.toMatch(/https?:/);
  });

  it('has styles without anything from elsewhere', async () => {
    const { text } = await get('/docs/swagger-ui.css');

    expect(text).not.toContain('@import');
    const addresses = [...text.matchAll(/url\(["']?(.{5})/g)].map(([, start]) => start);
    expect(new Set(addresses)).toEqual(new Set(['data:']));
  });

  it('serves of its package what the page needs, and says so when nothing has changed', async () => {
    const bundle = await get('/docs/swagger-ui-bundle.js');
    const again = await get('/docs/swagger-ui-bundle.js').set('If-None-Match', String(bundle.headers['etag']));

    expect(bundle.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=3600',
    });
    expect(again.status).toBe(304);
    for (const path of ['/docs/package.json', '/docs/index.html', '/docs/..%2fpackage.json', '/docs/swagger-ui.js']) {
      expect(refusalOf(await get(path))).toMatchObject({ status: 404, code: 'not_found' });
    }
  });

  it('/docs answers GET alone', async () => {
    expect(refusalOf(await request(service.app).post('/docs/'))).toMatchObject({ status: 405 });
  });
});
