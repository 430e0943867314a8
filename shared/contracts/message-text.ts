import { imageDimensionsFromData } from 'image-dimensions';

import type { ChatMessage, ChatRequest } from './chat-request.ts';
import { isRecord } from './parse.ts';

/**
 * The parts of a request that a model reads besides `content`: calls and definitions of tools as text, which moderation reads and
 * counts count, and images, files and sound, which count as tokens only.
 */

const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Name and argument text of a call of a tool, whichever kind it is. */
function textsOfCall(call: unknown): string[] {
  if (!isRecord(call)) return [];
  const said = [call['function'], call['custom']].find(isRecord) ?? call;
  return [said['name'], said['arguments'] ?? said['input']].filter(isText);
}

/** Fields of a message that say nothing to a reader, or whose text is read elsewhere. */
const UNREAD: ReadonlySet<string> = new Set(['role', 'content', 'tool_calls', 'tool_call_id', 'type']);

const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** All text of a message, in order: its content, the calls of tools, and whatever else it has, such as a name. */
export function textsOf({ content, sent }: ChatMessage): string[] {
  const own = content === '' ? [] : [content];
  if (sent === undefined) return own;
  const others = Object.entries(sent).filter(([name, value]) => !UNREAD.has(name) && value !== null);
  return [...own, ...list(sent['tool_calls']).flatMap(textsOfCall), ...others.map(([, value]) => asText(value))];
}

/** `textsOf` as one text. */
export const textOf = (message: ChatMessage): string =>
  message.sent === undefined ? message.content : textsOf(message).join('\n');

/** Settings, which no model reads as words. */
const SETTINGS: ReadonlySet<string> = new Set(
  (
    'temperature top_p stop seed user safety_identifier prompt_cache_key logit_bias reasoning_effort verbosity ' +
    'tool_choice web_search_options prompt_cache_retention modalities'
  ).split(' '),
);
const isWords = (value: unknown) => typeof value === 'string' || (typeof value === 'object' && value !== null);

/**
 * Texts of a request that a model reads beside its messages: definitions of tools, a predicted answer, the schema of one, and
 * whatever words are in fields that this service does not know.
 */
export function textsBeside({ passed = {}, schema }: Pick<ChatRequest, 'passed' | 'schema'>): string[] {
  const read = Object.entries(passed).filter(([name, value]) => !SETTINGS.has(name) && isWords(value));
  return [...read.map(([, value]) => asText(value)), ...(schema === undefined ? [] : [asText(schema)])];
}

/**
 * Tokens of an image that is seen once, small; and of each tile beside it, once the image fits into a square and its shorter
 * side is no longer than `SIDE_MAX`; in pixels. So there are at most 8 tiles.
 */
const IMAGE_TOKENS = 85;
const TILE_TOKENS = 170;
const TILES_MAX = 8;
const TILE_SIDE = 512;
const SQUARE_MAX = 2_048;
const SIDE_MAX = 768;
/** In base64, as far as the size of an image is looked for. */
const IMAGE_HEAD_MAX = 64 * 1024;

/** Bytes per token. Sound has ten tokens a second: 32 kB as WAVE of speech, 4 kB in the smallest other files. */
const WAVE_BYTES = 3_200;
const SOUND_BYTES = 400;
/** Of a file, text and layout together; a rough estimate, as no rule is published. */
const FILE_BYTES = 16;

/** The bytes of data in base64, with or without `data:…;base64,` in front of it. */
function bytesOf(data: unknown): number {
  return isText(data) ? Math.ceil(((data.length - data.indexOf(',') - 1) * 3) / 4) : 0;
}

/** The tiles of an image in a data URL; the most where its size is unknown, as it is behind any other URL. */
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
  if (image !== undefined) {
    const isLow = isRecord(image) && image['detail'] === 'low';
    return isLow ? IMAGE_TOKENS : IMAGE_TOKENS + tilesOf(isRecord(image) ? image['url'] : image) * TILE_TOKENS;
  }
  if (isRecord(sound)) {
    return Math.ceil(bytesOf(sound['data']) / (sound['format'] === 'wav' ? WAVE_BYTES : SOUND_BYTES));
  }
  return isRecord(file) ? Math.ceil(bytesOf(file['file_data']) / FILE_BYTES) : 0;
}

/** Tokens of what is not text in a message: the most that OpenAI's published rules give, as nothing is fetched. */
export function mediaTokensOf({ sent }: ChatMessage): number {
  return list(sent?.['content']).reduce<number>((sum, part) => sum + tokensOfPart(part), 0);
}
