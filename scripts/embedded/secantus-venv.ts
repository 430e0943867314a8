import { join } from 'node:path';

import { prepareVenv } from './python-venv.ts';
import type { VenvCommand, VenvOptions } from './python-venv.ts';

/** docs/spec.md#stores. */
const SECANTUS = {
  requirement: 'SecantusDB==0.7.0b3',
  hashes: join(import.meta.dirname, 'secantus-requirements.txt'),
  name: 'SecantusDB',
  program: 'secantusd-py',
  subject: 'MongoDB',
  folder: 'secantus-venv',
  takes: '20 seconds',
};

const SERVER = join(import.meta.dirname, 'secantus-server.py');

/** Creates the virtual environment once; several processes may call this at once. Rejects with one sentence. */
export async function prepareSecantus(options: VenvOptions): Promise<VenvCommand> {
  const { command } = await prepareVenv(SECANTUS, options);
  return { command, args: [SERVER] };
}
