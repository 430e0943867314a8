import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import tls from 'node:tls';

const FOLDER = join(import.meta.dirname, 'tls');
const CERT = join(FOLDER, 'localhost.cert.pem');

/** Of 127.0.0.1, and its own authority. */
export const LOCALHOST = { cert: CERT, key: join(FOLDER, 'localhost.key.pem'), ca: CERT };

/** Lets this process trust it, as NODE_EXTRA_CA_CERTS does where a process starts. Returns what takes that back. */
export function trustLocalhost(): () => void {
  const before = tls.getCACertificates('default');
  tls.setDefaultCACertificates([...before, readFileSync(CERT, 'utf8')]);
  return () => {
    tls.setDefaultCACertificates(before);
  };
}
