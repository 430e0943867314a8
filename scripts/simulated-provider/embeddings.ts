import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { readModel, readWhole, refuse } from './chat-request.ts';
import { readJson, sendJson } from './http-io.ts';
import { tokensOfText } from './tokens.ts';

const DIMENSIONS = 1_536;
const DIMENSIONS_MAX = 4_096;
const INPUTS_MAX = 2_048;
/** Each word adds to this many places of a vector. */
const PLACES = 16;

interface EmbeddingRequest {
  model: string;
  /** Texts, or the tokens of texts. */
  inputs: readonly (string | readonly number[])[];
  dimensions: number;
  isBase64: boolean;
}

/** Reads `POST /v1/embeddings`. Throws RequestError. */
export async function readEmbeddingRequest(req: IncomingMessage): Promise<EmbeddingRequest> {
  const { model, body } = readModel(await readJson(req));
  const format = body['encoding_format'] ?? 'float';
  if (format !== 'float' && format !== 'base64') refuse('encoding_format', 'must be float or base64');
  const dimensions = readWhole(body, 'dimensions', 1) ?? DIMENSIONS;
  if (dimensions > DIMENSIONS_MAX) refuse('dimensions', `must be at most ${DIMENSIONS_MAX}`);
  return { model, inputs: readInputs(body['input']), dimensions, isBase64: format === 'base64' };
}

function readInputs(input: unknown): EmbeddingRequest['inputs'] {
  if (typeof input === 'string') return readInputs([input]);
  const list: readonly unknown[] = Array.isArray(input) ? input : [];
  const isTokens = (value: unknown): value is number[] =>
    Array.isArray(value) && value.length > 0 && value.every((token) => Number.isSafeInteger(token));
  if (isTokens(list)) return [list];
  const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
  const inputs = list.filter((entry) => isText(entry) || isTokens(entry));
  if (inputs.length === 0 || inputs.length < list.length || inputs.length > INPUTS_MAX)
    refuse('input', `must be a text, a list of tokens, or 1 to ${INPUTS_MAX} of these, none of them empty`);
  return inputs;
}

export function countInputTokens(inputs: EmbeddingRequest['inputs']): number {
  return inputs.reduce((sum, input) => sum + (typeof input === 'string' ? tokensOfText(input) : input.length), 0);
}

export function sendEmbeddings(res: ServerResponse, model: string, request: EmbeddingRequest, tokens: number): void {
  const data = request.inputs.map((input, index) => {
    const vector = vectorOf(input, request.dimensions);
    const embedding = request.isBase64 ? Buffer.from(vector.buffer).toString('base64') : Array.from(vector);
    return { object: 'embedding', index, embedding };
  });
  sendJson(res, 200, { object: 'list', data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } });
}

/** A vector of length 1, always the same for a text; texts that share words are near each other. */
function vectorOf(input: string | readonly number[], dimensions: number): Float32Array {
  const words =
    typeof input === 'string' ? (input.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [input]) : input.map(String);
  const sums = new Float32Array(dimensions);
  for (const word of words) {
    const digest = createHash('sha512').update(word).digest();
    for (let place = 0; place < PLACES; place++) {
      const number = digest.readUInt32BE(place * 4);
      const at = (number >>> 1) % dimensions;
      sums[at] = (sums[at] ?? 0) + (number % 2 === 0 ? 1 : -1);
    }
  }
  const length = Math.hypot(...sums);
  if (length === 0) sums[0] = 1;
  return length === 0 ? sums : sums.map((value) => value / length);
}
