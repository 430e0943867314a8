import type { PhraseGroup } from './lexicon.ts';
import { CERTAIN, CLEAR, LIKELY, MILD } from './terms.ts';

const DESTROY =
  '(kill|gas|exterminate|eradicate|lynch|hang|burn|shoot|slaughter|wipe out|annihilate|genocide|execute|murder|round up|purge|ethnically cleanse)';
const TARGET = '(all|every|every single|each) [of] [the|those|these] [fucking|dirty|filthy|damn|stupid] <group>';

/** Contempt for, or violence against, people for what they are. */
export const HATE_PHRASES: readonly PhraseGroup[] = [
  {
    categories: ['hate'],
    score: CERTAIN,
    phrases: [
      '(nigger|niggers|niggerz|nigerz|sandnigger|sandniggers|nigglet|niglet|niglets)',
      '(kike|kikes|faggots|faggotry|faggity|wetback|wetbacks|beaner|beaners|towelhead|towelheads|raghead|ragheads)',
      '(porch monkey|porch monkeys|jungle bunny|jungle bunnies|zipperhead|zipperheads|camel jockey|camel jockeys)',
      '(untermensch|shitskin|shitskins|mudslime|mudslimes|chinks|gooks|coons|pajeet|pajeets|trannies|shemales)',
      '(dirty|filthy|fucking|stupid|ugly|damn|goddamn|disgusting|smelly|lazy) (jew|jews|kike|muslim|muslims|mexican|mexicans|chink|gook|paki|pakis|spic|spics|nigga|gypsy|gypsies|arab|arabs|indian|indians|blacks|dyke|dykes|tranny|faggot|fag|fags|homo|homos|coon|queer|queers|immigrant|immigrants|gays)',
      'you [are|re|r] [a|such a|all] [<insult>] (chink|gook|paki|spic|tranny|faggot|fag|fags|homo|coon|dyke|nigga|kike)',
      '(hitler|the nazis|adolf hitler) (was|were) right',
      '(hitler|the nazis) did nothing wrong',
      '(praise|praises|praising|glorify|glorifies|glorifying|celebrate|celebrates|celebrating|worship) (hitler|adolf hitler|nazism|the nazis|the holocaust|the kkk|white supremacy|ethnic cleansing)',
      'go back to (africa|mexico|china|india) you',
      '(hitler|the nazis) should have (finished the job|killed more|killed all|won)',
      '(jews|jew|you) will not replace us',
      'gas the (jews|kikes|muslims|blacks|gays)',
      '(race war now|white power worldwide|total nigger death|the only good <group> is a dead|white race is superior|superiority of the white race)',
      '(whites|white people|aryans|the aryan race|the white race|men) (are|is) [genetically|intellectually|naturally|racially] (superior to <group>|superior race|the superior race|the master race)',
      '(the holocaust|holocaust) (never happened|didn t happen|did not happen|is a hoax|was a hoax|is a lie|was a lie|was fake|is fake|was faked|was a good thing)',
    ],
  },
  {
    categories: ['hate', 'violence'],
    score: CERTAIN,
    phrases: [
      `(we|you|they|i|everyone|someone|somebody|society|people|lets|let s|let us) [<really>] (should|must|need to|have to|ought to|gotta|will|ll|want to|wanna|going to|gonna|shall|can) [just|all] ${DESTROY} [all|every|every single|each|off] [of] [the|those|these] [fucking|dirty|filthy|damn|stupid] <group>`,
      `(lets|let s|let us|i m going to|im going to|i m gonna|im gonna|i want to|i wanna|go|just) ${DESTROY} [all|every|every single|each] [of] [the|those|these] [fucking|dirty|filthy|damn] <group>`,
      `^ ${DESTROY} [all|every|every single|each] [of] [the|those|these] [fucking|dirty|filthy|damn] <group>`,
      `${DESTROY} ${TARGET}`,
      'death to [all] [the] <group>',
      '<group> (should|must|need to|deserve to|ought to|have to) [all] [be] (die|killed|exterminated|gassed|shot|hanged|hung|burned|burnt|eradicated|lynched|wiped out|executed|slaughtered|eliminated|enslaved|sterilized|put in camps|put down|burn in hell)',
      'the only good <group> is a dead',
    ],
  },
  {
    categories: ['hate'],
    score: CLEAR,
    phrases: [
      'i [<really>] (hate|despise|detest|loathe|can t stand|cannot stand) [all|every|those|these|the] [of] [the|these|those] [fucking|dirty|filthy|damn|stupid] <group> !(s|food|history|music|studies|fashion)',
      '(all|those|these) [the] <group> (are|r) [all|just|nothing but|nothing more than|a bunch of|basically|really|literally|clearly|only] [fucking|dirty|filthy] <vermin>',
      '<group> (are|r) [all|just|all just|nothing but|nothing more than|a bunch of|basically|literally|like] [fucking|dirty|filthy] <vermin>',
      '(write|make|create|compose|generate|give|tell|draft) [me] [a|an|some|the] [short|long|funny|persuasive|compelling] (racist|antisemitic|anti semitic|homophobic|transphobic|islamophobic|hateful|sexist|misogynistic|nazi|neo nazi|white supremacist|white nationalist) (joke|jokes|poem|rant|speech|manifesto|essay|article|story|song|slogan|slogans|propaganda|post|posts|tweet|tweets|letter|rap|pamphlet|flyer|insult|insults|slur|slurs|email|message|comment|comments|content|material|text|statement|statements|remarks|paragraph|propaganda)',
      '(explain|argue|write|tell me|prove|essay on|article on) [~2] why [the] (white race|whites|white people|aryans|men) (is|are) superior',
      '(explain|argue|write|tell me|prove|essay on|article on) [~2] why [all|the] <group> (are|is) [all] (inferior|subhuman|evil|vermin|parasites|a plague|scum|less intelligent|stupid|lazy|criminals|terrorists)',
      '(jokes|joke) (about|making fun of|mocking) (the holocaust|gassing jews|dead jews|lynching|slavery)',
      '<group> (do not|don t|dont) deserve (to live|to exist|rights|human rights|to vote|to breathe)',
      '<group> (belong in (the kitchen|cages|camps|the oven|ovens|gas chambers|a zoo|zoos|the gutter)|have no place in (society|this country|our country))',
      'go back to (your own country|where you came from|where u came from) !(and|to|when|for|after|with)',
      '^ go back to your (country|shithole) !(and|to|when|for|after|with)',
      'women are (inferior|objects|property|only good for|too emotional to|too stupid to|not as smart as)',
    ],
  },
  {
    categories: [],
    score: 0,
    phrases: [
      `(plan|plans|planned|attempt|attempts|attempted|tried|sought|aimed|order|ordered|orders|wanted|intended|campaign|desire|policy|effort|efforts|decision|decided|program|programme|goal|plot|conspired|helped|began|vowed|threatened|refused) to [systematically] ${DESTROY} [all|every] [of] [the|those|these] <group>`,
      '(claimed|claims|claiming|belief that|believed|believe that|believed that|myth that|idea that|notion that|propaganda that|lie that|stereotype that|stereotypes that|theory that|claimed that|claims that|claim that|portrayed|false that|wrong that|racist to say|offensive to say|(some people|some|people|many|they|politicians|critics|racists|he|she|who|others|bigots|extremists|the article|the media) (say|says|said|think|thinks|argue|argues|argued|claim|claims|believe|believes|assume|assumes)) [that] [all|the] <group> (are|were) [all|just|naturally|genetically] <vermin>',
    ],
  },
  { categories: ['hate'], score: LIKELY, phrases: ['(nigga|niggas|niggaz|faggot|tranny|negroid|negroids)'] },
  {
    categories: ['hate'],
    score: MILD,
    phrases: [
      '(spic|spics|chink|gook|coon|paki|pakis|dyke|dykes|homo|homos|fag|fags|retards) !(in|and|of|s|ash|packet)',
    ],
  },
  { categories: ['hate'], score: MILD, phrases: ['(heil hitler|sieg heil|white power|1488|14 88|88 heil)'] },
];
