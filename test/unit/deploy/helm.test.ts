import { execFile } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { describe, expect, it } from '@jest/globals';
import { parseAllDocuments } from 'yaml';

import { ROOT } from '../../../scripts/harness/program.ts';
import { hasTool, runTool } from './tools.ts';

const CHART = 'deploy/helm/parley';

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string; annotations?: Record<string, string>; labels?: object };
  spec?: { template?: { metadata: { annotations?: object } }; triggers?: { metadata: { query?: string } }[] };
}

const render = async (...values: string[]) =>
  documentsOf(
    await runTool('helm', 'template', 'parley', CHART, '-n', 'parley', '--kube-version', '1.31.0', ...values),
  );
const documentsOf = (text: string) =>
  parseAllDocuments(text).flatMap((document) => (document.toJS() as Manifest | null) ?? []);

/** Without what only one of the two needs: a namespace, hashes of settings, and white space in queries. */
function plain(manifest: Manifest): [string, unknown] {
  const text = JSON.stringify(manifest, (key, value: unknown) =>
    ['query', 'expr'].includes(key) && typeof value === 'string'
      ? value.replace(/\s+/g, '').replaceAll('(', ' ( ')
      : value,
  ).replace(/parley-settings-\w{10}/g, 'parley-settings');
  const copy = JSON.parse(text) as Manifest;
  delete copy.metadata.namespace;
  delete copy.metadata.labels;
  delete copy.spec?.template?.metadata.annotations;
  return [`${copy.kind} ${copy.metadata.name}`, copy];
}
const byName = (manifests: Manifest[]) =>
  Object.fromEntries(
    manifests.filter(({ metadata }) => metadata.annotations?.['helm.sh/hook'] === undefined).map(plain),
  );

(hasTool('helm') ? describe : describe.skip)('the chart', () => {
  it.each([
    [['base'], []],
    [['keda'], ['--set', 'keda.enabled=true']],
    [['hpa'], ['--set', 'hpa.enabled=true']],
    [
      ['base', 'monitoring'],
      ['--set', 'monitoring.enabled=true'],
    ],
  ])('renders what kustomize builds of %s', async (folders, values) => {
    const built = await Promise.all(
      folders.map((folder) => runTool('kustomize', 'build', `deploy/kubernetes/${folder}`)),
    );

    expect(byName(await render(...values))).toEqual(byName(built.flatMap(documentsOf)));
  });

  it('passes its own lint', async () => {
    expect(await runTool('helm', 'lint', CHART, '--strict')).toContain('0 chart(s) failed');
  });

  it('takes a digest, a registry with a password, proxies, settings, labels, and routes of both kinds', async () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const manifests = byName(
      await render(
        ...[
          '--set',
          `image.digest=${digest},image.pullSecrets={registry},trustProxy=10.1.0.0/24,settings.LOG_LEVEL=warn`,
        ],
        ...['--set', 'ingress.enabled=true,httpRoute.enabled=true,grace.shutdownSeconds=60,requestTimeoutSeconds=1800'],
        ...[
          '--set',
          'monitoring.enabled=true,monitoring.labels.release=stack,monitoring.runbookUrl=https://wiki/runbook',
        ],
        ...['--set', 'extraEnv[0].name=A,extraEnv[0].value=b,existingSecret.keys=mine'],
      ),
    );
    const text = (name: string) => JSON.stringify(manifests[name]);

    expect(text('Deployment parley-worker')).toContain(`"image":"registry.example.com/parley@${digest}"`);
    expect(text('Deployment parley-worker')).toContain('"terminationGracePeriodSeconds":1860');
    expect(text('Deployment parley-worker')).toMatch(/"name":"mine".*\{"name":"A","value":"b"\}/);
    expect(text('Deployment parley-ingress')).toContain('"terminationGracePeriodSeconds":100');
    expect(text('ServiceAccount parley')).toContain('"imagePullSecrets":[{"name":"registry"}]');
    expect(manifests['ConfigMap parley-settings']).toMatchObject({
      data: { TRUST_PROXY: '10.1.0.0/24', LOG_LEVEL: 'warn', REQUEST_TIMEOUT_SECONDS: '1800' },
    });
    expect(Object.keys(manifests)).toEqual(expect.arrayContaining(['Ingress parley', 'HTTPRoute parley']));
    expect(text('PrometheusRule parley')).toContain('https://wiki/runbook#parleyrequestsfail');
    expect(text('PrometheusRule parley')).not.toContain('example.com');
  });

  it('refuses both autoscalers, and a value that it does not know', async () => {
    await expect(render('--set', 'keda.enabled=true,hpa.enabled=true')).rejects.toThrow('keda or hpa, not both');
    await expect(render('--set', 'trustProxies=10.1.0.0/24')).rejects.toThrow('trustProxies');
  });

  it('replaces the workers before anything else changes, unless told not to', async () => {
    const hooks = (manifests: Manifest[]) =>
      manifests.flatMap(({ kind, metadata }) =>
        metadata.annotations?.['helm.sh/hook'] === 'pre-upgrade' ? [kind] : [],
      );

    expect(hooks(await render()).toSorted()).toEqual(['Job', 'Role', 'RoleBinding', 'ServiceAccount']);
    expect(hooks(await render('--set', 'upgrade.workersFirst=false'))).toEqual([]);
  });
});

