// Deletes an entity from every store and prints the report. No packages; reads BASE_URL and API_KEY.
// node delete.mjs pupil-42
import { setTimeout as sleep } from 'node:timers/promises';

const { BASE_URL, API_KEY } = process.env;
const [, , entityId] = process.argv;
if (entityId === undefined) {
  console.error('Usage: node delete.mjs pupil-42 (the entity_id of your chat requests)');
  process.exit(2);
}
const headers = { Authorization: `Bearer ${API_KEY}`, 'Content-Type': 'application/json' };

async function json(response) {
  const body = await response.json();
  if (!response.ok) throw new Error(body.error.message);
  return body;
}

const deletion = { scope: 'entity', entity_id: entityId, reason: 'Request no. 17' };
const url = `${BASE_URL}/compliance/deletions`;
let job = await json(await fetch(url, { method: 'POST', headers, body: JSON.stringify(deletion) }));
while (job.status === 'queued' || job.status === 'in_progress') {
  await sleep(1_000);
  job = await json(await fetch(`${url}/${job.id}`, { headers }));
}
console.log(job.status, job.entity_hash, job.report);
