import { describe, expect, it } from '@jest/globals';

import { anchorsOf, findBroken } from '../../../../scripts/check-citations.ts';

const SPEC = '# Spec\n\n<a id="objects"></a>\n\n## 2. Objects\n\n### 2.1 Chat request\n\n## How to `run` it\n';

function problemsIn(file: string, text: string): string[] {
  const texts = new Map([
    ['docs/spec.md', SPEC],
    [file, text],
  ]);
  const paths = new Set([...texts.keys(), 'docs', 'test/api/a.test.ts']);
  return findBroken({ texts, exists: (path) => paths.has(path) }).map(({ line, problem }) => `${line}: ${problem}`);
}

describe('find-broken', () => {
  it('makes the anchors of headings as GitHub does', () => {
    expect([...anchorsOf(SPEC)]).toEqual(['objects', 'spec', '2-objects', '21-chat-request', 'how-to-run-it']);
  });

  it.each(['-- docs/spec.md', '/** A fact (docs/spec.md#how-to-run-it). */'])(
    'find-broken accepts a citation that resolves: %j',
    (text) => {
      expect(problemsIn('api/a.ts', text)).toEqual([]);
    },
  );

  it.each([
    ['\n-- A fact (docs/spec.md#gone).', '2: docs/spec.md#gone: no such anchor'],
    ['\n// docs/gone.md', '2: docs/gone.md does not exist'],
  ])('reports a citation that does not resolve: %j', (text, problem) => {
    expect(problemsIn('api/a.ts', text)).toEqual([problem]);
  });

  it('find-broken follows the links and anchors of pages', () => {
    const text = '[a](spec.md#21-chat-request) [b](../docs) [c](https://example.com) [d](#top)\n\n# Top\n';
    expect(problemsIn('docs/page.md', text)).toEqual([]);
  });

  it('reports a test that the page about security names and that is not there', () => {
    expect(problemsIn('docs/security.md', '- Kept: `api/a`\n- Not kept: `unit/docs/gone`, E1\n')).toEqual([
      '2: test/unit/docs/gone.test.ts does not exist',
    ]);
  });

  it('reports links and anchors that lead nowhere, but not those in code', () => {
    const text = '[a](gone.md)\n[b](spec.md#gone)\n`[c](gone.md)`\n\n```md\n[d](gone.md)\n```\n';
    expect(problemsIn('docs/page.md', text)).toEqual([
      '1: gone.md: docs/gone.md does not exist',
      '2: spec.md#gone: no such anchor',
    ]);
  });
});
