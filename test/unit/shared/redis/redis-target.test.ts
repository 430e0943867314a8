import { describe, expect, it } from '@jest/globals';

import { parseRedisUrl } from '../../../../shared/redis/redis-target.ts';

describe('parseRedisUrl', () => {
  it.each(['redis://127.0.0.1:6379', 'rediss://user:secret@cache.internal:6380/2'])(
    'keeps %s for the client',
    (url) => {
      expect(parseRedisUrl(url)).toEqual({ kind: 'single', url, files: {} });
    },
  );

  it('reads the nodes of a cluster', () => {
    expect(parseRedisUrl('redis+cluster://h1:7000,h2:7001,h3')).toEqual({
      kind: 'cluster',
      nodes: [
        { host: 'h1', port: 7000 },
        { host: 'h2', port: 7001 },
        { host: 'h3', port: 6379 },
      ],
      isEncrypted: false,
      files: {},
    });
  });

  it.each(['rediss+cluster://h1:7000', 'rediss+sentinel://h1:26379/mymaster'])('reads %s as encrypted', (url) => {
    expect(parseRedisUrl(url)).toMatchObject({ isEncrypted: true });
  });

  it('reads sentinels and the name of their master', () => {
    expect(parseRedisUrl('redis+sentinel://h1:26380,h2/mymaster')).toEqual({
      kind: 'sentinel',
      nodes: [
        { host: 'h1', port: 26380 },
        { host: 'h2', port: 26379 },
      ],
      name: 'mymaster',
      sentinels: { isEncrypted: false },
      isEncrypted: false,
      files: {},
    });
  });

  it('reads what sentinels ask for themselves', () => {
    const query = 'sentinel_username=watch&sentinel_password=p%26ss%2Fword&sentinel_tls=false';
    expect(parseRedisUrl(`rediss+sentinel://:secret@h1/mymaster?${query}`)).toMatchObject({
      name: 'mymaster',
      password: 'secret',
      isEncrypted: true,
      sentinels: { username: 'watch', password: 'p&ss/word', isEncrypted: false },
    });
  });

  it('reads user and password, percent-encoded where they need it', () => {
    expect(parseRedisUrl('redis+cluster://app:p%40ss%2Fword@h1:7000')).toMatchObject({
      username: 'app',
      password: 'p@ss/word',
    });
    expect(parseRedisUrl('redis+sentinel://:secret@h1/mymaster')).toEqual({
      kind: 'sentinel',
      nodes: [{ host: 'h1', port: 26379 }],
      name: 'mymaster',
      password: 'secret',
      sentinels: { isEncrypted: false },
      isEncrypted: false,
      files: {},
    });
  });

  it('takes the files for TLS out of any address', () => {
    const files = { ca: '/a b/ca.pem', cert: '/c.pem', key: '/k.pem' };
    const query = 'tls_ca=%2Fa+b%2Fca.pem&tls_cert=%2Fc.pem&tls_key=%2Fk.pem';
    expect(parseRedisUrl(`rediss://h1:6380/2?family=6&${query}`)).toEqual({
      kind: 'single',
      url: 'rediss://h1:6380/2?family=6',
      files,
    });
    expect(parseRedisUrl(`rediss+cluster://h1:7000?${query}`)).toMatchObject({ nodes: [{ host: 'h1' }], files });
    expect(parseRedisUrl(`rediss+sentinel://h1/mymaster?sentinel_username=watch&${query}`)).toMatchObject({
      name: 'mymaster',
      sentinels: { username: 'watch' },
      files,
    });
  });

  it.each(['redis+cluster://h1:7000/2', 'redis+sentinel://h1/mymaster/2'])(
    'refuses %s, which names a database that a group of servers does not have',
    (url) => {
      expect(() => parseRedisUrl(url)).toThrow(/have no database but 0/);
    },
  );

  it('keeps a colon that is part of the password', () => {
    expect(parseRedisUrl('redis+cluster://app:a:b:c@h1:7000')).toMatchObject({ username: 'app', password: 'a:b:c' });
  });

  it('reads IPv6 addresses', () => {
    expect(parseRedisUrl('redis+cluster://[::1]:7000,[fd00::2]')).toMatchObject({
      nodes: [
        { host: '::1', port: 7000 },
        { host: 'fd00::2', port: 6379 },
      ],
    });
  });

  it.each(['redis+sentinel://h1:26379', 'redis+sentinel://h1:26379/'])('refuses %s, which names no master', (url) => {
    expect(() => parseRedisUrl(url)).toThrow(/must end in the name of the master/);
  });

  it.each(['redis+cluster://h1:port', 'redis+cluster://h1:70000', 'redis+cluster://h1:7000,,h2', 'redis+cluster://'])(
    'refuses %s, which names no address that could exist',
    (url) => {
      expect(() => parseRedisUrl(url)).toThrow(/REDIS_URL/);
    },
  );
});
