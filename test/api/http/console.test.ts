import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import express from 'express';
import request from 'supertest';

import { createConsoleRoute } from '../../../api/resources/console-route.ts';
import { expectUniformHeaders } from '../../support/refusal.ts';
import { apiOf } from '../../support/tenant-api.ts';
import { makeFolder } from '../../support/temporary-folder.ts';
import { useService } from '../../support/use-service.ts';

const service = useService({ workers: 0 });

/** As a browser asks for a page. */
const PAGE = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

let folder: Awaited<ReturnType<typeof makeFolder>>;
beforeAll(async () => {
  folder = await makeFolder();
  await mkdir(join(folder.path, 'assets'));
  for (const name of ['index.html', 'admin.html', 'assets/app-1a2b3c4d.js'])
    await writeFile(join(folder.path, name), name);
});
afterAll(() => folder.remove());

const FACES = [
  { at: '/console', page: 'index.html' },
  { at: '/admin/console', page: 'admin.html' },
] as const;

describe.each(FACES)('the console at $at', ({ at, page }) => {
  const serve = (built: string) =>
    express().use(
      createConsoleRoute(
        {
          at,
          page,
          prepare: (_req, _res, next) => {
            next();
          },
        },
        built,
      ),
    );
  const get = (path: string, built = folder.path) => request(serve(built)).get(path).set('Accept', PAGE).buffer(true);

  it('is a page that is never kept and loads nothing from elsewhere', async () => {
    const { status, headers, text } = await get(`${at}/`);

    expect([status, text]).toEqual([200, page]);
    expect(headers).toMatchObject({ 'content-security-policy': POLICY, 'cache-control': 'no-store' });
  });

  it('has assets that are kept for good', async () => {
    const { status, headers } = await get(`${at}/assets/app-1a2b3c4d.js`);

    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-security-policy': POLICY,
    });
  });

  it.each([
    ['br', '.br', brotliCompressSync],
    ['gzip', '.gz', gzipSync],
  ] as const)('has assets that the build compressed by %s', async (coding, ending, compress) => {
    await writeFile(join(folder.path, `assets/app-1a2b3c4d.js${ending}`), compress(`by ${coding}`));
    const server = serve(folder.path);
    const ask = (accepted: string) =>
      request(server).get(`${at}/assets/app-1a2b3c4d.js`).set('Accept-Encoding', accepted).buffer(true);
    const sent = await ask(`${coding}, deflate`);
    const plain = await ask('identity');

    expect([sent.status, sent.text]).toEqual([200, `by ${coding}`]);
    expect(sent.headers).toMatchObject({
      'content-encoding': coding,
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'Accept-Encoding',
    });
    expect([plain.text, plain.headers['content-encoding']]).toEqual(['assets/app-1a2b3c4d.js', undefined]);
    expect(plain.headers['etag']).not.toBe(sent.headers['etag']);
  });

  it('serves nothing else of the build', async () => {
    for (const path of ['/assets/', '/assets', '/assets/..%2findex.html', '/index.html', '/assets/absent.js'])
      expect([path, (await get(`${at}${path}`)).status]).toEqual([path, 404]);
  });

  it('is where / leads a browser, relative to a prefix, and no program', async () => {
    const browser = await get('/').redirects(0);

    expect([browser.status, browser.headers['location']]).toEqual([302, `${at.slice(1)}/`]);
    expect(browser.headers['vary']).toBe('Accept');
    for (const accept of ['*/*', 'application/json'])
      expect((await request(serve(folder.path)).get('/').set('Accept', accept)).status).toBe(404);
  });

  it('leaves / to the API reference where it was not built', async () => {
    const { headers } = await get('/', join(folder.path, 'absent')).redirects(0);

    expect(headers['location']).toBe(at === '/console' ? 'docs/' : 'admin/docs/');
    expect((await get(`${at}/`, join(folder.path, 'absent'))).status).toBe(404);
  });
});

it('GET /admin leads an operator to the console', async () => {
  const face = createConsoleRoute(
    {
      at: '/admin/console',
      page: 'admin.html',
      prepare: (_req, _res, next) => {
        next();
      },
    },
    folder.path,
  );
  const { headers } = await request(express().use(face)).get('/admin').set('Accept', PAGE).redirects(0);

  expect(headers['location']).toBe('admin/console/');
});

it.each([
  ['the public port', () => service.app],
  ['the port of the administration', () => service.adminApp],
] as const)('/ leads a browser on, and is not found by a program, on %s', async (_name, app) => {
  const page = await request(app()).get('/').set('Accept', PAGE).redirects(0);
  const refused = await request(app()).get('/').set('Accept', '*/*');

  expect(page.status).toBe(302);
  expect([refused.status, refused.body.error.code]).toEqual([404, 'not_found']);
  if (app() === service.app) expectUniformHeaders(page);
});

describe('GET /key', () => {
  it('tells any key what it may do', async () => {
    const { key, keyId } = await service.startTenant({ key: { scopes: ['chat.stream'], rpm: 7, mode: 'test' } });
    const { status, body } = await apiOf(service, key)('get', '/key');

    expect(status).toBe(200);
    expect(body).toMatchObject({ id: keyId, scopes: ['chat.stream'], mode: 'test', limits: { rpm: 7 } });
    expect(body).not.toHaveProperty('value');
  });
});
