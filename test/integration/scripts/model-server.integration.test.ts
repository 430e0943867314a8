import { describe, expect, it } from '@jest/globals';

import { freePort } from '../../../scripts/embedded/ports.ts';
import { findModel, modelNamesAt } from '../../../scripts/start/model-server.ts';
import { useScriptedServer } from '../../support/scripted-server.ts';

describe('the model server of PROVIDER_URL', () => {
  const scripted = useScriptedServer();

  /** Answers each path with its JSON, others with 404. */
  function serve(documents: Record<string, unknown>): string {
    scripted.server.answer((res, req) => {
      const document = documents[req.url ?? ''];
      res.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' });
      res.end(JSON.stringify(document ?? {}));
    });
    return `${scripted.server.url}/v1`;
  }
  const list = (...data: object[]) => ({ object: 'list', data });
  const find = (url: string, model?: string, key?: string) => findModel({ url, model, key });

  it('answers with its only model, and is asked for it with PROVIDER_KEY', async () => {
    const url = serve({ '/v1/models': list({ id: 'only', object: 'model' }) });

    expect(await find(url, undefined, 'secret')).toMatchObject({ url, model: 'only', key: 'secret' });
    expect(scripted.server.requests[0]?.headers.authorization).toBe('Bearer secret');
  });

  it.each([
    ['llama-server', { id: 'm', owned_by: 'llamacpp', meta: { n_ctx: 2_048, n_ctx_train: 8_192 } }, 2_048],
    ['an older llama-server', { id: 'm', owned_by: 'llamacpp', meta: { n_ctx_train: 8_192 } }, 1_024],
    ['vLLM', { id: 'm', owned_by: 'vllm', max_model_len: 40_960 }, 40_960],
    ['Groq', { id: 'm', owned_by: 'Meta', context_window: 131_072 }, 131_072],
    ['Ollama, which does not tell', { id: 'm', owned_by: 'library' }, 8_192],
  ])('has the context window that it tells: %s', async (_server, model, contextWindow) => {
    const url = serve({ '/v1/models': list(model), '/props': { default_generation_settings: { n_ctx: 1_024 } } });

    expect(await find(url)).toMatchObject({ model: 'm', contextWindow });
  });

  it("takes Ollama's short name of a model", async () => {
    const url = serve({ '/v1/models': list({ id: 'gemma3:latest' }, { id: 'qwen3:4b' }) });

    expect(await find(url, 'gemma3')).toMatchObject({ model: 'gemma3:latest' });
  });

  it('is refused in a sentence that lists its models where it has several, or not the one that is named', async () => {
    const url = serve({ '/v1/models': list({ id: 'a' }, { id: 'b' }) });

    await expect(find(url)).rejects.toThrow(`${url} has 2 models: set PROVIDER_MODEL to one of a, b.`);
    await expect(find(url, 'c')).rejects.toThrow(`${url} has no model "c": set PROVIDER_MODEL to one of a, b.`);
  });

  it('is refused in a sentence where it is no such server, wants a key or is not there', async () => {
    await expect(find(serve({}))).rejects.toThrow(/names no model \(status 404\): set PROVIDER_URL to .* in \/v1\.$/);
    scripted.server.answer((res) => res.writeHead(401).end());
    await expect(find(scripted.server.url)).rejects.toThrow('answers 401: set PROVIDER_KEY to a key of that server.');
    await expect(find(`http://127.0.0.1:${await freePort()}/v1`)).rejects.toThrow(
      /^Nothing answers at .*\/models \(ECONNREFUSED\): start the model server, or set PROVIDER_URL/,
    );
  });

  it('offers no models where none answers', async () => {
    expect(await modelNamesAt(`http://127.0.0.1:${await freePort()}/v1`, 1_000)).toEqual([]);
    expect(await modelNamesAt(serve({ '/v1/models': list({ id: 'a' }) }), 1_000)).toEqual(['a']);
  });
});
