import { imageDimensionsFromData } from 'image-dimensions';

import { words } from './chat-request.ts';
import type { ChatMessage, ChatRequest } from './chat-request.ts';
import { isRecord } from './parse.ts';

/**
 * Parts that a model reads besides `content`: calls and definitions of tools, as text for moderation and counts;
 * images, files and sound count as tokens only.
 */

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
const isWords = (value: unknown) => isText(value) || (typeof value === 'object' && value !== null);

/** Includes fields that this service does not know: a provider gets them all. */
function textsIn(value: unknown, unread: ReadonlySet<string> = new Set()): string[] {
  const fields = isRecord(value) ? Object.entries(value) : [];
  return fields.filter(([name, each]) => !unread.has(name) && isWords(each)).map(([, each]) => asText(each));
}

function textsOfCall(call: unknown): string[] {
  const { function: called, custom, ...others } = isRecord(call) ? call : {};
  return [called, custom, others].flatMap((each) => textsIn(each));
}

/** Read elsewhere, or data. */
const UNREAD_OF_MESSAGE = words('role content tool_calls');
const UNREAD_OF_PART = words('type text refusal');
const DATA = words('url data file_data');

function textsOfPart(part: unknown): string[] {
  const { image_url: image, input_audio: sound, file, ...others } = isRecord(part) ? part : {};
  return [...textsIn(others, UNREAD_OF_PART), ...[image, sound, file].flatMap((each) => textsIn(each, DATA))];
}

/** Calls of tools, and whatever else the message and its parts have, such as names. */
export function textsBesideContent({ sent }: ChatMessage): string[] {
  const inside = [...list(sent?.['tool_calls']).flatMap(textsOfCall), ...list(sent?.['content']).flatMap(textsOfPart)];
  return [...inside, ...textsIn(sent, UNREAD_OF_MESSAGE)];
}

/** The content as lines: models get parts of text sent apart so, or as `content` has them. */
export function linesOf({ content, sent }: ChatMessage): string {
  const parts = list(sent?.['content']).filter(isRecord);
  const texts = parts.map(({ text, refusal }) => text ?? refusal).filter(isText);
  return texts.length > 1 ? texts.join('\n') : content;
}

export const textOf = (message: ChatMessage): string =>
  [message.content, ...textsBesideContent(message)].filter(isText).join('\n');

/** Settings, which no model reads as words. */
const SETTINGS = words(
  'stop user safety_identifier prompt_cache_key logit_bias reasoning_effort verbosity tool_choice modalities',
);

/** Texts that a model reads beside the messages: tools, a predicted answer, a schema, words in fields unknown here. */
export function textsBeside({ passed = {}, schema }: Pick<ChatRequest, 'passed' | 'schema'>): string[] {
  return [...textsIn(passed, SETTINGS), ...(schema === undefined ? [] : [asText(schema)])];
}

/**
 * Tokens of a small image that is seen once, and of each tile beside it (at most 8), after the image is fitted, in
 * pixels, into a square and its shorter side to `SIDE_MAX`.
 */
const IMAGE_TOKENS = 85;
const TILE_TOKENS = 170;
const TILES_MAX = 8;
const TILE_SIDE = 512;
const SQUARE_MAX = 2_048;
const SIDE_MAX = 768;
/** In base64; the size of an image is looked for within it. */
const IMAGE_HEAD_MAX = 64 * 1024;

/** Bytes per token. Sound has ten tokens a second: 32 kB as WAVE of speech, 4 kB in the smallest other files. */
const WAVE_BYTES = 3_200;
const SOUND_BYTES = 400;
/** Bytes per token of a file, text and layout together: an estimate, as no rule is published. */
const FILE_BYTES = 16;

/** Base64, with or without `data:…;base64,` in front of it. */
const bytesOf = (data: unknown): number =>
  isText(data) ? Math.ceil(((data.length - data.indexOf(',') - 1) * 3) / 4) : 0;

/** The most where the size is unknown, as behind any URL but a data URL. */
function tilesOf(url: unknown): number {
  if (!isText(url) || !/^data:/i.test(url)) return TILES_MAX;
  const at = url.indexOf(',') + 1;
  const size = imageDimensionsFromData(Buffer.from(url.slice(at, at + IMAGE_HEAD_MAX), 'base64'));
  if (size === undefined) return TILES_MAX;
  const sides = [size.width, size.height].sort((a, b) => a - b);
  const [short = 0, long = 0] = sides.map((side) => side * Math.min(1, SQUARE_MAX / Math.max(...sides)));
  const scale = Math.min(1, SIDE_MAX / short);
  return Math.max(1, Math.ceil((short * scale) / TILE_SIDE) * Math.ceil((long * scale) / TILE_SIDE));
}

function tokensOfPart(part: unknown): number {
  if (!isRecord(part)) return 0;
  const { image_url: image, input_audio: sound, file } = part;
  if (isRecord(image))
    return image['detail'] === 'low' ? IMAGE_TOKENS : IMAGE_TOKENS + tilesOf(image['url']) * TILE_TOKENS;
  if (isRecord(sound))
    return Math.ceil(bytesOf(sound['data']) / (sound['format'] === 'wav' ? WAVE_BYTES : SOUND_BYTES));
  return isRecord(file) ? Math.ceil(bytesOf(file['file_data']) / FILE_BYTES) : 0;
}

/** Tokens of what is not text in a message: the most that OpenAI's published rules give, as nothing is fetched. */
export function mediaTokensOf({ sent }: ChatMessage): number {
  return list(sent?.['content']).reduce<number>((sum, part) => sum + tokensOfPart(part), 0);
}
