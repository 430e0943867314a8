// Gives the workers their new image and waits until all of them run it: `helm upgrade` changes the ingresses afterwards.
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

const { API, ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount', NAMESPACE, DEPLOYMENT, IMAGE } = process.env;
const url = `${API}/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${DEPLOYMENT}`;

async function call(method, body) {
  const headers = {
    Authorization: `Bearer ${readFileSync(`${ACCOUNT}/token`, 'utf8').trim()}`,
    'Content-Type': 'application/strategic-merge-patch+json',
  };
  const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const isDone = ({ metadata, spec, status }) =>
  status.observedGeneration >= metadata.generation &&
  (status.updatedReplicas ?? 0) >= spec.replicas &&
  status.replicas === status.updatedReplicas &&
  (status.availableReplicas ?? 0) >= status.updatedReplicas;

let deployment = await call('GET');
// An upgrade that only changes settings, perhaps to repair workers that do not start, waits for nobody.
const isChange = deployment.spec.template.spec.containers.some(
  ({ name, image }) => name === 'worker' && image !== IMAGE,
);
if (isChange)
  deployment = await call('PATCH', {
    spec: { template: { spec: { containers: [{ name: 'worker', image: IMAGE }] } } },
  });
while (isChange && !isDone(deployment)) {
  const { replicas, updatedReplicas = 0 } = deployment.status;
  console.log(`${updatedReplicas} of ${replicas} workers run ${IMAGE}`);
  await pause(Number(process.env.PAUSE_MS ?? 3_000));
  deployment = await call('GET');
}
console.log(`The workers run ${IMAGE}.`);
