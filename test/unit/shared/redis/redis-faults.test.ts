import { expect, it } from '@jest/globals';

import { redisStartFault } from '../../../../shared/redis/redis-faults.ts';

it.each([
  ['SELF_SIGNED_CERT_IN_CHAIN', 'REDIS_TLS_CA_FILE'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'REDIS_TLS_CA_FILE'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'REDIS_TLS_CA_FILE'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'REDIS_TLS_CA_FILE'],
  ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'REDIS_TLS_CERT_FILE'],
  ['ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'REDIS_TLS_CERT_FILE'],
  ['ECONNRESET', 'REDIS_TLS_CERT_FILE'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'REDIS_URL'],
  ['CERT_HAS_EXPIRED', 'Renew'],
])('%s: the sentence names %s', (code, setting) => {
  const error = Object.assign(new Error('The words may change.'), { code });
  const fault = redisStartFault({ error, isEncrypted: true });

  expect(fault).toContain(setting);
  expect(fault).not.toContain('does not answer');
});
