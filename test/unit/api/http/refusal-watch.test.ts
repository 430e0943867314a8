import { expect, it } from '@jest/globals';

import { createRefusalWatch } from '../../../../api/http/refusal-watch.ts';
import { createRecordingLog } from '../../../support/recording-log.ts';

function start() {
  const log = createRecordingLog();
  const counted: string[] = [];
  const watch = createRefusalWatch({
    log,
    count: (plane, code) => counted.push(`${plane} ${code}`),
    countNotFound: (plane) => counted.push(`${plane} 404`),
  });
  return { log, counted, watch };
}

it('counts each refusal and writes one line for all of an address', () => {
  const { log, counted, watch } = start();
  for (let count = 0; count < 500; count += 1) watch.note('public', 'invalid_api_key', '203.0.113.9');
  watch.note('public', 'endpoint_not_allowed', '203.0.113.9');
  watch.note('admin', 'invalid_api_key', '203.0.113.9');

  watch.flush();

  expect(counted).toHaveLength(502);
  expect(log.lines.map(({ fields }) => fields)).toEqual([
    { address: '203.0.113.9', count: 501, errors: { invalid_api_key: 500, endpoint_not_allowed: 1 } },
    { address: '203.0.113.9', count: 1, errors: { invalid_api_key: 1 } },
  ]);
});

it('writes a bounded number of lines for a flood from many addresses', () => {
  const { log, watch } = start();
  for (let host = 0; host < 5_000; host += 1) watch.note('public', 'missing_api_key', `2001:db8::${host.toString(16)}`);

  watch.flush();

  expect(log.lines).toHaveLength(101);
  expect(log.lines.at(-1)?.fields).toMatchObject({ address: 'others', count: 4_900 });
});

it('writes nothing twice, and nothing of errors that are no refusal', () => {
  const { log, watch } = start();
  watch.note('public', 'not_found', '203.0.113.9');
  watch.note('public', 'expired_api_key', '203.0.113.9');
  watch.flush();
  watch.flush();

  expect(log.lines).toHaveLength(1);
});

it('writes one line for an address that got 404 again and again, and none for a few', () => {
  const { log, counted, watch } = start();
  for (let count = 0; count < 29; count += 1) watch.note('public', 'not_found', '203.0.113.8');
  for (let count = 0; count < 40; count += 1) watch.note('public', 'not_found', '203.0.113.9');
  watch.note('admin', 'not_found', '203.0.113.9');

  watch.flush();
  watch.flush();

  expect(counted.filter((each) => each === 'public 404')).toHaveLength(69);
  expect(log.lines.map(({ message, fields }) => ({ message, ...fields }))).toEqual([
    {
      message: 'Calls of an address to the API found nothing within the last minute.',
      address: '203.0.113.9',
      count: 40,
      errors: { not_found: 40 },
    },
  ]);
});

it('an address that is refused has its line whatever others do not find', () => {
  const { log, watch } = start();
  for (let host = 0; host < 5_000; host += 1) watch.note('public', 'not_found', `2001:db8::${host.toString(16)}`);
  watch.note('public', 'invalid_api_key', '203.0.113.9');

  watch.flush();

  expect(log.lines.map(({ fields }) => fields['address'])).toEqual(['203.0.113.9', 'others']);
});
