export const SENTENCE = 'Explain in a few plain sentences how a river finds its way from a spring to the sea.';

/** Ordinary text of a support conversation, so that words of the lexicon occur as often as in practice. */
const SENTENCES = [
  `${SENTENCE} `,
  'The customer wrote twice about the invoice of 3 March (no. 48113) and asked when the refund of $49.90 would arrive. ',
  'Our team has checked the order, and the parcel left the warehouse on Tuesday; the carrier says it will take a day more. ',
  '- first item: the battery lasts 18 hours\n- second item: it weighs 1.2 kg\n\n',
  'const total = items.reduce((sum, item) => sum + item.price * item.count, 0);\n',
  'Könnten Sie uns bitte die Rechnung noch einmal schicken? Vielen Dank für Ihre Mühe! ',
];

/** Text of this many characters, few of which take more than one byte. */
export function textOf(length: number): string {
  let text = '';
  for (let index = 0; text.length < length; index += 1) text += SENTENCES[index % SENTENCES.length] ?? '';
  return text.slice(0, length);
}
