import { describe, expect, it } from '@jest/globals';

import { readWebhookUrl } from '../../../../shared/http/public-address.ts';

describe('a receiver on the Internet', () => {
  it.each([
    'https://example.com',
    'https://example.com/hook?tenant=1',
    'https://example.com:443/',
    'https://example.com:8443/',
    'https://EXAMPLE.com./hook',
    'https://8.8.8.8/hook',
    'https://[2606:4700:4700::1111]/hook',
    'https://bücher.example.com/',
  ])('a receiver on the Internet may be %s', (url) => {
    expect(readWebhookUrl(url, false)).toMatchObject({ ok: true });
  });

  it.each([
    ['plain http', 'http://example.com/', 'https://'],
    ['another protocol', 'ftp://example.com/', 'https://'],
    ['a file', 'file:///etc/passwd', 'URL'],
    ['data', 'data:text/plain,hi', 'URL'],
    ['no URL', 'example.com/hook', 'URL'],
    ['nothing', '', 'URL'],
    ['credentials', 'https://user:word@example.com/', 'user name'],
    ['a user name', 'https://user@example.com/', 'user name'],
    ['a fragment', 'https://example.com/#a', 'fragment'],
    ['the port of mail', 'https://example.com:25/', 'port'],
    ['the port of SSH', 'https://example.com:22/', 'port'],
    ['the port of http', 'https://example.com:80/', 'port'],
    ['localhost', 'https://localhost/', 'public Internet'],
    ['localhost with a dot', 'https://localhost./', 'public Internet'],
    ['localhost with dots', 'https://localhost../', 'public Internet'],
    ['a name below localhost', 'https://a.localhost/', 'public Internet'],
    ['localhost in capitals', 'https://LOCALHOST/', 'public Internet'],
    ['a name without a dot', 'https://intranet/', 'public Internet'],
    ['cloud metadata', 'https://metadata.google.internal/', 'public Internet'],
    ['multicast DNS', 'https://printer.local/', 'public Internet'],
    ['a home network', 'https://router.home.arpa/', 'public Internet'],
    ['loopback', 'https://127.0.0.1/', 'public Internet'],
    ['loopback with a dot', 'https://127.0.0.1./', 'public Internet'],
    ['loopback, short', 'https://127.1/', 'public Internet'],
    ['loopback as a number', 'https://2130706433/', 'public Internet'],
    ['loopback in octal', 'https://0177.0.0.1/', 'public Internet'],
    ['loopback in octal, whole', 'https://017700000001/', 'public Internet'],
    ['loopback in hex', 'https://0x7f000001/', 'public Internet'],
    ['loopback in hex parts', 'https://0x7f.0x0.0x0.0x1/', 'public Internet'],
    ['loopback in full-width digits', 'https://１２７.０.０.１/', 'public Internet'],
    ['loopback, percent-encoded', 'https://%31%32%37.0.0.1/', 'public Internet'],
    ['zero', 'https://0/', 'public Internet'],
    ['IPv6 loopback', 'https://[::1]/', 'public Internet'],
  ])('a receiver on the Internet may not be %s', (_what, url, word) => {
    const read = readWebhookUrl(url, false);

    expect(read).toMatchObject({ ok: false, fault: expect.stringContaining(word) });
  });
});

describe('with private addresses allowed', () => {
  it.each(['http://127.0.0.1:9000/hook', 'https://localhost/', 'http://[::1]:80/'])('may be %s', (url) => {
    expect(readWebhookUrl(url, true)).toMatchObject({ ok: true });
  });

  it.each(['ftp://127.0.0.1/', 'http://user@127.0.0.1/', 'not a URL'])('may not be %s', (url) => {
    expect(readWebhookUrl(url, true)).toMatchObject({ ok: false });
  });
});
