// Exports what is stored of an entity and saves the archive. No packages; reads BASE_URL and API_KEY.
// node export.mjs pupil-42
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const { BASE_URL, API_KEY } = process.env;
const [, , entityId] = process.argv;
if (entityId === undefined) {
  console.error('Usage: node export.mjs pupil-42 (the entity_id of your chat requests)');
  process.exit(2);
}

async function call(path, body) {
  const headers = { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json' };
  const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) };
  const response = await fetch(`${BASE_URL}${path}`, init);
  if (!response.ok) throw new Error((await response.json()).error.message);
  return response;
}

let job = await (await call('/compliance/exports', { scope: 'entity', entity_id: entityId })).json();
while (job.status === 'queued' || job.status === 'in_progress') {
  await sleep(1_000);
  job = await (await call(`/compliance/exports/${job.id}`)).json();
}
if (job.status === 'failed') throw new Error(job.error);

const file = Buffer.from(await (await call(`/compliance/exports/${job.id}/download`)).arrayBuffer());
if (createHash('sha256').update(file).digest('hex') !== job.sha256) throw new Error('The download is incomplete.');
await writeFile(`${job.id}.zip`, file);
console.log(`${job.id}.zip`, job.files.map(({ name, rows }) => `${name}: ${rows}`).join(', '));
