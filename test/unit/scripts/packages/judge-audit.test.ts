import { expect, it } from '@jest/globals';

import { judgeAudit } from '../../../../scripts/packages/main.ts';

const report = (vulnerabilities: object) => JSON.stringify({ auditReportVersion: 2, vulnerabilities });

it('passes packages without a known weakness', () => {
  expect(judgeAudit(report({}))).toEqual({ kind: 'clean' });
});

it('fails for one of high severity, and names it', () => {
  const found = report({ axios: { severity: 'critical' }, cors: { severity: 'low' } });

  expect(judgeAudit(found)).toEqual({ kind: 'vulnerable', packages: ['axios (critical)'] });
  expect(judgeAudit(report({ cors: { severity: 'low' } }))).toEqual({ kind: 'minor', packages: ['cors (low)'] });
});

it.each([
  ['a registry without advisories', JSON.stringify({ message: '405 Method Not Allowed', statusCode: 405 }), '405'],
  ['a registry that is away', JSON.stringify({ message: 'request failed: ENOTFOUND', error: {} }), 'ENOTFOUND'],
  ['no output', '', 'no report'],
])('says that %s has not answered, instead of that nothing was found', (_what, output, reason) => {
  expect(judgeAudit(output)).toEqual({ kind: 'unanswered', reason: expect.stringContaining(reason) });
});
