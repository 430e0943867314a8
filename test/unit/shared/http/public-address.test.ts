import { expect, it } from '@jest/globals';

import { isPublicAddress } from '../../../../shared/http/public-address.ts';

it.each([
  '8.8.8.8',
  '1.1.1.1',
  '172.15.255.255',
  '172.32.0.1',
  '192.167.255.255',
  '100.63.255.255',
  '100.128.0.1',
  '169.253.1.1',
  '198.17.255.255',
  '198.20.0.1',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2001:4860:4860::8888',
  '2a00:1450:4001:82a::200e',
])('%s is public', (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

/** Each range by its first and last addresses, or by one within. */
const NOT_PUBLIC: Record<string, string[]> = {
  'this host': ['0.0.0.0'],
  'this network': ['0.1.2.3'],
  loopback: ['127.0.0.1', '127.255.255.254', '::1'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.0.1'],
  'carrier NAT': ['100.64.0.1', '100.127.255.255'],
  'link-local, cloud metadata': ['169.254.169.254'],
  'protocol assignments': ['192.0.0.1'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  '6to4 relays': ['192.88.99.1'],
  benchmarking: ['198.18.0.1', '198.19.255.255', '2001:2::1'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  reserved: ['240.0.0.1'],
  broadcast: ['255.255.255.255'],
  unspecified: ['::'],
  'IPv4-compatible': ['::127.0.0.1'],
  'IPv4-compatible, public': ['::8.8.8.8'],
  'IPv4-compatible in hex': ['::7f00:1'],
  'IPv4-mapped': ['::ffff:127.0.0.1'],
  'IPv4-mapped, public': ['::ffff:8.8.8.8'],
  'IPv4-mapped in hex': ['::ffff:7f00:1'],
  'IPv4-translated': ['::ffff:0:127.0.0.1'],
  NAT64: ['64:ff9b::7f00:1'],
  'NAT64, local': ['64:ff9b:1::7f00:1'],
  discard: ['100::1'],
  '6to4': ['2002:7f00:1::'],
  '6to4, public': ['2002:808:808::1'],
  Teredo: ['2001:0:7f00:1::1'],
  ORCHID: ['2001:10::1'],
  ORCHIDv2: ['2001:20::1'],
  'segment routing': ['5f00::1'],
  'unique local': ['fc00::1', 'fd12:3456:789a::1'],
  'link-local': ['fe80::1'],
  'link-local with a zone': ['fe80::1%eth0'],
  'a zone on a public address': ['2606:4700:4700::1111%lo'],
  'site-local': ['fec0::1'],
  ISATAP: ['2606:4700::5efe:7f00:1', '2606:4700::200:5efe:7f00:1'],
  'outside of what is given to hosts': ['4000::1'],
  'a name': ['example.com'],
  octal: ['0177.0.0.1'],
  short: ['127.1'],
  'a number': ['2130706433'],
  nothing: [''],
};

it.each(Object.entries(NOT_PUBLIC).flatMap(([what, addresses]) => addresses.map((address) => [what, address])))(
  '%s (%s) is not public',
  (_what, address = '') => {
    expect(isPublicAddress(address)).toBe(false);
  },
);
