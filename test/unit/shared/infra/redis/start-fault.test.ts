import { expect, it } from '@jest/globals';

import { redisStartFault } from '../../../../../shared/infra/redis/start-fault.ts';

it.each([
  ['self-signed certificate in certificate chain', 'REDIS_TLS_CA_FILE'],
  ['self-signed certificate', 'REDIS_TLS_CA_FILE'],
  ['unable to verify the first certificate', 'REDIS_TLS_CA_FILE'],
  ['unable to get local issuer certificate', 'REDIS_TLS_CA_FILE'],
  ['SSL routines:ssl3_read_bytes:tlsv13 alert certificate required:SSL alert number 116', 'REDIS_TLS_CERT_FILE'],
  ['SSL routines:ssl3_read_bytes:tlsv1 alert unknown ca:SSL alert number 48', 'REDIS_TLS_CERT_FILE'],
  ['write ECONNRESET', 'REDIS_TLS_CERT_FILE'],
  ["Hostname/IP does not match certificate's altnames: IP: 10.0.0.1 is not in the cert's list", 'REDIS_URL'],
  ['certificate has expired', 'Renew'],
])('%s: the sentence names %s', (message, setting) => {
  const fault = redisStartFault({ error: new Error(message), isEncrypted: true });

  expect(fault).toContain(setting);
  expect(fault).not.toContain('does not answer');
});
