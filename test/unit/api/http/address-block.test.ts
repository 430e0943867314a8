import { expect, it } from '@jest/globals';

import { addressBlockOf } from '../../../../api/http/head-guards.ts';

it.each([
  ['198.51.100.1', '198.51.100.1'],
  ['::ffff:198.51.100.1', '198.51.100.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['64:ff9b::198.51.100.1', '64:ff9b:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['198.51.100.1:51234', '198.51.100.1'],
  ['[::ffff:198.51.100.1]:51234', '198.51.100.1'],
  ['[2001:db8::1]:51234', '2001:db8:0:0::/64'],
  ['[2001:db8::1]', '2001:db8:0:0::/64'],
  ['_hidden', 'unknown'],
  ['x'.repeat(16_000), 'unknown'],
  [undefined, 'unknown'],
])('failures from %s are counted by %s', (ip, block) => {
  expect(addressBlockOf(ip)).toBe(block);
});
