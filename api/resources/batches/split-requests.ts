import { CHAT_LIMITS } from '../../../shared/contracts/chat-request.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import { parseJson } from '../../http/json-body.ts';
import { createPartialText, createValueScanner, isBlank } from './scan-value.ts';
import type { Piece, Splitter } from './scan-value.ts';

/** JSON may write one byte as six, and put whitespace around values. */
const METADATA_BYTES_MAX = 8 * CHAT_LIMITS.metadataBytesMax;
const NAME_BYTES_MAX = 256;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** Tokens that may come next in `{"requests": [item, item], "metadata": value}`. */
type Expected =
  'object' | 'first name' | 'name' | 'colon' | 'value' | 'comma' | 'first item' | 'item' | 'item comma' | 'nothing';

/** The state to which a punctuation mark between values leads. */
const MARKS: Record<Expected, Readonly<Record<string, Expected>>> = {
  object: { '{': 'first name' },
  'first name': { '}': 'nothing' },
  name: {},
  colon: { ':': 'value' },
  value: {},
  comma: { ',': 'name', '}': 'nothing' },
  'first item': { ']': 'comma' },
  item: {},
  'item comma': { ',': 'item', ']': 'comma' },
  nothing: {},
};

type Token = 'name' | 'item' | 'value';

/** The token that begins in a state if there is no mark. */
const BEGINNINGS: Partial<Record<Expected, Token>> = {
  'first name': 'name',
  name: 'name',
  value: 'value',
  'first item': 'item',
  item: 'item',
};

function refuse(sentence: string, param?: string): ServiceError {
  return new ServiceError('invalid_request', sentence, param === undefined ? {} : { param });
}

function notJson(offset: number): ServiceError {
  return refuse(`The request body is not valid JSON in UTF-8: see byte ${offset}.`);
}

const AS_LINES = 'requests that are lines need `Content-Type: application/x-ndjson`';
const NO_FILES = 'there are no files here: send the requests themselves, in `requests` or as lines of NDJSON';
/** Advises on names that show what the caller meant: lines under the wrong type, or OpenAI's batches. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ...['custom_id', 'method', 'url', 'body'].map((name) => [name, AS_LINES] as const),
  ...['input_file_id', 'endpoint', 'completion_window', 'output_expires_after'].map(
    (name) => [name, NO_FILES] as const,
  ),
]);

/** The names of the body's fields; each may occur once. */
function createNames() {
  const seen = new Set<string>();
  return {
    has: (name: string) => seen.has(name),
    /** Undefined: the text is not a name. */
    add(json: Buffer | undefined): string | undefined {
      if (json === undefined) throw refuse('The request body has a field that is not allowed, with a very long name.');
      const parsed = parseJson(json);
      if (parsed.kind !== 'value' || typeof parsed.value !== 'string') return undefined;
      const name = parsed.value;
      if (name !== 'requests' && name !== 'metadata') {
        const advice = ADVICE.get(name);
        const sentence = `The field ${JSON.stringify(name)} is not allowed beside \`requests\` and \`metadata\``;
        throw refuse(advice === undefined ? `${sentence}.` : `${sentence}; ${advice}.`, name);
      }
      if (seen.has(name)) throw refuse(`\`${name}\` must be there once.`, name);
      seen.add(name);
      return name;
    },
  };
}

interface Position {
  expected: Expected;
  /** The name of the value that comes. */
  field: string;
}

/** A byte outside of every value: a blank, a mark, or the first byte of a token, which is left to the scanner. */
function step(at: Position, byte: number, offset: number): Token | undefined {
  if (isBlank(byte) || (at.expected === 'object' && BYTE_ORDER_MARK[offset] === byte)) return undefined;
  const mark = String.fromCharCode(byte);
  const next = MARKS[at.expected][mark];
  if (next !== undefined) {
    at.expected = next;
    return undefined;
  }
  if (at.expected === 'object') throw refuse('The request body must be a JSON object with `requests`.');
  if (at.expected === 'value' && at.field === 'requests') {
    if (mark !== '[') throw refuse('`requests` must be an array.', 'requests');
    at.expected = 'first item';
    return undefined;
  }
  const begun = BEGINNINGS[at.expected];
  if (begun === undefined) throw notJson(offset);
  return begun;
}

