import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';

import { expect, it } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse, parseAllDocuments } from 'yaml';

import { ROOT } from '../../../scripts/harness/program.ts';

const FOLDER = join(ROOT, 'deploy/kubernetes');
/** Unlike the servers' own, these schemas refuse a property that they do not know. */
const ajv = new Ajv2020({ allowUnionTypes: true, strictTypes: false }).addSchema(
  JSON.parse(readFileSync(join(import.meta.dirname, 'schemas.json'), 'utf8')) as object,
  'kubernetes',
);
/** Of the Prometheus operator and the Gateway API; their schemas are not among these. */
const UNCHECKED = new Set(['PodMonitor', 'PrometheusRule', 'HTTPRoute']);

interface Manifest {
  kind: string;
  metadata: { name: string };
}

interface Kustomization {
  resources: string[];
  configMapGenerator?: { envs?: string[] }[];
  patches?: { target?: { kind: string }; patch: string }[];
}

const kustomizationOf = (folder: string) =>
  parse(readFileSync(join(FOLDER, folder, 'kustomization.yaml'), 'utf8')) as Kustomization;
/** Files of the folder itself, without what it builds upon. */
const filesOf = (folder: string) => kustomizationOf(folder).resources.filter((file) => !file.startsWith('../'));

const folders = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory());

const manifests = folders.flatMap(({ name: folder }) =>
  filesOf(folder).flatMap((file) =>
    parseAllDocuments(readFileSync(join(FOLDER, folder, file), 'utf8')).map((document) => ({
      where: `${folder}/${file}`,
      manifest: document.toJS() as Manifest,
    })),
  ),
);

it('a kustomization names every manifest of its folder', () => {
  for (const { name: folder } of folders) {
    const files = readdirSync(join(FOLDER, folder)).filter((file) => file !== 'kustomization.yaml');
    const settings = (kustomizationOf(folder).configMapGenerator ?? []).flatMap(({ envs = [] }) => envs);
    expect([...filesOf(folder), ...settings].toSorted()).toEqual(files.toSorted());
  }
});

const NAMED = manifests.map(({ where, manifest }): [string, Manifest] => [
  `${where}: ${manifest.kind} ${manifest.metadata.name}`,
  manifest,
]);

it.each(NAMED)('fits the schema: %s', (_name, manifest) => {
  if (UNCHECKED.has(manifest.kind)) return;
  const fits = ajv.getSchema(`kubernetes#/$defs/${manifest.kind}`);
  expect([fits?.(manifest), fits?.errors]).toEqual([true, null]);
});

interface PodSpec {
  terminationGracePeriodSeconds: number;
  securityContext: object;
  containers: {
    command: string[];
    env?: { name: string; valueFrom: { secretKeyRef: { name: string; optional?: boolean } } }[];
    securityContext: object;
    readinessProbe: { httpGet: { path: string } };
    livenessProbe: { httpGet: { path: string } };
    resources: { limits: { memory: string } };
  }[];
}

interface Policy {
  ingress?: { from?: object[]; ports?: { port: string | number }[] }[];
  egress?: { to?: object[] }[];
}

type DeploymentManifest = Manifest & { spec: { template: { spec: PodSpec } } };

const ofKind = (kind: string) => manifests.flatMap(({ manifest }) => (manifest.kind === kind ? [manifest] : []));

const deployments = (ofKind('Deployment') as DeploymentManifest[]).map(({ metadata, spec }): [string, PodSpec] => [
  metadata.name,
  spec.template.spec,
]);
const settings = parseEnv(readFileSync(join(FOLDER, 'base/settings.env'), 'utf8'));

it.each(deployments)('%s runs without rights and writes nowhere', (_name, { securityContext, containers }) => {
  expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  for (const container of containers) {
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  }
});

it.each([
  ['parley-ingress', Number(settings['DRAIN_SECONDS']) + Number(settings['SHUTDOWN_GRACE_SECONDS'])],
  ['parley-worker', Number(settings['REQUEST_TIMEOUT_SECONDS'])],
])('%s has longer to stop than it may take', (name, own) => {
  const pod = deployments.find(([deployment]) => deployment === name)?.[1];

  expect(pod?.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(own + 10);
});

it('a worker gets each secret that it reads, during a rotation of the credentials key, too, and no token', () => {
  const worker = deployments.find(([deployment]) => deployment === 'parley-worker')?.[1];
  const fromSecrets = (worker?.containers[0]?.env ?? []).filter(
    ({ valueFrom }) => valueFrom.secretKeyRef.name === 'parley-secrets',
  );

  expect(fromSecrets.map(({ name, valueFrom }) => [name, valueFrom.secretKeyRef.optional ?? false])).toEqual([
    ['CREDENTIALS_KEY', false],
    ['CREDENTIALS_KEYS', true],
    ['MODERATION_API_KEY', true],
  ]);
});

it.each(deployments)('%s stays alive while a store is away, and out of the service', (_name, { containers }) => {
  expect(containers[0]?.livenessProbe.httpGet.path).toBe('/health/live');
  expect(containers[0]?.readinessProbe.httpGet.path).toBe('/health/ready');
});

const policies = (ofKind('NetworkPolicy') as (Manifest & { spec: Policy })[]).map(
  ({ metadata, spec }): [string, Policy] => [metadata.name, spec],
);

it.each(policies)('%s says of each way in and out who is at its other end', (_name, { ingress = [], egress = [] }) => {
  for (const { from = [] } of ingress) expect(from).not.toEqual([]);
  for (const { to = [] } of egress) expect(to).not.toEqual([]);
});

it('an ingress has room above what bodies that are being read may hold', () => {
  const limits = deployments.find(([name]) => name === 'parley-ingress')?.[1].containers[0]?.resources.limits;

  expect(limits?.memory).toBe('2Gi');
});

it.each(['keda', 'hpa'])(
  '%s decides the number of processes: a new version does not begin with two of each',
  (folder) => {
    const { resources, patches = [] } = kustomizationOf(folder);

    expect(resources).toContain('../base');
    expect(patches.map(({ target, patch }) => [target?.kind, parse(patch)])).toEqual([
      ['Deployment', [{ op: 'remove', path: '/spec/replicas' }]],
    ]);
  },
);

it('gives streams at a stop as long as a request may take, and trusts no proxy that nobody has named', () => {
  expect(settings['SHUTDOWN_GRACE_SECONDS']).toBe(settings['REQUEST_TIMEOUT_SECONDS']);
  expect(settings).not.toHaveProperty('TRUST_PROXY');
});

it('lets nodes be drained while a store is away and no pod is ready', () => {
  const budgets = ofKind('PodDisruptionBudget') as (Manifest & { spec: object })[];

  expect(budgets).toHaveLength(2);
  for (const { spec } of budgets) expect(spec).toMatchObject({ unhealthyPodEvictionPolicy: 'AlwaysAllow' });
});

it('lets Prometheus reach the metrics of both kinds, and nobody the administration', () => {
  const ports = policies.flatMap(([, { ingress = [] }]) =>
    ingress.flatMap((way) => way.ports?.map(({ port }) => port)),
  );

  expect(new Set(ports)).toEqual(new Set(['http', 'metrics']));
});

it('gives the Prometheus operator the alerts of deploy/prometheus', () => {
  const [rule] = ofKind('PrometheusRule') as (Manifest & { spec: object })[];

  expect(rule?.spec).toEqual(parse(readFileSync(join(ROOT, 'deploy/prometheus/rules.yaml'), 'utf8')));
});
