/**
 * The notation of the phrase lists. A phrase is a row of
 *
 * - `word`: that word (a-z and 0-9 only; an apostrophe or hyphen in the text is a gap: `don't` is `don t`),
 * - `(a|b c)`: one of several phrases, `[a|b c]`: one of them or nothing,
 * - `<name>`: the alternatives that the terms table has under that name, `[<name>]`: the same or nothing,
 * - `~2`: up to two words, whatever they are,
 * - `^`, only as the first element: at the beginning of a sentence,
 * - `!(a|b)`, only as the last element: unless one of these single words comes next.
 */
export type PhraseElement =
  | { readonly kind: 'word'; readonly source: string; readonly word: string }
  | { readonly kind: 'skip'; readonly source: string; readonly words: number }
  | {
      readonly kind: 'oneOf';
      readonly source: string;
      readonly optional: boolean;
      readonly alternatives: readonly (readonly PhraseElement[])[];
    };

export interface Phrase {
  readonly atSentenceStart: boolean;
  readonly elements: readonly PhraseElement[];
  readonly unlessNext: readonly string[];
}

/** The terms table, each term parsed when a phrase first names it. */
export class Terms {
  private readonly sources: Readonly<Record<string, string>>;
  private readonly parsed = new Map<string, PhraseElement>();

  constructor(sources: Readonly<Record<string, string>>) {
    this.sources = sources;
  }

  /** Throws on a name that does not exist. */
  get(name: string): PhraseElement {
    const known = this.parsed.get(name);
    if (known !== undefined) return known;
    const source = this.sources[name];
    if (source === undefined) throw new Error(`There is no term <${name}>.`);
    const reader = new TokenReader(tokenize(source), source);
    const alternatives = parseAlternatives(reader, this);
    if (!reader.done) reader.fail('a bracket is out of place');
    const term: PhraseElement = { kind: 'oneOf', source: `<${name}>`, optional: false, alternatives };
    this.parsed.set(name, term);
    return term;
  }
}

const TOKEN = /\s*(?:([a-z0-9]+)|<([a-z-]+)>|~([1-9])|([()[\]|^!]))/y;

interface Token {
  readonly kind: 'word' | 'term' | 'skip' | 'mark';
  readonly text: string;
}

/** Throws on a phrase that breaks the notation or names a term that does not exist. */
export function parsePhrase(source: string, terms: Terms): Phrase {
  const reader = new TokenReader(tokenize(source), source);
  const atSentenceStart = reader.take('^');
  const elements = parseRow(reader, terms);
  const unlessNext = reader.take('!') ? parseWords(reader, terms) : [];
  if (!reader.done) reader.fail(`'${reader.peek()?.text ?? ''}' is out of place`);
  if (elements.length === 0) reader.fail('there is no word');
  return { atSentenceStart, elements, unlessNext };
}

function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < source.trimEnd().length) {
    const at = TOKEN.lastIndex;
    const match = TOKEN.exec(source);
    if (match === null) throw new Error(`Cannot read '${source.slice(at)}' of the phrase '${source}'.`);
    const [, word, term, skip, mark] = match;
    if (word !== undefined) tokens.push({ kind: 'word', text: word });
    else if (term !== undefined) tokens.push({ kind: 'term', text: term });
    else if (skip !== undefined) tokens.push({ kind: 'skip', text: skip });
    else tokens.push({ kind: 'mark', text: mark ?? '' });
  }
  return tokens;
}

class TokenReader {
  private at = 0;
  private readonly tokens: readonly Token[];
  private readonly source: string;

  constructor(tokens: readonly Token[], source: string) {
    this.tokens = tokens;
    this.source = source;
  }

  get done(): boolean {
    return this.at >= this.tokens.length;
  }

  peek(): Token | undefined {
    return this.tokens[this.at];
  }

  next(): Token | undefined {
    return this.tokens[this.at++];
  }

  /** Moves past a mark if it comes next. */
  take(mark: string): boolean {
    const token = this.peek();
    const isNext = token?.kind === 'mark' && token.text === mark;
    if (isNext) this.at += 1;
    return isNext;
  }

  expect(mark: string): void {
    if (!this.take(mark)) this.fail(`'${mark}' is missing`);
  }

  fail(reason: string): never {
    throw new Error(`Cannot read the phrase '${this.source}': ${reason}.`);
  }
}

function parseRow(reader: TokenReader, terms: Terms): PhraseElement[] {
  const elements: PhraseElement[] = [];
  for (;;) {
    const element = parseElement(reader, terms);
    if (element === undefined) return elements;
    elements.push(element);
  }
}

function parseElement(reader: TokenReader, terms: Terms): PhraseElement | undefined {
  const token = reader.peek();
  if (token === undefined) return undefined;
  switch (token.kind) {
    case 'word':
      reader.next();
      return { kind: 'word', source: token.text, word: token.text };
    case 'skip':
      reader.next();
      return { kind: 'skip', source: `~${token.text}`, words: Number(token.text) };
    case 'term':
      reader.next();
      return terms.get(token.text);
    case 'mark':
      if (reader.take('(')) return parseGroup(reader, terms, ')');
      if (reader.take('[')) return parseGroup(reader, terms, ']');
      return undefined;
  }
}

function parseGroup(reader: TokenReader, terms: Terms, close: ')' | ']'): PhraseElement {
  const alternatives = parseAlternatives(reader, terms);
  reader.expect(close);
  const inner = alternatives.map((row) => row.map((element) => element.source).join(' ')).join('|');
  const optional = close === ']';
  return { kind: 'oneOf', source: optional ? `[${inner}]` : `(${inner})`, optional, alternatives };
}

function parseAlternatives(reader: TokenReader, terms: Terms): PhraseElement[][] {
  const alternatives = [parseRow(reader, terms)];
  while (reader.take('|')) alternatives.push(parseRow(reader, terms));
  if (alternatives.some((row) => row.length === 0)) reader.fail('an alternative is empty');
  return alternatives;
}

function parseWords(reader: TokenReader, terms: Terms): string[] {
  const element = parseElement(reader, terms);
  return element?.kind === 'oneOf' ? singleWords(element) : reader.fail("after '!' come alternatives");
}

function singleWords(element: PhraseElement): string[] {
  if (element.kind === 'word') return [element.word];
  if (element.kind === 'skip' || element.alternatives.some((row) => row.length !== 1)) {
    throw new Error(`After '!' come single words, not '${element.source}'.`);
  }
  return element.alternatives.flat().flatMap(singleWords);
}