/**
 * Splits the array of an inline body into its items and leaves parsing them to the caller: parsed at once, a body of 50
 * MiB would stop the process for half a second, or for many seconds if it is built to do so (docs/decisions/0016-batches.md).
 */
export function createRequestSplitter(): Splitter {
  const scanner = createValueScanner();
  const texts: Record<Token, ReturnType<typeof createPartialText>> = {
    name: createPartialText(NAME_BYTES_MAX),
    item: createPartialText(CHAT_LIMITS.bodyBytesMax),
    value: createPartialText(METADATA_BYTES_MAX),
  };
  const names = createNames();
  const at: Position = { expected: 'object', field: '' };
  let token: Token | undefined;
  let items = 0;
  let metadata: Buffer | undefined;
  /** Bytes before the current part. */
  let before = 0;

  function* finish(ended: Token, offset: number): Iterable<Piece> {
    const json = texts[ended].take();
    if (ended === 'item') {
      const name = `requests[${items}]`;
      items += 1;
      at.expected = 'item comma';
      yield { place: { name: `\`${name}\``, param: name }, json };
    } else if (ended === 'name') {
      const name = names.add(json);
      if (name === undefined) throw notJson(offset);
      at.field = name;
      at.expected = 'colon';
    } else {
      if (json === undefined) throw refuse('`metadata` is too large.', 'metadata');
      metadata = json;
      at.expected = 'comma';
    }
  }

  return {
    isWhole: true,

    *push(part) {
      let index = 0;
      while (index < part.length) {
        token ??= step(at, part[index] ?? 0, before + index);
        if (token === undefined) {
          index += 1;
          continue;
        }
        const end = scanner.scan(part, index);
        texts[token].add(part.subarray(index, end === -1 ? part.length : end));
        if (end === -1) break;
        const ended = token;
        token = undefined;
        yield* finish(ended, before + end);
        index = end;
      }
      before += part.length;
    },

    end() {
      if (at.expected === 'object') throw refuse('The request body is empty; send a JSON object with `requests`.');
      if (at.expected !== 'nothing') throw notJson(before);
      if (!names.has('requests')) throw refuse('`requests` is required.', 'requests');
      return [];
    },

    metadata: () => metadata,
    heldBytes: () => texts.item.heldBytes() + texts.value.heldBytes() + (metadata?.length ?? 0),
  };
}

const LINE_FEED = 0x0a;

/**
 * Splits an NDJSON body at its line feeds. Blank lines are skipped but counted, so that line numbers match an editor's.
 * A body may have fifty million of them, so each costs one look at a byte and nothing else.
 */
export function createLineSplitter(): Splitter {
  const text = createPartialText(CHAT_LIMITS.bodyBytesMax);
  let number = 1;
  /** Only blanks of the current line have arrived so far. */
  let isEmpty = true;

  function behindBlanks(part: Buffer, from: number): number {
    let index = from;
    for (; isBlank(part[index]); index += 1) if (part[index] === LINE_FEED) number += 1;
    return index;
  }

  function line(): Piece {
    isEmpty = true;
    return { place: { name: `Line ${number}` }, json: text.take() };
  }

  return {
    isWhole: false,

    *push(part) {
      let from = 0;
      while (from < part.length) {
        if (isEmpty) from = behindBlanks(part, from);
        if (from === part.length) return;
        isEmpty = false;
        const end = part.indexOf(LINE_FEED, from);
        text.add(part.subarray(from, end === -1 ? undefined : end));
        if (end === -1) return;
        yield line();
        number += 1;
        from = end + 1;
      }
    },

    *end() {
      if (!isEmpty) yield line();
    },

    metadata: () => undefined,
    heldBytes: text.heldBytes,
  };
}
