import type { PhraseGroup } from './lexicon.ts';
import { CERTAIN, CLEAR, LIKELY, MILD } from './terms.ts';

/** Words behind `I will beat you` and the like that show that nobody is to be hurt. */
const PLAY =
  '!(a|an|the|some|over|at|in|to|by|this|next|on|up|with|for|guys|all|half|there|out|off|softly|laughing|later|tomorrow|my|two|three|money|your|home|there)';

/** Threats and abuse against the reader. */
export const HARASSMENT_PHRASES: readonly PhraseGroup[] = [
  {
    categories: ['harassment/threatening', 'violence'],
    score: CERTAIN,
    phrases: [
      '<intend> [come over and|come there and|come to your house and|find you and|hunt you down and|track you down and|find where you live and|personally|slowly|probably|definitely|happily|brutally|gladly|fuckin|fucking] (kill|murder|stab|strangle|slaughter|rape|torture|behead|butcher|choke|decapitate|dismember|lynch|assassinate|poison|disembowel|execute|gut|mutilate|suffocate|bury) (<you>|(your|ur|yo) [whole|entire] (family|kids|kid|children|child|mother|mom|mum|father|dad|wife|husband|son|daughter|sister|brother|parents|dog|cat|friends|loved ones)) !(softly|laughing|in|at)',
      '<intend> [come over and|come there and|come to your house and|find you and|hunt you down and|personally|fucking] (kill|murder|stab|strangle|slaughter|rape|torture) <you> [in your sleep|in front of|with]',
      '<intend> [come over and|come to your house and|find you and|personally|fucking] (shoot|hurt|burn|beat|punch|smash|destroy|attack|end|hang|kick|slap) <you> ' +
        PLAY,
      '<intend> [come over and|come to your house and|find you and|personally|fucking] (hurt|shoot|burn|beat up|attack|harm) (your|ur) (family|kids|children|mother|mom|mum|father|dad|wife|husband|son|daughter|sister|brother|parents)',
      '<intend> (beat the shit out of|beat the crap out of|beat the hell out of|kick the shit out of|beat up|beat) <you> (up|to death|to a pulp|senseless|black and blue|bloody)',
      '<intend> [fucking] (beat|kick) the (shit|crap|hell|living daylights) out of <you>',
      '<intend> [fucking] (hunt|track) <you> down !(some|a|an|the|another|your|that|this|one)',
      '<intend> [find you and] (make you suffer|make you bleed|make your life hell|make your life a living hell|make you regret being born|make you wish you were dead|watch you die|see you bleed|dance on your grave|put you in the ground|put you six feet under|put you in a grave|end your life|take your life)',
      '(slit|cut|slash) (your|ur|his|her|their) [fucking] (throat|throats)',
      '(break|snap) (your|ur) [fucking] (neck|legs|kneecaps|bones|skull|every bone)',
      '(put|putting) a bullet in (you|your head|your skull|your brain|his head|her head|between your eyes)',
      '(blow (your|ur|his|her) [fucking] (brains out|head off)|bash (your|ur|his|her) [fucking] (head|skull|face) in|rip (your|ur) [fucking] (head|heart|throat|guts|spine) (off|out)|skin you alive|burn you alive|bury you alive|burn (your|ur) house down|cut you (up|into pieces|open)|stab you in the (neck|heart|face|chest|throat|eye|eyes)|shoot you in the (head|face|chest))',
      '(you re|you are|youre|ur) [a] (dead man|dead woman|dead meat|going to die tonight|gonna die tonight|going to pay with your life)',
      '(i know where (you|u|your (family|kids|children|mother|mom|daughter|son|parents)) (live|lives|sleep|go to school|goes to school)) [and]',
      '(sleep with one eye open|you better watch your back|you won t see tomorrow|you wont see tomorrow|you will not live to see|you won t live to see|your days are numbered|you have [~2] days to live) !(in|on|of)',
    ],
  },
  {
    categories: ['harassment', 'self-harm'],
    score: CERTAIN,
    phrases: [
      '(kill|hang) (yourself|urself|yourselves|ur self|your self)',
      '(go|please|just|should|you should|you could) (shoot|neck|off|drown|unalive|end) (yourself|urself|yourselves)',
      '(you are|you re|youre) ~3 should [just] (die|be dead|kill yourself)',
      '(you|u) (will|ll|are going to|re going to|re gonna|are gonna) die (tonight|today|tomorrow|screaming|painfully|for this|slowly)',
      '(go die|go die in a fire|go (and|n) die|just die already|go drink bleach|go jump off a (bridge|cliff|building|roof)|drink bleach and die|slit your wrists|do the world a favor and die|do us all a favor and die) !(hard|down|out|off)',
      '(you|u|ya|ur) [just|really|all] (should|deserve to|need to|ought to|must|gotta) [just|all|all just] (die|kill yourself|be dead|be raped|be killed|be shot|be hanged|rot in hell|burn in hell|end your life|commit suicide|end it all|end yourself) !(down|out|off|your|his|her|my|it|the)',
      '(i|we) [all|really|just|fucking] (hope|wish|want|pray) [that] (you|u|ya) [all|just|fucking] (die|get raped|get killed|get cancer|get shot|get hit by|were dead|were never born|rot in hell|burn in hell|kill yourself|suffer and die|drop dead|to die|to suffer|to kill yourself)',
      '(world|everyone|everybody|we|family) would be [so much|much] (better|happier) [off] (without you|if you were dead|if you died|if you killed)',
      '(nobody|no one) would [ever|even] (miss you|care if you (died|die|were dead|killed))',
    ],
  },
  {
    categories: ['harassment'],
    score: CLEAR,
    phrases: [
      '(you are|you re|youre|u r|ur|your|u are|he is|she is|they are) [all|just|such|literally|really|truly] [a|an|nothing but a|the|such a|one] [<insult>] [<insult>] <slur> !(of|off|up|in|it|around|poop|poor|out)',
      '(you are|you re|youre|u r|ur|u are) [all|just|such|literally|really|truly] [a|an|nothing but a|the|such a|one] (fucking|stupid|worthless|dumb|useless|ugly|pathetic|disgusting|goddamn|filthy|miserable|brainless|retarded|sick) [<insult>] <fool>',
      '(you|u|ya) [fucking|little|stupid|dumb|worthless|ugly|fat|dirty|filthy|damn] (bitch|cunt|whore|slut|asshole|motherfucker|piece of shit|retard|faggot|dickhead|dumbass|cocksucker|twat|wanker|scumbag|douchebag|fuckface|fuckwit|bastard|shithead|skank|fucker)',
      '(go fuck yourself|go fuck urself|fuck off and die|fuck your mother|fuck ur mother|suck my dick bitch|eat shit and die|shut the fuck up|stfu bitch|piece of shit bitch)',
      '(write|make|create|generate|give|draft|help me write) [me] [a|an|some] [really|very] (cruel|vicious|abusive|harassing|threatening|violent|degrading|demeaning|bullying|hateful|humiliating|mean|nasty) (message|messages|threat|threats|letter|email|text|texts|comment|comments|post|tweet|tweets|insult|insults|note|song|poem) (to|for|about|that|at|targeting|so)',
      '<ask> (bully|harass|humiliate|intimidate|threaten|dox|doxx|stalk|cyberbully|cyberstalk|blackmail|terrorize|gaslight|degrade|torment) (<somebody>|him|her|<kin>|my bully|this girl|this guy|this kid|a classmate|a girl|a coworker|that girl|that guy)',
      '<ask> [secretly] (track|spy on|stalk|follow|bug) (<kin> [s]|her|him|a girl|someone|somebody|a woman) [s] [phone] (without (her|his|their|them|him) (knowing|knowledge|consent|noticing|permission)|secretly|at night)',
      '(you people|you all|yall|y all|your kind|your people|you lot) are [all|just|nothing but|fucking] (subhuman|subhumans|vermin|scum|animals|trash|garbage|cockroaches|filth|parasites|inferior|disgusting|worthless|savages|monkeys|apes)',
      '(everyone|everybody|the whole school|nobody) (hates you|loves you you are|wants you dead|wants you to die)',
    ],
  },
  { categories: ['harassment', 'self-harm'], score: CERTAIN, disguisedScore: MILD, phrases: ['kys'] },
  { categories: [], score: 0, phrases: ['(the|what the|who the|how the|do what the) (fuck you|fuck u)'] },
  {
    categories: ['harassment'],
    score: LIKELY,
    phrases: [
      '(fuck you|fuck u|fck you|fuk you|fuck off|screw you you|suck my dick|suck my cock|eat shit|son of a bitch you are|you suck and i hate you)',
    ],
  },
  {
    categories: ['harassment'],
    score: MILD,
    phrases: [
      '(you are|you re|youre|u r|ur|u are) [all|just|such|literally|really|truly] [a|an|the|such a|such an] [little|total|complete|absolute] <fool> !(being)',
      '(shut up|i hate you|nobody likes you|no one likes you|you suck|screw you|you disgust me|loser|asshole|assholes|bitch|bitches)',
    ],
  },
];
