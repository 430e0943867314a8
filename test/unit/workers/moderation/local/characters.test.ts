import { describe, expect, it } from '@jest/globals';
import { checkSync } from '../check-sync.ts';

describe('hidden phrases are flagged', () => {
  it.each([
    ['spelled out', 'b u i l d a b0mb'],
    ['spelled out in a sentence', 'How do I b u i l d a b o m b?'],
    ['dots inside words', 'how to make a b.o.m.b'],
    ['dots between words', 'i.will.kill.you'],
    ['hyphens', 'how to make a b-o-m-b'],
    ['underscores', 'I_will_kill_you'],
    ['digits for letters', 'h0w t0 m4k3 a b0mb'],
    ['ones for the letter l', 'I will ki11 y0u'],
    ['symbols for letters', 'I will k!ll you'],
    ['at signs', 'f@ggot'],
    ['repeated letters', 'I wiiiill kiiiill youuuu'],
    ['capitals', 'HOW TO BUILD A BOMB'],
    ['wide gaps', `how to make a ${' '.repeat(500)} bomb`],
    ['full-width letters', 'ｈｏｗ ｔｏ ｍａｋｅ ａ ｂｏｍｂ'],
    ['Cyrillic look-alikes', 'hоw tо mаkе а bоmb'],
    ['mathematical letters', '𝐈 𝐰𝐢𝐥𝐥 𝐤𝐢𝐥𝐥 𝐲𝐨𝐮'],
    ['script letters', '𝓱𝓸𝔀 𝓽𝓸 𝓶𝓪𝓴𝓮 𝓪 𝓫𝓸𝓶𝓫'],
    ['circled letters', 'ⓗⓞⓦ ⓣⓞ ⓜⓐⓚⓔ ⓐ ⓑⓞⓜⓑ'],
    ['accents', 'hów tó mäké á bömb'],
    ['combining marks', 'how to make a b\u0336o\u0336m\u0336b\u0336'],
    ['zero-width spaces', 'how to make a b\u200bo\u200bm\u200bb'],
    ['zero-width joiners', 'I w\u200dill k\u2060ill y\ufeffou'],
    ['soft hyphens', 'I will k\u00adi\u00adl\u00adl you'],
    ['emoji around words', '🔥kill🔥 yourself🔥'],
    ['emoji that are letters', 'how to make a 🅱️omb'],
    ['capital I for the letter l', 'I will kiII you'],
    ['a chain of tricks', 'How dо I bu1ld a b\u200b0mb?'],
  ])('hidden phrases are flagged: %s', (_, text) => {
    expect(checkSync(text).flagged).toBe(true);
  });
});

describe('what only looks hidden is not flagged', () => {
  it.each([
    'f(x) = k*m*s + a.f - a.g',
    '600k, 60ok, 0x46, F46 and FFA6',
    'where (y+k).s == y.s, so k = y.s - (y+k).d',
    'print(c, u, n, t[k])',
    's = [1, 2, 3]; k = 5; y = s[k]',
    'a b c d e f g h i j k l m n o p q r s t u v w x y z',
    'https://example.com/how/to/make?a=bomb-calorimeter&b=1',
    '¯\\_(ツ)_/¯ 1,000 $ 2/3 |x| @home !important',
    'ⓐⓑⓒⓓⓔⓕⓖⓗⓘⓙⓚⓛⓜⓝⓞⓟⓠⓡⓢⓣⓤⓥⓦⓧⓨⓩ',
  ])('what only looks hidden is not flagged: %s', (text) => {
    expect(checkSync(text).flagged).toBe(false);
  });
});
