import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from '@jest/globals';

import { tenantFields } from '../../../shared/contracts/tenant-fields.ts';
import { ERRORS } from '../../../shared/errors/codes.ts';

const GUIDE = join(import.meta.dirname, '..', '..', '..', 'docs', 'guide');
const read = (path: string) => readFileSync(join(GUIDE, path), 'utf8');
const pages = readdirSync(GUIDE).filter((name) => name.endsWith('.md'));
const examples = readdirSync(join(GUIDE, 'examples'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(GUIDE.length + 1));

describe('the guide', () => {
  it('lists every error with its status and type, and no other', () => {
    const rows = Array.from(read('errors.md').matchAll(/^- `(\w+)` (\d{3}) `(\w+)`: /gm), ([, code, status, type]) => [
      code,
      { status: Number(status), type },
    ]);
    const wanted = Object.entries(ERRORS).map(([code, { status, type }]) => [code, { status, type }]);
    expect(Object.fromEntries(rows)).toEqual(Object.fromEntries(wanted));
  });

  it.each([
    ['requests a minute', tenantFields.rpm.preset],
    ['tokens a minute', tenantFields.tpm.preset],
    ['`POST /chat`', tenantFields.chatRpm.preset],
    ['`POST /chat/stream`', tenantFields.streamRpm.preset],
    ['tokens of test keys a day', tenantFields.testDailyTokens.preset],
    ['requests a minute, all keys', tenantFields.tenantRpm.preset],
    ['tokens a minute, all keys', tenantFields.tenantTpm.preset],
    ['requests in flight, all keys', tenantFields.maxInFlight.preset],
  ])('the guide names the default of the limit %s', (name, value) => {
    const row = read('limits.md')
      .split('\n')
      .find((line) => line.startsWith(`| ${name} `));
    expect(row).toMatch(new RegExp(`\\| ${value?.toLocaleString('en-US')}\\b`));
  });

  it.each(pages)('the guide %s shows example files as they are', (page) => {
    for (const [, file = '', , code] of read(page).matchAll(/<!-- file: (\S+) -->\n\n```(\w+)\n([\s\S]*?)```/g))
      expect(code).toBe(read(file));
  });

  it.each(examples)('the guide links to %s', (example) => {
    expect(pages.some((page) => read(page).includes(`](${example})`))).toBe(true);
  });
});
