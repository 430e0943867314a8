/**
 * In UTF-16 units: the longest message there may be (docs/spec/interface.md section 8) goes in one piece, an answer in
 * several.
 */
const PIECE = 32_000;
/** Pieces of one text overlap, so that no phrase is cut in two. */
const PIECE_OVERLAP = 200;
/** So many texts, or units, go into one call. */
const BATCH_TEXTS = 32;
const BATCH_UNITS = 64_000;

function piecesOf(text: string): string[] {
  const pieces = [text.slice(0, PIECE)];
  for (let at = PIECE; at < text.length; at += PIECE - PIECE_OVERLAP)
    pieces.push(text.slice(at - PIECE_OVERLAP, at - PIECE_OVERLAP + PIECE));
  return pieces;
}

/** Texts as the inputs of one call or several, in order; what has nothing but white space is not asked about. */
export function toBatches(texts: readonly string[]): string[][] {
  const batches: string[][] = [];
  let units = 0;
  for (const piece of texts.filter((text) => text.trim() !== '').flatMap(piecesOf)) {
    const batch = batches.at(-1);
    if (batch === undefined || batch.length >= BATCH_TEXTS || units + piece.length > BATCH_UNITS) {
      batches.push([piece]);
      units = piece.length;
    } else {
      batch.push(piece);
      units += piece.length;
    }
  }
  return batches;
}

/** The JSON body of `POST /moderations`; without a model the server takes its own. */
export function toModerationBody(inputs: readonly string[], model: string | undefined): string {
  return JSON.stringify({ ...(model === undefined ? {} : { model }), input: inputs });
}