/** What the job of an upgrade calls, and says at last, while the API answers with these states of the Deployment. */
async function runJob(states: object[]): Promise<{ calls: string[]; stdout: string }> {
  const calls: string[] = [];
  const server = createServer((req, res) => {
    let body = '';
    req.on('data', (part: Buffer) => (body += part.toString()));
    req.on('end', () => {
      calls.push(`${req.method} ${req.url} ${req.headers.authorization} ${body}`);
      res.end(JSON.stringify(states[calls.length - 1]));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const account = mkdtempSync(join(tmpdir(), 'parley-account-'));
  writeFileSync(join(account, 'token'), 'secret\n');
  const env = {
    ...{ API: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, ACCOUNT: account, PAUSE_MS: '1' },
    ...{ NAMESPACE: 'parley', DEPLOYMENT: 'parley-worker', IMAGE: 'parley:2' },
  };
  const job = join(ROOT, CHART, 'files/workers-first.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [job], { env });
  server.close();
  return { calls, stdout };
}

const stateOf = (image: string, generation: number, status: object) => ({
  metadata: { generation: 2 },
  spec: { replicas: 2, template: { spec: { containers: [{ name: 'worker', image }] } } },
  status: { observedGeneration: generation, replicas: 2, ...status },
});
const PATH = '/apis/apps/v1/namespaces/parley/deployments/parley-worker Bearer secret';

it('the job of an upgrade sets the image of the workers and ends when all of them run it', async () => {
  const { calls, stdout } = await runJob([
    stateOf('parley:1', 1, {}),
    stateOf('parley:2', 1, {}),
    stateOf('parley:2', 2, { replicas: 3, updatedReplicas: 2, availableReplicas: 3 }),
    stateOf('parley:2', 2, { updatedReplicas: 2, availableReplicas: 2 }),
  ]);

  const patch = '{"spec":{"template":{"spec":{"containers":[{"name":"worker","image":"parley:2"}]}}}}';
  expect(calls).toEqual([`GET ${PATH} `, `PATCH ${PATH} ${patch}`, `GET ${PATH} `, `GET ${PATH} `]);
  expect(stdout).toContain('The workers run parley:2.');
});

it('the job of an upgrade waits for nobody where the image stays, as where new settings repair workers', async () => {
  const { calls } = await runJob([stateOf('parley:2', 2, { updatedReplicas: 2, availableReplicas: 0 })]);

  expect(calls).toEqual([`GET ${PATH} `]);
});
